"""Who claims to be another user, in whatever place a request has, stays who the token names."""

from typing import Any
from uuid import uuid4

import pytest

from bearer_tokens import SECRET, token
from fix_users import SECRET_WORD, command, filled, run
from http_thread import said

FORGED: list[dict[str, Any]] = [
    {"context": {"user_id": "kim-of-the-plum"}},
    {"context": None, "config": {"configurable": {"user_id": "kim-of-the-plum"}}},
]
IGNORED: list[dict[str, Any]] = [
    {"metadata": {"everlong_owner": "kim-of-the-plum", "langgraph_auth_user_id": "kim"}},
    {"config": {"metadata": {"everlong_owner": "kim-of-the-plum"}}},
    {
        "context": None,
        "config": {
            "configurable": {
                "langgraph_auth_user": {"identity": "kim-of-the-plum", "is_authenticated": True},
                "langgraph_auth_user_id": "kim-of-the-plum",
                "everlong_owner": "kim-of-the-plum",
                "owner": "kim-of-the-plum",
                "memory": {"enabled": False},
            }
        },
    },
]
HEADERS = {
    "x-user-id": "kim-of-the-plum",
    "x-forwarded-user": "kim-of-the-plum",
    "x-auth-scheme": "langsmith",
    "x-everlong-owner": "kim-of-the-plum",
}
ELSEWHERE: list[dict[str, Any]] = [
    {"context": None, "config": {"configurable": {"thread_id": "{thread}", "checkpoint_ns": ""}}},
    {"checkpoint": {"thread_id": "{thread}", "checkpoint_ns": ""}},
    {"checkpoint": {"thread_id": "{thread}", "checkpoint_id": "{checkpoint}"}},
    {"checkpoint_id": "{checkpoint}"},
]
"""What names another's thread or checkpoint."""


@pytest.mark.parametrize("forged", FORGED)
@pytest.mark.parametrize(
    "path", ["/runs/wait", "/runs", "/runs/stream", "/threads/{own}/runs/wait"]
)
def test_a_run_for_another_user_is_refused_before_it_is_there(user, forged, path):
    bob = user("bob")
    own = bob.thread()
    came = bob.ask("POST", path.format(own=own), _without_none(run() | forged))
    assert came.status_code == 403
    assert "expected none, or that of the token; got 'kim-of-the-plum'" in came.text
    assert bob.get("GET", f"/threads/{own}/runs") == []
    assert bob.get("POST", "/threads/count", {}) == 1
    batch = bob.ask("POST", "/runs/batch", [_without_none(run() | forged)])
    assert batch.status_code == 403
    v2 = command("run.start", assistant_id="slow", input=said("x"), config=FORGED[1]["config"])
    assert "403" in bob.ask("POST", f"/threads/{own}/commands", v2).json()["message"]


def _without_none(body: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if value is not None}


@pytest.mark.parametrize("forged", IGNORED)
def test_what_else_claims_another_user_counts_for_nothing(user, forged):
    bob = user("bob")
    body = _without_none(run("My code is B-2.") | forged | {"on_completion": "keep"})
    came = bob.ask("POST", "/runs/wait?user_id=kim-of-the-plum", body, **HEADERS)
    assert (came.status_code, "__error__" in came.text) == (200, False)
    (row,) = bob.get("POST", "/threads/search", {})
    state = bob.get("GET", f"/threads/{row['thread_id']}/state")
    marks = (row["metadata"], state["metadata"])
    assert {state["values"]["owner"], *(one["everlong_owner"] for one in marks)} == {bob.user_id}


def test_a_run_goes_on_in_no_thread_but_its_own(user, kims):
    kim, ids = kims
    bob = user("bob")
    before = kim.everything(ids["thread"])
    own = bob.thread("Hello.")
    paths = [f"/threads/{own}/runs/wait"] * len(ELSEWHERE) + ["/runs/wait"]
    for path, named in zip(paths, [*ELSEWHERE, ELSEWHERE[0]], strict=True):
        body = _without_none(run("What is my code?") | filled(named, ids))
        assert SECRET_WORD not in bob.ask("POST", path, body).text, (named, path)
    read = {"checkpoint": {"thread_id": ids["thread"], "checkpoint_id": ids["checkpoint"]}}
    for path in (f"/threads/{own}/history", f"/threads/{own}/state/checkpoint"):
        assert SECRET_WORD not in bob.ask("POST", path, read).text
    assert kim.everything(ids["thread"]) == before


@pytest.mark.parametrize("graph", ["slow", "memory"])
def test_what_is_written_beside_a_run_is_marked_with_who_asks(user, graph):
    bob = user("bob")
    forged = {"everlong_owner": "kim-of-the-plum", "thread_id": str(uuid4()), "checkpoint_ns": ""}
    made = {"metadata": {"graph_id": graph}}
    thread_id = bob.get("POST", "/threads", made)["thread_id"]
    values = said("mine") if graph == "slow" else {"consolidate": "no"}
    bob.get("POST", f"/threads/{thread_id}/state", {"values": values, "checkpoint": forged})
    copy = bob.get("POST", f"/threads/{thread_id}/copy")["thread_id"]
    for place in (thread_id, copy):
        state = bob.get("GET", f"/threads/{place}/state")
        assert state["metadata"]["everlong_owner"] == bob.user_id


def test_what_is_written_beside_a_run_is_no_part_of_one(user):
    bob, eve = user("bob"), user("eve")
    thread_id, others = bob.thread("Hello."), eve.thread("Hello.")
    copy = bob.get("POST", f"/threads/{thread_id}/copy")["thread_id"]
    (ran,) = bob.get("GET", f"/threads/{thread_id}/runs")
    own = bob.get("GET", f"/threads/{thread_id}/state")["metadata"]
    assert own["run_id"] == ran["run_id"]
    edit = {"values": said("mine"), "checkpoint": {"run_id": ran["run_id"], "checkpoint_ns": ""}}
    eve.get("POST", f"/threads/{others}/state", edit)
    for asker, place in ((bob, copy), (eve, others)):
        assert "run_id" not in asker.get("GET", f"/threads/{place}/state")["metadata"]
    assert bob.ask("DELETE", f"/threads/{thread_id}/runs/{ran['run_id']}").status_code == 204
    assert not bob.get("GET", f"/threads/{thread_id}/state")["values"]
    assert len(bob.get("GET", f"/threads/{copy}/state")["values"]["messages"]) == 2


@pytest.mark.parametrize("as_node", ["__input__", "open_call"])
def test_a_thread_that_is_made_with_its_states_is_whose_request_it_is(user, as_node):
    bob, kim = user("bob"), user("kim")
    step = {"values": said("x") | {"owner": "kim-of-the-plum"}, "as_node": as_node}
    made = {"metadata": {"graph_id": "slow"}, "supersteps": [{"updates": [step]}]}
    came = bob.ask("POST", "/threads", made)
    assert (came.status_code, "whose thread it is" in came.text) == (400, True)
    empty = kim.get("POST", "/threads", {"metadata": {"graph_id": "slow"}})["thread_id"]
    step["values"] = said("Pay eve.")
    given = made | {"thread_id": empty, "if_exists": "do_nothing"}
    assert bob.ask("POST", "/threads", given).status_code in (404, 409)
    assert kim.get("GET", f"/threads/{empty}/state")["values"] == {}


@pytest.mark.parametrize(
    "headers",
    [
        {"x-auth-scheme": "langsmith"},
        {"x-api-key": "kim-of-the-plum"},
        {"x-user-id": "kim-of-the-plum", "x-forwarded-user": "kim-of-the-plum"},
        {"cookie": f"authorization=Bearer {token('kim-of-the-plum')}"},
        {"Authorization": f"Bearer {token('kim-of-the-plum', exp=1)}"},
        {"Authorization": f"Bearer {token('kim-of-the-plum', key=SECRET[::-1])}"},
        {"Authorization": f"Bearer {token('kim-of-the-plum', aud='another')}"},
        {"Authorization": f"Bearer {token('kim-of-the-plum', key=None, algorithm='none')}"},
    ],
)
@pytest.mark.parametrize("path", ["/threads/{thread}/state", "/memory?user_id=kim-of-the-plum"])
def test_no_header_lets_anyone_in_without_a_valid_token(user, kims, path, headers):
    came = user("").ask("GET", path.format(**kims[1]), **headers)
    assert came.status_code == 401
    assert "token" in came.json()["detail"]
    assert SECRET_WORD not in came.text


def test_a_thread_cannot_be_given_away_or_taken_over(user):
    bob = user("bob")
    made = {"metadata": {"everlong_owner": "kim-of-the-plum"}}
    thread_id = bob.get("POST", "/threads", made)["thread_id"]
    patched = bob.get("PATCH", f"/threads/{thread_id}", made)
    assert patched["metadata"]["everlong_owner"] == bob.user_id
    bob.get("POST", f"/threads/{thread_id}/runs/wait", run())
    edit = {"values": {"owner": "kim-of-the-plum"}}
    came = bob.ask("POST", f"/threads/{thread_id}/state", edit)
    assert (came.status_code, "whose thread it is" in came.text) == (400, True)
    jump = run() | {"input": None, "command": {"update": {"owner": "kim-of-the-plum"}}}
    came = bob.get("POST", f"/threads/{thread_id}/runs/wait", jump)
    assert "whose thread it is" in came["__error__"]["message"]
    state = bob.get("GET", f"/threads/{thread_id}/state")
    assert state["values"]["owner"] == bob.user_id
    copy = bob.get("POST", f"/threads/{thread_id}/copy")["thread_id"]
    assert bob.get("GET", f"/threads/{copy}")["metadata"]["everlong_owner"] == bob.user_id
