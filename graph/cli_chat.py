"""What `everlong chat` does: read lines, run each in the thread, go on whatever fails."""

import asyncio
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from functools import partial

from everlong.graph.cli_chat_commands import is_command, obey
from everlong.graph.cli_loop import LoopThread, Stopped
from everlong.graph.cli_open import Tools, opened_agent, tools_of, where
from everlong.graph.cli_session import Session
from everlong.graph.cli_settings import context_for
from everlong.graph.runtime import Agent
from everlong.graph.terminal import out, put, waiting
from everlong.nodes.models import load

try:
    import readline
except ImportError:  # a Python without it reads lines all the same
    readline = None

HINT = "/help lists the commands. Ctrl-C stops an answer, Ctrl-D leaves."

CLOSE_SECONDS = 5


def chat(user: str, thread: str, *, tools: str | None, dsn: str | None, model: str | None) -> int:
    """Talk until the input ends; 1 where a message of a script was not answered."""
    interactive = bool(sys.stdin) and sys.stdin.isatty()
    context = context_for(user, model)
    line = Line(dsn=dsn, tools=tools_of(tools))
    with LoopThread() as loop:
        try:
            with waiting(f"Loading {context.model}"):
                loop.run(load(context.model))
            agent = loop.run(line.open())
            session = Session(agent=agent, context=context, thread_id=thread, reopen=line.open)
            _show_head(session, dsn, interactive=interactive)
            loop.run(session.greet())
            _talk(loop, session, interactive=interactive)
        except Stopped:
            raise KeyboardInterrupt from None
        finally:
            _close(loop, line)
    return 1 if session.has_failed and not interactive else 0


def _close(loop: LoopThread, line: "Line") -> None:
    try:
        loop.run(line.close())
    except Stopped:
        raise KeyboardInterrupt from None


@dataclass(kw_only=True)
class Line:
    """The agent on its database, which may be opened again after a loss."""

    dsn: str | None
    tools: Tools
    _open: AsyncExitStack = field(default_factory=AsyncExitStack)

    async def open(self) -> Agent:
        """Open the agent with connections of its own; the embedded server is started if it ended.

        After a loss that is surer than the old pool: the embedded server may have to be started.
        """
        opening = AsyncExitStack()
        agent = await opening.enter_async_context(opened_agent(self.dsn, self.tools))
        await self.close()
        self._open = opening
        return agent

    async def close(self) -> None:
        """Close what is open; a database that does not answer holds nobody back."""
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._open.aclose()


def _show_head(session: Session, dsn: str | None, *, interactive: bool) -> None:
    context = session.context
    about = f"thread {session.thread_id}, user {context.user_id}, model {context.model}"
    put(f"  {about}, {where(dsn)}", lead="everlong", lead_style="bold cyan", indent="  ")
    if interactive:
        put(f"  {HINT}", style="dim")


def _talk(loop: LoopThread, session: Session, *, interactive: bool) -> None:
    """Hand on line by line; Ctrl-C stops the answer, and in a script everything."""
    for line in _typed(session) if interactive else _piped():
        if line.strip() == "/exit":
            break
        try:
            work = partial(obey if is_command(line) else Session.hear, session, line)
            loop.run(session.survive(work))
        except Stopped:
            if not interactive:
                raise
            session.view.note("stopped")
            loop.run(session.survive(session.settle))
    session.leave()


def _typed(session: Session) -> Iterator[str]:
    """Yield what a person types, until Ctrl-D, or Ctrl-C where nothing is typed yet."""
    while True:
        put()
        try:
            line = input(_prompt("answer › " if session.is_asked else "› "))
        except EOFError:
            put()
            return
        except KeyboardInterrupt:
            put()
            if readline is None or not readline.get_line_buffer():
                return
        else:
            yield line


def _prompt(text: str) -> str:
    """Return the prompt in colour; readline has to be told what takes no room."""
    if readline is None or out.color_system is None:
        return text
    return f"\001\033[1;36m\002{text}\001\033[0m\002"


def _piped() -> Iterator[str]:
    for line in sys.stdin or ():  # none where a shell has closed it
        yield line.rstrip("\n")
