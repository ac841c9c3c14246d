"""One conversation at a terminal: what a line does, and how it goes on after a failure."""

import json
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, cast
from uuid import uuid4

from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.types import Command, Interrupt, StateSnapshot

from everlong.graph.cli_chat_view import View
from everlong.graph.cli_errors import one_line, trace
from everlong.graph.runtime import Agent
from everlong.graph.terminal import put_error
from everlong.graph.wrapping import shortened
from everlong.nodes.approval import refused_answer
from everlong.nodes.context import Context
from everlong.nodes.errors import InvalidInputError
from everlong.nodes.models import explain
from everlong.stores.diagnosis import DATABASE_ERRORS, STORE_ERROR
from everlong.stores.dsn import reason_of

MODES = ["messages", "custom", "updates"]
STAYS = "(the question stays in the conversation; an empty line asks it again)"
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
    reopen: Callable[[], Awaitable[Agent]]
    """Open the agent again, after its database had gone away."""
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
        with self.view.looking():
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

    async def survive(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do what a line says; a failure is told in one line, and the next line works again."""
        try:
            if self._lost:
                self.agent = await self.reopen()
            await work()
            self._lost = False
        except BrokenPipeError:  # nobody reads any more
            raise
        except DATABASE_ERRORS as error:
            self._tell_lost(error)
        except Exception as error:  # noqa: BLE001 - whatever fails, the conversation goes on
            await self._tell_failed(error)

    async def hear(self, line: str) -> None:
        """Answer what was left unanswered, then the line; an empty or the same one tries again."""
        if line.strip() and [turn.text for turn in self._turns] != [line]:
            self._turns.append(self._turn(line))
        elif not self._turns and self._unfinished:
            await self.run(None)
        while self._turns:
            turn = self._turns[0]
            try:
                await self._answer(turn)
            except DATABASE_ERRORS:
                turn.tried = True
                raise
            except BaseException:
                self._turns.popleft()
                raise
            self._turns.popleft()

    async def settle(self) -> None:
        """See where the thread stands after a run that did not come to its end."""
        found = await self.snapshot()
        self._unfinished = bool(found.next) and not found.interrupts
        if self._unfinished:
            self.view.note(STAYS)
        self._wait_for(found.interrupts)

    def leave(self) -> None:
        """Say what is left unanswered."""
        for turn in self._turns:
            self.has_failed = True
            put_error(f"not answered, and perhaps not saved: {shortened(turn.text, 60)!r}")

    async def run(self, given: Any) -> None:
        """Run the graph on the thread, and show it."""
        self.view.begin()
        try:
            streaming = self.agent.astream(
                given, self.config, context=self.context, stream_mode=MODES
            )
            async with aclosing(cast("AsyncGenerator[Any]", streaming)) as parts:
                async for mode, part in parts:
                    self.view.show(mode, part)
        finally:
            self.view.end()
        self._unfinished = False
        self._wait_for(self.view.interrupts)

    async def _answer(self, turn: Turn) -> None:
        """Run a turn; after a loss of the database, from where the thread stands."""
        found = await self.snapshot() if turn.tried else None
        if found is None or not turn.arrived(found):
            await self.run(turn.given)
        elif found.next:
            await self.run(None)
        else:
            self.view.repeat(found.values["messages"][-1])

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

    def _wait_for(self, interrupts: Sequence[Interrupt]) -> None:
        self._interrupts = list(interrupts)
        if self._interrupts:
            self.view.asked(self._interrupts[0], len(self._interrupts))

    def _tell_lost(self, error: BaseException) -> None:
        trace(error)
        self._lost = True
        kept = "your message is kept here and goes first with the next line, or an empty one"
        what = kept if self._turns else "try again"
        put_error(f"the database does not answer ({shortened(reason_of(error), 200)}); {what}.")

    async def _tell_failed(self, error: Exception) -> None:
        trace(error)
        self.has_failed = True
        ours = isinstance(error, STORE_ERROR)
        said = refused_answer(error)
        put_error(said or (one_line(error) if ours else explain(error, self.context.model)))
        try:
            await self.settle()
        except STORE_ERROR as lost:
            self._tell_lost(lost)


def _resume_value(line: str) -> Any:
    """Return an object or a list where the line is one in JSON; else its text."""
    try:
        value: Any = json.loads(line)
    except ValueError:
        return line
    return cast("Any", value) if isinstance(value, dict | list) else line
