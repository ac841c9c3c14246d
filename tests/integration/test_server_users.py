"""Threads and runs of a server that knows its users: each reaches their own, and nothing else."""

import json
from contextlib import suppress
from typing import Any
from uuid import uuid4

import pytest
from langgraph.graph import START, MessagesState, StateGraph
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from bearer_tokens import bearer
from everlong.graph.agent import build
from everlong.stores.postgres import open_stores
from fix_users import QUIET_MEMORY, SECRET_WORD, Asker, command, filled, run
from http_thread import said
from slow_graph import ask_person

CRON = {"schedule": "* * * * *", "assistant_id": "slow", "input": {}}
EVENTS = {"channels": ["values"]}


ROUTES: list[tuple[str, str, Any]] = [
    ("GET", "", None),
    ("PATCH", "", {"metadata": {"everlong_owner": "bob", "note": 1}}),
    ("GET", "/state", None),
    ("GET", "/state?subgraphs=true", None),
    ("POST", "/state", {"values": {"messages": said("mine")["messages"]}}),
    ("GET", "/state/{checkpoint}", None),
    ("POST", "/state/checkpoint", {"checkpoint": {"checkpoint_id": "{checkpoint}"}}),
    ("GET", "/history", None),
    ("POST", "/history", {"limit": 10}),
    ("GET", "/storage", None),
    ("POST", "/copy", None),
    ("GET", "/runs", None),
    ("POST", "/runs", run()),
    ("POST", "/runs/wait", run()),
    ("POST", "/runs/stream", run()),
    ("POST", "/runs", run() | {"multitask_strategy": "rollback"}),
    ("GET", "/runs/{run}", None),
    ("GET", "/runs/{run}/join", None),
    ("GET", "/runs/{run}/stream", None),
    ("POST", "/runs/{run}/cancel", None),
    ("POST", "/runs/{run}/cancel?wait=true&action=rollback", None),
    ("DELETE", "/runs/{run}", None),
    ("POST", "/runs/crons", CRON),
    ("GET", "/stream", None),
    ("POST", "/stream/events", EVENTS),
    ("POST", "/commands", command("agent.getTree")),
    ("POST", "/commands", command("input.respond", interrupt_id="x", response="yes")),
    ("DELETE", "", None),
]
"""Every route of a thread of the server's own."""
OTHERWISE = {
    ("POST", "/copy"): 409,
    ("GET", "/storage"): 501,
    ("GET", "/stream"): 200,
    ("GET", "/runs/{run}/stream"): 200,
    ("POST", "/stream/events"): 200,
    ("POST", "/commands"): 200,
}
"""Where the server answers a thread that it does not know with something else than 404."""
SILENT = ("/stream/events", "/commands")
"""Of those, what says nothing of the thread at all; the others say 404 in the stream."""


@pytest.mark.parametrize(("method", "route", "body"), ROUTES)
def test_anothers_thread_is_one_that_is_not_there(user, kims, method, route, body):
    kim, ids = kims
    before = kim.everything(ids["thread"])
    answers: list[tuple[int, str]] = []
    for thread_id in (ids["thread"], str(uuid4())):
        asked, given = filled([route, body], ids)
        came = user("bob").ask(method, f"/threads/{thread_id}{asked}", given)
        answers.append((came.status_code, came.text.replace(thread_id, "this one")))
    assert answers[0] == answers[1]
    expected = OTHERWISE.get((method, route), 404)
    assert answers[0][0] == expected
    assert expected != 200 or route in SILENT or "404" in answers[0][1]
    assert SECRET_WORD not in answers[0][1]
    assert kim.everything(ids["thread"]) == before


def test_a_socket_shows_nothing_of_anothers_thread(user, users_server, kims):
    url = f"{users_server.server.url.replace('http', 'ws')}/threads/{kims[1]['thread']}"
    with pytest.raises(InvalidStatus), connect(f"{url}/stream/events"):
        pass
    own = bearer(user("bob").user_id)
    asked = ("subscription.subscribe", EVENTS), ("agent.getTree", {}), ("run.start", run())
    heard: list[str] = []
    with (
        suppress(TimeoutError, ConnectionClosed),
        connect(f"{url}/stream/events", additional_headers=own) as socket,
    ):
        for method, params in asked:
            socket.send(json.dumps(command(method, **params)))
        while True:
            heard.append(str(socket.recv(timeout=2)))
    assert SECRET_WORD not in str(heard)


def test_a_list_holds_ones_own_threads_alone(user, kims):
    bob = user("bob")
    own = bob.thread()
    for body in ({}, {"ids": [kims[1]["thread"], own]}, {"metadata": {"graph_id": "slow"}}):
        found = [one["thread_id"] for one in bob.get("POST", "/threads/search", body)]
        assert set(found) <= {own}
    assert bob.get("POST", "/threads/count", {}) == 1


def test_what_names_threads_or_runs_elsewhere_reaches_none_of_anothers(user, kims):
    kim, ids = kims
    bob = user("bob")
    own = bob.thread("Hello.")
    before = kim.everything(ids["thread"])
    tries = [
        ("POST", "/threads/prune", {"thread_ids": [ids["thread"]]}, 404),
        ("POST", "/threads/prune", {"thread_ids": [own, ids["thread"]]}, 404),
        ("POST", "/runs/cancel", {"status": "all"}, 404),
        ("POST", "/runs/cancel", {"thread_id": ids["thread"], "run_ids": [ids["run"]]}, 404),
        ("DELETE", f"/threads/{own}/runs/{ids['run']}", None, 404),
        ("GET", f"/threads/{own}/runs/{ids['run']}", None, 404),
        ("POST", "/threads", {"thread_id": ids["thread"]}, 409),
        ("POST", "/threads", {"thread_id": ids["thread"], "if_exists": "do_nothing"}, 409),
        ("POST", f"/threads/{ids['thread']}/runs", run() | {"if_not_exists": "create"}, 404),
    ]
    for method, path, body, code in tries:
        assert bob.ask(method, path, body).status_code == code, path
    come = bob.ask("POST", f"/threads/{ids['thread']}/commands", command("run.start", **run()))
    assert "404" in come.json()["message"]
    assert kim.everything(ids["thread"]) == before


def test_a_history_that_is_put_in_before_any_run_is_the_users_own(user):
    bob = user("bob")
    thread_id = bob.get("POST", "/threads", {"metadata": {"graph_id": "slow"}})["thread_id"]
    bob.get("POST", f"/threads/{thread_id}/state", {"values": said("My code is C-3.")})
    body = run("What is my code?") | {"if_not_exists": "create"}
    came = bob.get("POST", f"/threads/{thread_id}/runs/wait", body)
    assert came["messages"][-1]["content"] == "You said: my code is C-3."


def test_a_thread_from_before_the_server_knew_its_users_is_nobodys(user, users_server):
    old = users_server.old_thread
    for asker in (user("bob"), Asker(server=users_server.server, user_id="kim")):
        assert asker.ask("GET", f"/threads/{old}/state").status_code == 404
        assert asker.ask("POST", f"/threads/{old}/runs/wait", run()).status_code == 404
        assert asker.ask("POST", "/threads", {"thread_id": old}).status_code == 409


async def test_a_thread_that_only_the_database_knows_is_its_owners(user, users_server):
    """Of a program on the same database, or of a list of threads that was lost."""
    kim, bob = user("kim"), user("bob")
    thread_id, unowned = str(uuid4()), str(uuid4())
    async with open_stores(users_server.dsn, pool_size=2) as stores:
        graph = build().compile(checkpointer=stores.saver, store=stores.store)
        config: Any = {"configurable": {"thread_id": thread_id}}
        context: Any = {"user_id": kim.user_id, "memory": {"enabled": False}}
        await graph.ainvoke(said(f"My code is {SECRET_WORD}."), config, context=context)
        foreign = StateGraph(MessagesState).add_node("pass", lambda _: {}).add_edge(START, "pass")
        other: Any = {"configurable": {"thread_id": unowned}}
        await foreign.compile(checkpointer=stores.saver).ainvoke(said(SECRET_WORD), other)
    for asker, taken in ((bob, thread_id), (bob, unowned), (kim, unowned)):
        for if_exists in ("raise", "do_nothing"):
            made = {"thread_id": taken, "if_exists": if_exists}
            assert asker.ask("POST", "/threads", made).status_code == 409
        body = run() | {"if_not_exists": "create"}
        assert asker.ask("POST", f"/threads/{taken}/runs/wait", body).status_code == 404
        assert asker.ask("GET", f"/threads/{taken}/state").status_code == 404
    kim.get("POST", "/threads", {"thread_id": thread_id})
    came = kim.get("POST", f"/threads/{thread_id}/runs/wait", run("And now?"))
    assert [one["type"] for one in came["messages"]] == ["human", "ai", "human", "ai"]
    assert SECRET_WORD in came["messages"][0]["content"]


async def test_a_program_and_the_server_take_turns_on_a_thread(user, users_server):
    kim, thread_id = user("kim"), str(uuid4())
    config: Any = {"configurable": {"thread_id": thread_id}}
    context: Any = {"user_id": kim.user_id} | QUIET_MEMORY
    place, approved = f"/threads/{thread_id}/runs/wait", {"command": {"resume": "yes"}}
    async with open_stores(users_server.dsn, pool_size=2) as stores:
        graph = build(tools=[ask_person]).compile(checkpointer=stores.saver, store=stores.store)
        await graph.ainvoke(said('call ask_person {"question": "Go?"}'), config, context=context)
        kim.get("POST", "/threads", {"thread_id": thread_id})
        came = kim.get("POST", place, _without(run(), "input") | approved)
        assert came["messages"][-1]["content"] == "ask_person returned: the person said yes"
        came = await graph.ainvoke(said("My code is E-5."), config, context=context)
        assert [len(came["messages"]), came["messages"][-1].text] == [6, "Confirmed."]
    came = kim.get("POST", place, run("What is my code?"))
    found = [len(came["messages"]), came["messages"][-1]["content"]]
    assert found == [8, "You said: my code is E-5."]


def _without(body: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in body.items() if key != name}
