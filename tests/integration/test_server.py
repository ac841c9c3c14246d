"""everlong in the real `langgraph dev`: offline, its state and its store in our Postgres."""

import asyncio
from collections import Counter

from langgraph_sdk import get_client

from cli_process import everlong
from everlong.graph.demo_examples import CHINESE_PROMPT, MIGRATION_ROUNDS
from everlong.stores import ledger, memory, pages
from everlong.stores.entries import render_day
from everlong.stores.postgres import open_stores
from fix_postgres import is_stopped
from http_thread import HttpThread
from langgraph_server import LangGraphServer

CODE = "My code is A-1."
CODE_AGAIN = "What is my code?"
CLEAR = ("memory", "clear-document")
COMPACTING = {"trigger_messages": 3, "keep_messages": 1, "flush_before": False}


async def test_ctx_009_comes_out_and_goes_on_after_a_restart(begin, langgraph_server):
    settings = {"trigger_messages": 6, "keep_messages": 2, "keep_tokens": 0}
    more = {"flush_before": False, "summary_prompt": CHINESE_PROMPT}
    thread = await begin("everlong", compaction=settings | more)
    answers = [await thread.say(text) for text in MIGRATION_ROUNDS]
    wanted = ["CTX-009", "Java 17", "Spring Boot 4.1.0", "AgentScopeJavaApplication"]
    wanted += ["src/main/java", "构建命令", "测试命令"]
    assert [word for word in wanted if word not in answers[-1]] == []
    assert [next(iter(update)) for update in thread.streamed("updates")] == [
        "open_call",
        "compact",
        "reason",
        "flush_memory",
    ]
    told = [event["type"] for event in thread.streamed("custom")]
    assert told == ["compaction.started", "compaction.finished"]
    receipt = (await thread.state())["values"]["compaction"]
    assert (receipt["messages_before"], receipt["safe_cut"], receipt["messages_after"]) == (7, 5, 3)
    assert len(await thread.texts()) == 4
    await asyncio.to_thread(langgraph_server.stop)
    await asyncio.to_thread(langgraph_server.start)
    async with get_client(url=langgraph_server.url, api_key=None) as thread.client:
        again = await thread.say(MIGRATION_ROUNDS[-1])
    assert [word for word in wanted if word not in again] == []


E2_TOLD = (
    "Don't call any tool, just confirm: our exports go through Shanghai port only, "
    "customer code ALPHA"
)
E2_ASKED = "Which port do our exports use, and what is the customer code?"
E2_FACT = "Our exports go through Shanghai port only, customer code ALPHA"


async def test_e2_comes_out_by_http(begin, server_dsn):
    """E2 of docs/behaviour.md, number by number: its calls, its flushes, its one consolidation."""
    first = await begin("everlong", memory={"consolidate": "on_request"})
    user_id, spent = first.context["user_id"], Counter()

    async def say(thread, text):
        """Return the answer, and the names of the tools that were called for it."""
        known = len((await thread.state())["values"].get("messages", []))
        answer = await thread.say(text)
        values = (await thread.state())["values"]
        spent.update(one["kind"] for one in values["call"]["requests"])
        new = values["messages"][known:]
        return answer, [call["name"] for one in new for call in one.get("tool_calls") or ()]

    async def session():
        return await begin("everlong", memory=first.context["memory"], user_id=user_id)

    _, called = await say(first, E2_TOLD)
    assert called == []
    async with open_stores(server_dsn, pool_size=2) as stores:
        store = stores.store
        (entry,) = await ledger.entries(store, user_id)
        day = render_day([entry])
        assert day.count("## Memory Flush") == 1
        assert await memory.read(store, user_id) is None
        assert await pages.document_text(store, user_id) == ""

        await first.run({"request": {"consolidate": True}})
        spent.update(one["type"] for one in first.streamed("custom"))
        document = await memory.read(store, user_id)
        assert "Shanghai" in document.text
        assert "ALPHA" in document.text
        assert render_day(await ledger.entries(store, user_id)) == day

        answer, called = await say(await session(), E2_ASKED)
        assert [word for word in ("Shanghai", "ALPHA") if word not in answer] == []
        assert "Source: MEMORY.md#" in answer
        assert called == []

        on = ("--user", user_id, "--dsn", server_dsn)
        assert (await asyncio.to_thread(everlong, *CLEAR, *on)).code == 0
        assert await memory.read(store, user_id) is None
        assert render_day(await ledger.entries(store, user_id)) == day
        third = await session()
        answer, called = await say(third, E2_ASKED)
        assert [word for word in ("Shanghai", "ALPHA") if word not in answer] == []
        assert f"Source: memory/{entry.day}.md#" in answer
        assert called == ["memory_search"]
        assert (spent["flush"], spent["memory.consolidated"]) == (3, 1)

        _, called = await say(third, f'Restore it: call memory_save {{"content": "{E2_FACT}"}}')
        assert called == ["memory_save"]
        assert E2_FACT in await pages.document_text(store, user_id)
        assert await memory.read(store, user_id) is None
        assert (spent["consolidation"], spent["memory.consolidated"]) == (0, 1)


async def test_studio_sees_the_graph_its_nodes_and_its_input(http_client):
    (assistant,) = await http_client.assistants.search(graph_id="everlong")
    assert assistant["description"]
    drawn = await http_client.assistants.get_graph(assistant["assistant_id"])
    nodes = {node["id"]: node.get("metadata") for node in drawn["nodes"]}
    working = ["open_call", "evict", "compact", "reason", "tools", "flush_memory", "consolidate"]
    assert list(nodes) == ["__start__", *working, "__end__"]
    assert all(nodes[name]["description"] for name in working)
    assert {"source": "reason", "target": "tools", "conditional": True} in drawn["edges"]
    schemas = await http_client.assistants.get_schemas(assistant["assistant_id"])
    assert sorted(schemas["input_schema"]["properties"]) == ["messages", "request"]
    assert sorted(schemas["output_schema"]["properties"]) == ["messages"]
    assert "owner" in schemas["state_schema"]["properties"]


async def test_the_assistants_form_describes_and_bounds_every_setting(http_client):
    (assistant,) = await http_client.assistants.search(graph_id="everlong")
    schemas = await http_client.assistants.get_schemas(assistant["assistant_id"])
    form = schemas["context_schema"]
    settings = [
        (name, field)
        for section in (form, *form["$defs"].values())
        for name, field in section["properties"].items()
    ]
    assert [name for name, field in settings if not field.get("description")] == []
    numbers = [one for one in settings if one[1].get("type") in ("integer", "number")]
    assert len(numbers) > 20
    assert [
        name for name, field in numbers if not {"minimum", "exclusiveMinimum"} & set(field)
    ] == []
    prompts = [field for _, field in settings if field.get("langgraph_type") == "prompt"]
    assert [field["langgraph_nodes"] for field in prompts if "default" in field] == [
        ["reason"],
        ["reason"],
        ["compact"],
    ]


async def test_a_person_edits_the_history_before_it_is_compacted(begin, http_client):
    thread = await begin(compaction=COMPACTING)
    await thread.say(CODE)
    await thread.say(CODE_AGAIN, interrupt_before=["compact"])
    paused = await thread.state()
    assert paused["next"] == ["compact"]
    edited = paused["values"]["messages"][0] | {"content": "My code is B-2."}
    await http_client.threads.update_state(thread.thread_id, {"messages": [edited]})
    assert (await thread.state())["next"] == ["compact"]
    assert await thread.run() == "You said: my code is B-2."
    texts = await thread.texts()
    assert len(texts) == 3
    assert "B-2" in texts[0]
    assert not any("A-1" in text for text in texts)


async def test_a_fork_goes_on_from_an_earlier_checkpoint(begin, http_client):
    thread = await begin()
    for text in (CODE, "My code is B-2."):
        await thread.say(text)
    history = await http_client.threads.get_history(thread.thread_id, limit=50)
    first_end = [past for past in history if not past["next"]][-1]
    await thread.say("My town is Oslo.", checkpoint=first_end["checkpoint"])
    assert await thread.say(CODE_AGAIN) == "You said: my code is A-1."
    assert "My code is B-2." not in await thread.texts()
    history = await http_client.threads.get_history(thread.thread_id, limit=50)
    assert any("B-2" in str(past["values"]) for past in history)


async def test_an_assistants_settings_hold_and_a_run_replaces_whole_sections(begin, http_client):
    thread = await begin()
    both = {"compaction": COMPACTING, "rules": "Be brief."}
    made = await http_client.assistants.create("slow", context=thread.context | both)
    thread.graph, thread.context = made["assistant_id"], {}
    for text in (CODE, "My town is Oslo."):
        await thread.say(text)
    assert len(await thread.texts()) == 3
    settings = (await thread.state())["values"]["call"]["settings"]["compaction"]
    assert (settings["trigger_messages"], settings["keep_messages"]) == (3, 1)
    await thread.say("My name is Ann.", context={"compaction": {"trigger_messages": 8}})
    settings = (await thread.state())["values"]["call"]["settings"]["compaction"]
    assert (settings["trigger_messages"], "keep_messages" in settings) == (8, False)


async def test_checkpoints_hold_what_a_run_is_marked_with_and_not_its_settings(begin, http_client):
    thread = await begin(rules="Be brief.", compaction=COMPACTING)
    await thread.say(CODE, metadata={"note": "for the audit"})
    for past in await http_client.threads.get_history(thread.thread_id):
        assert {"rules", "compaction"}.isdisjoint(past["metadata"])
        assert past["metadata"]["note"] == "for the audit"
        assert past["metadata"]["user_id"] == thread.context["user_id"]


async def test_a_killed_server_loses_no_state(begin, langgraph_server):
    thread = await begin()
    await thread.say(CODE)
    await asyncio.to_thread(langgraph_server.kill)
    await asyncio.to_thread(langgraph_server.start)
    async with get_client(url=langgraph_server.url, api_key=None) as thread.client:
        await thread.client.threads.create(thread_id=thread.thread_id, if_exists="do_nothing")
        assert await thread.say(CODE_AGAIN) == "You said: my code is A-1."
        assert (await thread.texts())[0] == CODE


async def test_a_server_that_is_started_twice_loses_nothing(
    begin, langgraph_server, server_folder, server_dsn
):
    thread = await begin()
    await thread.say(CODE)
    other = LangGraphServer(server_folder, DATABASE_URL=server_dsn, EVERLONG_POOL_SIZE="5")
    try:
        await asyncio.to_thread(other.start, int(langgraph_server.url.rpartition(":")[2]))
        assert other.url != langgraph_server.url
        async with get_client(url=other.url, api_key=None) as thread.client:
            await thread.client.threads.create(thread_id=thread.thread_id, if_exists="do_nothing")
            assert await thread.say(CODE_AGAIN) == "You said: my code is A-1."
    finally:
        await asyncio.to_thread(other.stop)
    async with get_client(url=langgraph_server.url, api_key=None) as thread.client:
        await thread.say("My town is Oslo.")
        assert len(await thread.texts()) == 6


async def test_each_loop_sets_up_the_embedded_database_which_ends_with_the_server(
    new_home, server_folder
):
    settings = {"EVERLONG_HOME": str(new_home), "EVERLONG_POOL_SIZE": "2"}
    alone = LangGraphServer(server_folder, BG_JOB_ISOLATED_LOOPS="true", **settings)
    await asyncio.to_thread(alone.start)
    try:
        async with get_client(url=alone.url, api_key=None) as client:
            threads = [
                await HttpThread.new(client, {"user_id": f"kim{n}"}, "everlong") for n in range(4)
            ]
            await asyncio.gather(*(thread.say(CODE) for thread in threads))
            assert [await thread.texts() for thread in threads] == [[CODE, "Confirmed."]] * 4
        assert not is_stopped(new_home)
    finally:
        await asyncio.to_thread(alone.stop)
