"""Our middleware beside others of langchain's, inside another graph, and with its own answers."""

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import (
    HumanInTheLoopMiddleware,
    ModelCallLimitMiddleware,
    ModelFallbackMiddleware,
    ToolRetryMiddleware,
    dynamic_prompt,
    hook_config,
)
from langchain.agents.middleware.types import AgentMiddleware
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command, Send
from pydantic import BaseModel

from conftest import Backend
from everlong.graph.middleware import EverlongMiddleware
from everlong.graph.parts import as_node
from everlong.nodes.errors import InvalidInputError
from everlong.stores import transcripts
from foreign_graph import COMPACTING, KIM, SUMMARY, says, texts, thread, user
from invariants import check_pairs, check_summary
from scripted_model import ScriptedModel, asks_for_summary, calling


@pytest.fixture
def backend():
    """Keep all in memory; what Postgres makes of it, `test_middleware` asks."""
    return Backend(InMemorySaver(), InMemoryStore())


QUIET = {"memory": {"enabled": False}, "compaction": COMPACTING}
ROOMY = {"memory": {"enabled": False}}


def ours(settings=QUIET):
    return EverlongMiddleware(settings)


def send_mail(to: str) -> str:
    """Send a mail."""
    return f"sent to {to}"


async def test_an_approval_by_middleware_pauses_and_goes_on(backend):
    script = [calling(("send_mail", {"to": "ops@example.test"})), "done", "bye"]
    model = ScriptedModel(script=script)
    graph = create_agent(
        model,
        [send_mail],
        middleware=[ours(ROOMY), HumanInTheLoopMiddleware(interrupt_on={"send_mail": True})],
        checkpointer=backend.saver,
        store=backend.store,
    )
    paused = await graph.ainvoke(user("mail them"), thread(), context=KIM)
    assert paused["__interrupt__"]
    resume = Command(resume={"decisions": [{"type": "approve"}]})
    after = await graph.ainvoke(resume, thread(), context=KIM)
    assert texts(after["messages"])[-2:] == ["sent to ops@example.test", "done"]
    await graph.ainvoke(user("bye"), thread(), context=KIM)
    check_pairs(model.requests[-1])


async def test_who_resumes_anothers_paused_run_is_refused_before_any_tool_runs(backend):
    sent: list[str] = []

    def send_all(to: str) -> str:
        """Send all mails."""
        sent.append(to)
        return "kim's mail\n" * 12_000

    calls = calling(("send_all", {"to": "kim"}), ("memory_save", {"content": "The PIN is 4711"}))
    graph = create_agent(
        ScriptedModel(script=[calls, "done", "NO_REPLY"]),
        [send_all],
        middleware=[
            ours({"memory": {"consolidate": "on_request"}}),
            HumanInTheLoopMiddleware(interrupt_on={"send_all": True}),
        ],
        checkpointer=backend.saver,
        store=backend.store,
    )
    await graph.ainvoke(user("mail them"), thread(), context=KIM)
    resume = Command(resume={"decisions": [{"type": "approve"}]})
    with pytest.raises(InvalidInputError, match="not a thread of 'eve'"):
        await graph.ainvoke(resume, thread(), context={"user_id": "eve"})
    assert sent == []
    assert not [one for one in await backend.store.alist_namespaces() if "eve" in one]
    after = await graph.ainvoke(resume, thread(), context=KIM)  # hers still is
    assert (sent, after["messages"][-1].text) == (["kim"], "done")


class Answer(BaseModel):
    """What the agent answers with."""

    number: int


async def test_a_structured_answer_is_kept_with_its_result_and_compacts(backend):
    def script(messages):
        if asks_for_summary(messages):
            return SUMMARY
        return calling(("Answer", {"number": len(messages)}), prefix=f"a{len(messages)}")

    graph = create_agent(
        ScriptedModel(script=script),
        middleware=[ours()],
        response_format=Answer,
        checkpointer=backend.saver,
        store=backend.store,
    )
    for text in ("one", "two", "three"):
        after = await graph.ainvoke(user(text), thread(), context=KIM)
        assert after["structured_response"].number <= 7
        check_pairs(after["messages"])
    check_summary(after["messages"])
    assert SUMMARY in after["messages"][0].text


async def test_a_prompt_of_theirs_that_changes_is_sent_and_counted(backend):
    @dynamic_prompt
    def prompt(request):
        return f"You know {len(request.state['messages'])} messages."

    model = ScriptedModel(script=says)
    graph = create_agent(model, middleware=[prompt, ours(ROOMY)], store=backend.store)
    await graph.ainvoke(user("one"), context=KIM)
    assert model.requests[0][0].text.startswith("You know 1 messages.")
    assert "read_stored" in model.requests[0][0].text


class Reminding(AgentMiddleware):
    """Sends a reminder that no state holds."""

    async def awrap_model_call(self, request, handler):
        reminded = [*request.messages, HumanMessage("be brief")]
        return await handler(request.override(messages=reminded))


@pytest.mark.parametrize("inside", [False, True])
async def test_what_another_sends_along_goes_with_every_request_and_into_no_state(backend, inside):
    model = ScriptedModel(script=says)
    stack = [ours(), Reminding()] if inside else [Reminding(), ours()]
    graph = create_agent(model, middleware=stack, checkpointer=backend.saver, store=backend.store)
    for text in ("one", "two", "three", "four"):
        after = await graph.ainvoke(user(text), thread(), context=KIM)
    asked = [request for request in model.requests if not asks_for_summary(request)]
    assert [request[-1].text for request in asked] == ["be brief"] * 4
    assert "be brief" not in texts(after["messages"])
    check_summary(after["messages"])


async def test_limits_fallbacks_and_retries_of_theirs_work_as_before(backend):
    broken = ScriptedModel(script=lambda _: RuntimeError("down"))
    spare = ScriptedModel(script=says)
    limit = ModelCallLimitMiddleware(run_limit=3)
    stack = [ours(), limit, ModelFallbackMiddleware(spare), ToolRetryMiddleware(max_retries=1)]
    graph = create_agent(
        broken, [send_mail], middleware=stack, checkpointer=backend.saver, store=backend.store
    )
    after = await graph.ainvoke(user("one"), thread(), context=KIM)
    assert texts(after["messages"]) == ["one", "2 heard"]


async def test_after_a_fallback_it_answers_an_overflow_before_the_other_model_is_asked(backend):
    def limited(messages):
        if len(messages) > 7 and not asks_for_summary(messages):
            return ContextOverflowError("maximum context length is 4000 tokens")
        return says(messages)

    spare = ScriptedModel(script=[])
    compaction = {"trigger_messages": 0, "keep_messages": 2, "flush_before": False}
    graph = create_agent(
        ScriptedModel(script=limited),
        middleware=[ModelFallbackMiddleware(spare), ours(ROOMY | {"compaction": compaction})],
        checkpointer=backend.saver,
        store=backend.store,
    )
    for text in ("one", "two", "three", "four " * 40):
        after = await graph.ainvoke(user(text), thread(), context=KIM)
    check_summary(after["messages"])
    assert spare.requests == []


async def test_a_run_that_ends_without_asking_keeps_what_was_said_for_the_next(backend):
    class Ending(AgentMiddleware):
        """Ends some runs before the model is asked."""

        @hook_config(can_jump_to=["end"])
        async def abefore_agent(self, state, runtime):
            if state["messages"][-1].text == "stop":
                return {"jump_to": "end", "messages": [AIMessage("stopped")]}
            return None

    graph = create_agent(
        ScriptedModel(script=says),
        middleware=[ours(ROOMY), Ending()],
        checkpointer=backend.saver,
        store=backend.store,
    )
    for text in ("one", "stop", "two"):
        after = await graph.ainvoke(user(text), thread(), context=KIM)
    whole = ["one", "2 heard", "stop", "stopped", "two", "6 heard"]
    assert texts(after["messages"]) == whole
    archived = await transcripts.read(backend.store, "kim", "t1")
    assert [entry.text for entry in archived] == whole


async def test_as_a_node_it_has_its_own_history_and_the_parents_stays(backend):
    model = ScriptedModel(script=says)
    agent = create_agent(model, middleware=[ours()], checkpointer=True)
    builder = StateGraph(MessagesState, context_schema=dict).add_node("agent", as_node(agent))
    graph = builder.add_edge(START, "agent").compile(
        checkpointer=backend.saver, store=backend.store
    )
    said = ["one", "two", "three", "four", "five", "six"]
    words = []
    for text in said:
        async for _, part in graph.astream(
            user(text), thread(), context=KIM, stream_mode="messages", subgraphs=True
        ):
            words.append(part[0].text)
    after = (await graph.aget_state(thread())).values["messages"]
    assert texts(after)[::2] == said
    assert len(after) == 12
    assert not any(SUMMARY in text for text in [*texts(after), *words])
    assert any(map(asks_for_summary, model.requests))
    assert max(len(one) for one in model.requests if not asks_for_summary(one)) <= 6
    archived = await transcripts.read(backend.store, "kim", "t1|agent")
    assert [entry.text for entry in archived] == texts(after)


@pytest.mark.parametrize("keeps", [True, False])
async def test_two_at_once_as_a_node_are_refused_where_it_keeps_a_history(backend, keeps):
    agent = create_agent(ScriptedModel(script=says), middleware=[ours()], checkpointer=keeps)
    graph = (
        StateGraph(MessagesState, context_schema=dict)
        .add_node("agent", as_node(agent))
        .add_conditional_edges(
            START, lambda _: [Send("agent", user(text)) for text in ("a", "b")], ["agent"]
        )
        .compile(checkpointer=backend.saver, store=backend.store)
    )
    if keeps:
        with pytest.raises(InvalidInputError, match="checkpointer=False"):
            await graph.ainvoke(user("go"), thread(), context=KIM)
    else:
        after = await graph.ainvoke(user("go"), thread(), context=KIM)
        assert texts(after["messages"]) == ["go", "2 heard", "2 heard"]


async def test_as_a_plain_node_no_summary_of_it_gets_into_the_parents_history(backend):
    model = ScriptedModel(script=says)
    agent = create_agent(model, middleware=[ours()])
    builder = StateGraph(MessagesState, context_schema=dict).add_node("agent", agent)
    graph = builder.add_edge(START, "agent").compile(
        checkpointer=backend.saver, store=backend.store
    )
    said, after = ["one", "two", "three", "four", "five"], {}
    for text in said:
        after = await graph.ainvoke(user(text), thread(), context=KIM)
    assert any(map(asks_for_summary, model.requests))
    assert texts(after["messages"])[::2] == said
    assert len(after["messages"]) == 10


async def test_an_agent_that_is_asked_in_passing_remembers_nothing(backend):
    inner = create_agent(ScriptedModel(script=says), middleware=[ours({"memory": {}})])

    async def delegate(task: str) -> str:
        """Have somebody else do it."""
        answered = await inner.ainvoke(user(task))
        return answered["messages"][-1].text

    outer = ScriptedModel(script=[calling(("delegate", {"task": "my port is Hamburg"})), "ok"])
    graph = create_agent(
        outer,
        [delegate],
        middleware=[ours(ROOMY)],
        checkpointer=backend.saver,
        store=backend.store,
    )
    after = await graph.ainvoke(user("do it"), thread(), context=KIM)
    assert texts(after["messages"]) == ["do it", "", "2 heard", "ok"]
    assert await transcripts.threads(backend.store, "kim") == ["t1"]
    archived = await transcripts.read(backend.store, "kim", "t1")
    assert [entry.text for entry in archived if entry.role == "human"] == ["do it"]
