"""A deployed agent in a graph here: through `RemoteGraph`, on the real `langgraph dev`."""

import json
from uuid import uuid4

import httpx
import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.pregel.remote import RemoteGraph
from langgraph.types import Command
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient

from bearer_tokens import bearer
from everlong.graph.remote import remote_node
from everlong.nodes.errors import InvalidInputError, MissingUserError, RemoteAgentError
from everlong.nodes.models import chat_model
from foreign_graph import texts, thread, user

OFF = {"memory": {"enabled": False}}
COMPACTING = {"trigger_messages": 5, "keep_messages": 2, "flush_before": False}


@pytest.fixture
def remote(http_client):
    return RemoteGraph("everlong", client=http_client)


@pytest.fixture
def parent():
    """Make a graph here whose node is the agent there."""

    def make(remote, headers=None, **settings):
        builder = StateGraph(MessagesState, context_schema=dict)
        builder.add_node("agent", remote_node(remote, OFF | settings, headers=headers))
        return builder.add_edge(START, "agent").compile(checkpointer=InMemorySaver())

    return make


@pytest.fixture
def kim():
    return {"user_id": f"kim-{uuid4().hex[:6]}@example.com"}


async def test_a_client_uses_it_like_a_graph_of_its_own(remote, kim):
    place = {"configurable": {"thread_id": str(uuid4())}}
    context = kim | OFF
    await remote.ainvoke(user("My code is A-1."), place, context=context)
    words = [
        part["content"]
        async for part, _ in remote.astream(
            user("What is my code?"), place, context=context, stream_mode="messages"
        )
    ]
    assert "A-1" in "".join(words)
    held = (await remote.aget_state(place)).values["messages"]
    assert [one["type"] for one in held] == ["human", "ai", "human", "ai"]


async def test_as_a_node_it_has_each_message_once_and_compacts_its_own_history(parent, remote, kim):
    graph = parent(remote, compaction=COMPACTING)
    said = [f"My code is A-{number}." for number in range(5)]
    for text in said:
        await graph.ainvoke(user(text), thread(), context=kim)
    after = (await graph.aget_state(thread())).values["messages"]
    assert texts(after)[::2] == said
    assert len(after) == len({message.id for message in after}) == 10
    assert not any("summary of the conversation" in text for text in texts(after))
    answered = await graph.ainvoke(user("What is my code?"), thread(), context=kim)
    assert "A-4" in answered["messages"][-1].text


async def test_its_tokens_come_through_this_graph(parent, remote, kim):
    graph = parent(remote)
    words = []
    async for space, (part, _) in graph.astream(
        user("My code is A-1."), thread(), context=kim, stream_mode="messages", subgraphs=True
    ):
        if space and part["type"] == "AIMessageChunk":
            assert space[0].startswith("agent:")
            words.append(part["content"])
    assert "".join(words)


async def test_its_question_pauses_this_graph_and_takes_the_answer(parent, http_client, kim):
    graph = parent(RemoteGraph("slow", client=http_client))
    call = f"call ask_person {json.dumps({'question': 'Go?'})}"
    paused = await graph.ainvoke(user(call), thread(), context=kim)
    assert [one.value for one in paused["__interrupt__"]] == ["Go?"]
    after = await graph.ainvoke(Command(resume="yes"), thread(), context=kim)
    assert [m.type for m in after["messages"]] == ["human", "ai", "tool", "ai"]
    assert "yes" in after["messages"][2].text
    await graph.ainvoke(user(call), thread("t2"), context=kim)
    typed = await graph.ainvoke(user("My code is A-1."), thread("t2"), context=kim)
    assert typed["messages"][-1].type == "ai"


async def test_two_users_have_two_threads_there_and_nobody_has_none(parent, remote, kim):
    graph = parent(remote)
    await graph.ainvoke(user("My code is A-1."), thread("t1"), context=kim)
    other = kim | {"user_id": f"eve-{kim['user_id']}"}
    after = await graph.ainvoke(user("What is my code?"), thread("t2"), context=other)
    assert "A-1" not in after["messages"][-1].text
    with pytest.raises(MissingUserError, match="parent graph passes it"):
        await graph.ainvoke(user("hello"), thread("t3"), context={})


async def test_what_was_answered_while_nobody_listened_is_brought_and_not_asked_again(
    parent, remote, http_client, kim
):
    given = {"messages": [HumanMessage("My code is A-1.", id="q1")]}
    first = await parent(remote).ainvoke(given, thread(), context=kim)
    again = await parent(remote).ainvoke(given, thread(), context=kim)  # as if it had not come
    assert [message.id for message in again["messages"]] == [m.id for m in first["messages"]]
    (there,) = await http_client.threads.search(limit=1, sort_by="updated_at", sort_order="desc")
    assert [one["content"] for one in there["values"]["messages"]] == texts(first["messages"])


async def test_a_server_that_is_down_or_has_no_such_graph_is_named(parent, http_client, kim):
    async with httpx.AsyncClient(base_url="http://127.0.0.1:9") as nothing:
        down = RemoteGraph("everlong", client=LangGraphClient(nothing))
        with pytest.raises(RemoteAgentError, match=r"ConnectError.*See that the server runs"):
            await parent(down).ainvoke(user("hello"), thread(), context=kim)
    graph = parent(RemoteGraph("nobody", client=http_client))
    with pytest.raises(RemoteAgentError, match=r"'nobody'; got 4\d\d: "):
        await graph.ainvoke(user("hello"), thread(), context=kim)
    assert texts((await graph.aget_state(thread())).values["messages"]) == ["hello"]


async def test_a_model_of_this_process_is_no_setting_for_a_server(parent, remote, kim):
    with pytest.raises(InvalidInputError, match="`model`: expected a name that the server knows"):
        await parent(remote).ainvoke(
            user("hello"), thread(), context=kim | {"model": chat_model("offline")}
        )


async def test_a_server_that_knows_its_users_takes_their_token_and_refuses_without(
    parent, users_server, kim
):
    async with get_client(url=users_server.server.url, api_key=None) as client:
        remote = RemoteGraph("slow", client=client)
        own = parent(remote, headers=lambda runtime: bearer(runtime.context["user_id"]))
        after = await own.ainvoke(user("My code is A-1."), thread(), context=kim)
        assert after["messages"][-1].type == "ai"
        with pytest.raises(RemoteAgentError, match=r"got 401: .*`headers`"):
            await parent(remote).ainvoke(user("hello"), thread(), context=kim)
        forged = parent(remote, headers=lambda _: bearer("eve"))
        with pytest.raises(RemoteAgentError, match="got 404: "):
            await forged.ainvoke(user("What is my code?"), thread(), context=kim)
