"""Who plays in a random session: the models, as they were told to behave, and tools that count."""

import asyncio
from collections import Counter, deque
from collections.abc import Sequence
from typing import Any

from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.tools import BaseTool, tool
from langgraph.types import interrupt

from everlong.nodes.context import Context
from everlong.nodes.request import system_message
from everlong.nodes.state import nothing_injected
from everlong.nodes.tokens import estimate_message, estimate_messages
from everlong.nodes.toolbox import Toolbox
from scripted_model import Answer, ScriptedModel, calling, kind_of

TOO_LONG = "the prompt is too long"
NAMING = TOO_LONG + ": maximum context length is {} tokens"
SLACK_TOKENS = 50
"""What a provider's frame around the system prompt may take."""
FOREVER = 3_600.0
BAD_KEY = ValueError("401 bad key")
"""An error that no second try would mend."""
SUMMARIES: dict[str, Answer] = {
    "good": "## SESSION INTENT\nThey count herons.\n## SUMMARY\nMost are counted.",
    "fails": BAD_KEY,
    "empty": " \n",
    "too long": "word " * 9_000,
    "hangs": FOREVER,
    "cut off": AIMessage("They count", response_metadata={"finish_reason": "length"}),
    "calls a tool": calling(("fetch", {"number": 0, "size": 1}), prefix="s"),
}


class Cast:
    """The models and tools of one session."""

    def __init__(self) -> None:
        self.model = ScriptedModel(script=self._play)
        self.answers: deque[Answer] = deque()
        """What the user's model says next; then it only confirms."""
        self.summary = "good"
        self.flush_fails = False
        self.hangs_at = ""
        """Kind of request, or `tool`, at which the next call hangs until it is cancelled."""
        self.hanging = asyncio.Event()
        self.ran: Counter[int] = Counter()
        """How often the call of a number has come to its end."""
        self.results: dict[str, str] = {}
        """What each call has returned, whole, by what it begins with."""
        self.number = 0
        self.window = 0
        """What the provider takes, in tokens as everlong counts them."""
        self.refused = 0
        """How often it has refused a request of its own accord."""
        self.refused_inside: list[tuple[str, int]] = []
        """Kind and tokens of everlong's own requests that it has refused."""
        self._schemas = 0
        self.tools: Sequence[BaseTool] = self._tools()

    def serve(self, context: Context) -> None:
        """Be the provider of a run's model: refuse what is over its window."""
        box = Toolbox(self.tools)
        self.window = context.compaction.window_tokens
        system = estimate_message(system_message(context, (), box.offered(context)))
        self._schemas = box.fixed_tokens(context, nothing_injected()) - system

    def size_of(self, messages: Sequence[BaseMessage]) -> int:
        """Return the tokens of a request with the tools."""
        return estimate_messages(messages) + self._schemas

    def _play(self, messages: list[BaseMessage]) -> Answer:
        kind = kind_of(messages)
        if kind == "answer" and self.answers and isinstance(self.answers[0], Exception):
            return self.answers.popleft()
        size = self.size_of(messages) - (0 if self.model.tools[-1] else self._schemas)
        if size > self.window + SLACK_TOKENS:
            self.refused += kind == "answer"
            self.refused_inside += [] if kind == "answer" else [(kind, size)]
            return ContextOverflowError(NAMING.format(self.window))
        if kind == self.hangs_at:
            self.hanging.set()
            return FOREVER
        if kind == "summary":
            return SUMMARIES[self.summary]
        if kind == "flush":
            return BAD_KEY if self.flush_fails else "NO_REPLY"
        return self.answers.popleft() if self.answers else "Noted."

    def batch(self, sizes: Sequence[int], *, asks: bool = False) -> AIMessage:
        """Return an assistant message with a call for each size, and one that needs a person."""
        calls: list[tuple[str, dict[str, Any]]] = []
        for size in sizes:
            self.number += 1
            calls.append(("fetch", {"number": self.number, "size": size}))
        if asks:
            self.number += 1
            calls.append(("approve", {"number": self.number}))
        return calling(*calls, prefix=f"c{self.number}")

    def _ends(self, number: int, text: str) -> str:
        self.ran[number] += 1
        self.results[f"r{number}:"] = text
        return text

    def _tools(self) -> list[BaseTool]:
        cast = self

        @tool
        async def fetch(number: int, size: int) -> str:
            """Fetch a text."""
            if cast.hangs_at == "tool" and size > 1_000:
                cast.hanging.set()
                await asyncio.sleep(FOREVER)
            line = f"row {number}, value {number * 7}\n"
            return cast._ends(number, f"r{number}:" + (line * (size // len(line) + 1))[:size])

        @tool
        async def approve(number: int) -> str:
            """Do what needs a person's word."""
            answer = interrupt({"ask": number})
            return cast._ends(number, f"r{number}: {answer}")

        return [fetch, approve]
