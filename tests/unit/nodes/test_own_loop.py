import asyncio
import threading
from contextlib import suppress

from everlong.nodes.own_loop import OwnLoop


async def test_what_is_being_closed_is_closed_to_its_end_though_the_caller_is_cancelled():
    begun, ended = threading.Event(), threading.Event()

    async def ending():
        begun.set()
        await asyncio.sleep(0.2)
        ended.set()

    loop = OwnLoop("trial", ending)
    await loop.run(asyncio.sleep(0))
    closing = asyncio.create_task(loop.close())
    assert await asyncio.to_thread(begun.wait, 5)
    closing.cancel()
    with suppress(asyncio.CancelledError):
        await closing
    assert await asyncio.to_thread(ended.wait, 5)


async def test_the_next_work_after_a_close_begins_another_loop():
    async def ending():
        """Nothing is held."""

    async def where():
        return asyncio.get_running_loop()

    loop = OwnLoop("trial", ending)
    first = await loop.run(where())
    assert await loop.run(where()) is first
    await loop.close()
    assert await loop.run(where()) is not first
    await loop.close()
