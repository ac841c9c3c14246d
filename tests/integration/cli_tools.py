"""Tools for a chat of the tests: slow, long, and one that asks a person."""

import asyncio

from langgraph.types import interrupt


async def slow(seconds: float) -> str:
    """Wait for so many seconds."""
    await asyncio.sleep(seconds)
    return f"waited {seconds} s"


def big(characters: int) -> str:
    """Return a long text."""
    return "x" * characters


def send_mail(to: str) -> str:
    """Send a mail when a person agrees."""
    return f"mail to {to}: {interrupt({'ask': f'Send the mail to {to}?'})}"


TOOLS = [slow, big, send_mail]
