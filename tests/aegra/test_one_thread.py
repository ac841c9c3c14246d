"""Runs that come to one thread together: aegra starts them all, and each keeps its turn."""

import asyncio
from uuid import uuid4

import pytest

from http_thread import HttpThread, said

NO_MEMORY = {"memory": {"enabled": False}}
RUNS = 6


@pytest.mark.parametrize("strategy", ["enqueue", "reject", "interrupt", "rollback"])
async def test_six_runs_of_one_thread_all_keep_their_turn(connect, strategy):
    user = f"kim-{uuid4().hex[:6]}"
    clients = [connect(user, server=i) for i in (0, 1)]
    thread = await HttpThread.new(clients[0], NO_MEMORY, "slow")
    asked = [f'Wish {i}: call slow_tool {{"seconds": 0.2}}' for i in range(RUNS)]
    outputs = await asyncio.gather(
        *(
            clients[i % 2].runs.wait(
                thread.thread_id,
                "slow",
                input=said(text),
                context=NO_MEMORY,
                multitask_strategy=strategy,
            )
            for i, text in enumerate(asked)
        )
    )
    answer = ["slow_tool", "waited 0.2 s", "slow_tool returned: waited 0.2 s"]
    found = await thread.texts()
    order = [text for text in found if text in asked]
    assert sorted(order) == asked
    assert found == [text for one in order for text in (one, *answer)]
    assert sorted(len(output["messages"]) for output in outputs) == [4, 8, 12, 16, 20, 24]
