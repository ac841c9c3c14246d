"""Users of aegra: each is who the token says, and reaches nothing of another's."""

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import uuid4

import httpx
import pytest
from langgraph_sdk.errors import NotFoundError, PermissionDeniedError

from bearer_tokens import bearer
from fix_users import filled
from http_thread import HttpThread, RunFailedError, said

CODE = "My code is A-1."
CODE_AGAIN = "What is my code?"


@pytest.fixture
def kim() -> str:
    return f"kim-{uuid4().hex[:6]}"


@pytest.fixture
async def kims(connect, kim) -> HttpThread:
    """Return a thread in which kim has said something that is remembered."""
    thread = await HttpThread.new(connect(kim), {}, "everlong")
    await thread.say(CODE)
    return thread


async def test_without_a_token_there_is_nothing(pair):
    async with httpx.AsyncClient(base_url=pair.servers[0].url) as http:
        for given in ({}, {"Authorization": "Bearer x"}, {"x-auth-scheme": "langsmith"}):
            for path in ("threads", "threads/search", "assistants/search", "runs/wait"):
                answer = await http.post(f"/{path}", json={}, headers=given)
                assert answer.status_code == 401, path


async def test_another_users_thread_is_not_found(connect, kims):
    eve, thread_id = connect("eve"), kims.thread_id
    calls: list[Callable[[], Awaitable[Any]]] = [
        lambda: eve.threads.get(thread_id),
        lambda: eve.threads.get_state(thread_id),
        lambda: eve.threads.get_history(thread_id),
        lambda: eve.threads.update_state(thread_id, {"messages": []}),
        lambda: eve.threads.update(thread_id, metadata={"everlong_owner": "eve"}),
        lambda: eve.threads.delete(thread_id),
        lambda: eve.runs.create(thread_id, "everlong", input=said("Hi.")),
        lambda: HttpThread(client=eve, thread_id=thread_id, context={}).say("Hi."),
    ]
    for call in calls:
        with pytest.raises((NotFoundError, httpx.HTTPStatusError), match=r"404|not found"):
            await call()
    assert await eve.runs.list(thread_id) == []
    assert await eve.threads.search(metadata={"graph_id": "everlong"}) == []
    assert await kims.texts() == [CODE, "Confirmed."]


ROUTES: list[tuple[str, str, Any]] = [
    ("GET", "", None),
    ("PATCH", "", {"metadata": {"note": 1}}),
    ("GET", "/state", None),
    ("GET", "/state?subgraphs=true", None),
    ("GET", "/state/{checkpoint}", None),
    ("POST", "/state", {"values": said("mine")}),
    ("POST", "/state/checkpoint", {"checkpoint": {"checkpoint_id": "{checkpoint}"}}),
    ("GET", "/history", None),
    ("POST", "/history", {"limit": 10}),
    ("GET", "/runs", None),
    ("GET", "/runs/{run}", None),
    ("PATCH", "/runs/{run}", {"run_id": "{run}", "status": "interrupted"}),
    ("GET", "/runs/{run}/join", None),
    ("GET", "/runs/{run}/stream", None),
    ("POST", "/runs/{run}/cancel", None),
    ("DELETE", "/runs/{run}", None),
    ("POST", "/runs/crons", {"schedule": "0 0 1 1 *", "assistant_id": "everlong", "input": {}}),
    ("POST", "/stream/events", {"channels": ["values"]}),
    ("POST", "/commands", {"id": 1, "method": "agent.getTree", "params": {}}),
    ("DELETE", "", None),
]
"""Every route of a thread that its owner may use, but those that begin a run."""
OPEN = ("/stream/events", "/commands")
"""What aegra answers for a thread that is not there yet, too, and which is then the asker's."""


async def test_every_route_answers_as_for_a_thread_that_is_not_there(pair, connect, kims):
    thread_id = kims.thread_id
    (run,) = await kims.client.runs.list(thread_id)
    checkpoint = (await kims.state())["checkpoint"]["checkpoint_id"]
    ids = {"run": run["run_id"], "checkpoint": checkpoint}
    async with httpx.AsyncClient(
        base_url=pair.servers[1].url, headers=bearer("eve"), timeout=30
    ) as http:
        for method, route, body in ROUTES:
            answers: list[tuple[int, str]] = []
            for place in (thread_id, str(uuid4())):
                path, given = filled([route, body], ids)
                came = await http.request(method, f"/threads/{place}{path}", json=given)
                answers.append((came.status_code, came.text.replace(place, "this one")))
            assert answers[0][0] == 404 or answers[0][1] == "[]", route
            assert answers[0] == answers[1] or route in OPEN, route
        for path in ("/threads/prune", "/runs/cancel"):
            given = {"thread_ids": [thread_id], "thread_id": thread_id, "run_ids": [run["run_id"]]}
            came = await http.post(path, json=given)
            assert came.status_code == 404 or not any(came.json().values()), path
    assert await kims.texts() == [CODE, "Confirmed."]
    assert len(await kims.client.runs.list(thread_id)) == 1


@pytest.mark.parametrize("path", ["/mcp", "/mcp/", "/a2a/everlong", "/.well-known/agent-card.json"])
async def test_no_door_is_open_beside_those_that_know_the_users(pair, path):
    async with httpx.AsyncClient(base_url=pair.servers[0].url, headers=bearer("eve")) as http:
        assert {(await http.request(one, path)).status_code for one in ("GET", "POST")} == {404}


@pytest.mark.parametrize(
    "forged",
    [
        lambda kim, _: {"context": {"user_id": kim}},
        lambda kim, _: {"config": {"configurable": {"user_id": kim}}},
        lambda kim, _: {"config": {"metadata": {"everlong_owner": kim}}},
        lambda kim, thread_id: {
            "config": {
                "configurable": {
                    "thread_id": thread_id,
                    "langgraph_auth_user": {"identity": kim},
                    "langgraph_auth_user_id": kim,
                }
            }
        },
        lambda kim, thread_id: {"checkpoint": {"thread_id": thread_id, "checkpoint_ns": ""}},
        lambda kim, _: {"metadata": {"everlong_owner": kim, "owner": kim}},
        lambda kim, _: {"headers": {"x-user-id": kim, "x-forwarded-user": kim, "x-user": kim}},
    ],
)
async def test_who_claims_to_be_another_user_stays_who_the_token_says(connect, kim, kims, forged):
    eve = f"eve-{uuid4().hex[:6]}"
    thread = await HttpThread.new(connect(eve), {}, "everlong")
    came = await outcome(thread, **forged(kim, kims.thread_id))
    assert "A-1" not in came
    assert await kims.texts() == [CODE, "Confirmed."]
    found = await connect(eve).store.search_items(["users", eve], limit=100)
    assert "A-1" not in str(found)


async def outcome(thread: HttpThread, **options: Any) -> str:
    """Ask for the code, and return what came: the answer, or the refusal."""
    try:
        return await thread.say(CODE_AGAIN, **options)
    except (RunFailedError, httpx.HTTPStatusError) as error:
        return str(error)


async def test_an_assistant_makes_nobody_another_user(connect, kim):
    eve = connect("eve")
    with pytest.raises(PermissionDeniedError, match="user_id"):
        await eve.assistants.create("everlong", context={"user_id": kim})
    made = await eve.assistants.create("everlong", metadata={"everlong_owner": kim})
    assert made["metadata"]["everlong_owner"] == "eve"
    with pytest.raises(NotFoundError):
        await connect(kim).assistants.get(made["assistant_id"])


@pytest.mark.parametrize("stranger", ["eve", "*", "%", "kim-", "{kim}.memory", "{kim}/memory"])
async def test_the_store_routes_reach_nothing_of_another_user(connect, kim, kims, stranger):
    store = connect(stranger.format(kim=kim)).store
    asked: list[list[str]] = [[], ["users"], ["users", kim], ["users", kim, "memory"], ["*"]]
    found: list[Any] = []
    for namespace in asked:
        for call in (
            store.search_items(namespace, limit=100),
            store.list_namespaces(namespace, limit=100),
            store.get_item(namespace or ["memory"], key="MEMORY.md"),
        ):
            try:
                found.append(await call)
            except httpx.HTTPError as error:
                found.append(str(error) if "A-1" in str(error) else "")
    assert kim not in str(found)
    assert "A-1" not in str(found)


async def test_each_user_reads_the_own_records_and_nobody_writes_any(connect, kim, kims):
    store = connect(kim, server=1).store
    assert "A-1" in str(await store.get_item(["users", kim, "memory"], key="MEMORY.md"))
    assert "A-1" in str(await store.search_items([], limit=100))
    assert ["users", kim, "memory"] in (await store.list_namespaces([]))["namespaces"]
    with pytest.raises(PermissionDeniedError, match="expected a read"):
        await store.put_item(["users", kim, "memory"], key="MEMORY.md", value={"text": "x"})
    with pytest.raises(PermissionDeniedError, match="expected a read"):
        await store.delete_item(["users", kim, "memory"], key="MEMORY.md")


async def test_an_address_is_a_user_with_a_memory_of_its_own(connect):
    name = uuid4().hex[:6]
    first, other = f"{name}@example.com", f"{name}@example.org"
    await (await HttpThread.new(connect(first), {}, "everlong")).say(CODE)
    answers = [
        await (await HttpThread.new(connect(one, server=1), {}, "everlong")).say(CODE_AGAIN)
        for one in (first, other)
    ]
    assert ["A-1" in answer for answer in answers] == [True, False]
