"""A thread as an earlier release has left it: with a summary, and a call that waits for a person.

`tests/samples/thread-before-0.1.0.json` has the rows that it wrote for kim-of-before.
"""

import base64
import json
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from langgraph.types import Command
from psycopg.types.json import Jsonb

from everlong.graph.agent import build
from everlong.nodes.errors import InvalidInputError
from everlong.stores.postgres import open_stores
from fix_users import QUIET_MEMORY, Asker, run
from http_thread import said
from slow_graph import ask_person

SAMPLE = Path(__file__).parents[1] / "samples" / "thread-before-0.1.0.json"
KIM = "kim-of-before"
CONTEXT: dict[str, Any] = QUIET_MEMORY | {"user_id": KIM}
ANSWERED = "ask_person returned: the person said yes"
CODE_AGAIN = "What is my code?"
CODE = "You said: my code is A-1."


def load(dsn: str) -> str:
    """Put the recorded rows into a database, under a new id, and return it."""
    thread_id = str(uuid4())
    with psycopg.connect(dsn) as connection:
        for table, rows in json.loads(SAMPLE.read_text("utf-8")).items():
            for row in rows:
                values = [thread_id, *map(_stored, row.values())]
                names, places = ", ".join(["thread_id", *row]), ", ".join(["%s"] * len(values))
                insert: Any = f"INSERT INTO {table} ({names}) VALUES ({places})"  # noqa: S608 - ours
                connection.execute(insert, values)
    return thread_id


def _stored(value: Any) -> Any:
    if isinstance(value, dict):
        return base64.b64decode(value["base64"]) if "base64" in value else Jsonb(value)
    return value


async def test_a_program_goes_on_with_it_and_lets_nobody_else_in(dsn):
    config: Any = {"configurable": {"thread_id": load(dsn)}}
    async with open_stores(dsn, pool_size=2) as stores:
        graph = build(tools=[ask_person]).compile(checkpointer=stores.saver, store=stores.store)
        before = await graph.aget_state(config)
        assert before.next == ("tools",)
        for given in (said("Let me in."), Command(resume="yes")):
            with pytest.raises(InvalidInputError, match="is not a thread of 'eve'"):
                await graph.ainvoke(given, config, context=CONTEXT | {"user_id": "eve"})
        assert await graph.aget_state(config) == before
        came = await graph.ainvoke(Command(resume="yes"), config, context=CONTEXT)
        assert came["messages"][-1].text == ANSWERED
        came = await graph.ainvoke(said(CODE_AGAIN), config, context=CONTEXT)
    kept = [message.id for message in before.values["messages"]]
    assert [message.id for message in came["messages"]][: len(kept)] == kept
    assert came["messages"][-1].text == CODE


def test_a_server_goes_on_with_it_and_lets_nobody_else_in(users_server):
    thread_id = load(users_server.dsn)
    kim, eve = (Asker(server=users_server.server, user_id=name) for name in (KIM, "eve"))
    assert eve.ask("POST", "/threads", {"thread_id": thread_id}).status_code == 409
    kim.get("POST", "/threads", {"thread_id": thread_id, "metadata": {"graph_id": "slow"}})
    before = kim.get("GET", f"/threads/{thread_id}/state")
    assert before["next"] == ["tools"]
    place = f"/threads/{thread_id}/runs/wait"
    assert eve.ask("POST", place, run()).status_code == 404
    assert kim.get("GET", f"/threads/{thread_id}/state") == before
    answered = run() | {"input": None, "command": {"resume": "yes"}}
    assert kim.get("POST", place, answered)["messages"][-1]["content"] == ANSWERED
    came = kim.get("POST", place, run(CODE_AGAIN))
    kept = [message["id"] for message in before["values"]["messages"]]
    assert [message["id"] for message in came["messages"]][: len(kept)] == kept
    assert came["messages"][-1]["content"] == CODE
