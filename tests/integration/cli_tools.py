"""Tools for a chat of the tests: slow, waiting, long, with an effect, asking."""

import asyncio
from pathlib import Path

from langgraph.types import interrupt


async def slow(seconds: float) -> str:
    """Wait for so many seconds."""
    await asyncio.sleep(seconds)
    return f"waited {seconds} s"


async def wait_for(path: str) -> str:
    """Wait until there is a file."""
    while not Path(path).exists():  # noqa: ASYNC110, ASYNC240 - of another process
        await asyncio.sleep(0.01)
    return "it is there"


def book(path: str) -> str:
    """Add a line to a file: whoever does it twice is found out."""
    with Path(path).open("a", encoding="utf-8") as file:
        file.write("booked\n")
    return "booked"


def big(characters: int) -> str:
    """Return a long text."""
    return "x" * characters


def send_mail(to: str) -> str:
    """Send a mail when a person agrees."""
    return f"mail to {to}: {interrupt({'ask': f'Send the mail to {to}?'})}"


TOOLS = [slow, wait_for, book, big, send_mail]
