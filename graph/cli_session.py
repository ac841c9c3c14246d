"""One conversation at a terminal: what a line does, and how it goes on after a failure."""

import json
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.types import Command, Interrupt, StateSnapshot

from everlong.graph.cli_chat_commands import is_command, obey
from everlong.graph.cli_chat_view import View
from everlong.graph.cli_errors import trace
from everlong.graph.runtime import Agent
from everlong.graph.terminal import put_error
from everlong.graph.wrapping import shortened
from everlong.nodes.context import Context
from everlong.nodes.errors import InvalidInputError
from everlong.nodes.models import explain
from everlong.stores.diagnosis import DATABASE_ERRORS, reason_of

MODES = ["messages", "custom", "updates"]
UNFINISHED = "The last call did not come to its end; an empty line goes on with it."


@dataclass(kw_only=True)
class Turn:
    """A line that has to be answered; it stays until it is."""

    text: str
    given: Any
    arrived: Callable[[StateSnapshot], bool]
    """Whether the thread holds it."""
    tried: bool = False


@dataclass(kw_only=True)
class Session:
    """A thread of a user, as a person talks with it."""

    agent: Agent
    context: Context
    thread_id: str
    revive: Callable[[], Awaitable[None]]
    """Do what can be done here about a database that has gone away."""
    view: View = field(default_factory=View)
    has_failed: bool = False
    """A line was not answered."""
    _turns: deque[Turn] = field(default_factory=deque[Turn])
    _interrupts: list[Interrupt] = field(default_factory=list[Interrupt])
    _unfinished: bool = False
    _lost: bool = False

    @property
    def config(self) -> RunnableConfig:
        """The thread's configuration."""
        return {"configurable": {"thread_id": self.thread_id}}

    @property
    def is_asked(self) -> bool:
        """Whether the next line is the answer to an approval."""
        return bool(self._interrupts)

    async def snapshot(self) -> StateSnapshot:
        """Return the thread as it is stored."""
        return await self.agent.aget_state(self.config)

    async def greet(self) -> None:
        """Show the thread as it was left.

        Raises:
            InvalidInputError: it is another user's.
        """
        found = await self.snapshot()
        if found.values.get("owner", self.context.user_id) != self.context.user_id:
            msg = (
                f"`--thread`: {self.thread_id!r} is not a thread of {self.context.user_id!r}. "
                "Use an id of your own; a new id begins a new thread."
            )
            raise InvalidInputError(msg)
        if messages := found.values.get("messages"):
            self.view.resumed(messages, int(found.values.get("archived", {}).get("count", 0)))
        self._unfinished = bool(found.next) and not found.interrupts
        if self._unfinished:
            self.view.note(UNFINISHED)
        self._wait_for(found.interrupts)

    async def hear(self, line: str) -> None:
        """Do what a line says; a failure is told in one line, and the next line works again."""
        try:
            await self._hear(line)
        except DATABASE_ERRORS as error:
            self._tell_lost(error)
        except Exception as error:  # noqa: BLE001 - whatever fails, the conversation goes on
            self._tell_failed(error)
        finally:
            self.view.end()

    def leave(self) -> None:
        """Say what is left unanswered."""
        for turn in self._turns:
            put_error(f"not answered, and perhaps not saved: {shortened(turn.text, 60)!r}")

    async def _hear(self, line: str) -> None:
        if self._lost:
            await self.revive()
        if is_command(line):
            await obey(line, self)
            return
        again = not line.strip() or (bool(self._turns) and line == self._turns[-1].text)
        if not again:
            self._turns.append(self._turn(line))
        elif not self._turns and self._unfinished:
            await self.run(None)
        while self._turns:
            await self._answer(self._turns[0])

    def _turn(self, line: str) -> Turn:
        """Take a line for the answer to an approval that waits, else for a message."""
        if not self._interrupts:
            ident = str(uuid4())
            return Turn(
                text=line,
                given={"messages": [HumanMessage(line, id=ident)]},
                arrived=lambda found: ident in [m.id for m in found.values.get("messages", ())],
            )
        asked = self._interrupts.pop(0)
        return Turn(
            text=line,
            given=Command(resume={asked.id: _resume_value(line)}),
            arrived=lambda found: asked.id not in [one.id for one in found.interrupts],
        )

    async def _answer(self, turn: Turn) -> None:
        """Run a turn; after a loss of the database, from where the thread stands."""
        given = turn.given
        try:
            if turn.tried:
                found = await self.snapshot()
                given = None if turn.arrived(found) else given
                if given is None and not found.next:
                    self.view.repeat(found.values["messages"][-1])
                    return
            await self.run(given)
        except DATABASE_ERRORS:
            turn.tried = True
            raise
        finally:
            if not turn.tried
        self._turns.popleft()
