"""How a chat looks: the answer's words as they come, and a dim line for whatever else happens."""

import json
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langgraph.types import Interrupt

from everlong.graph.cli_events import line_of
from everlong.graph.terminal import Waiting, out, put
from everlong.graph.wrapping import Flow, Plain, shortened
from everlong.nodes.approval import question_in
from everlong.nodes.transcript import is_summary

HOW_TO_AGREE = (
    'Your next line is the answer: yes; no; no: why not; or a decision as JSON, such as {"type": '
    '"edit", "edited_action": {"args": {...}}}.'
)
TOOL_CHARS = 200
ECHO_CHARS = 600
LOOKING, THINKING, KEEPING, COMPACTING = (
    "asking the database",
    "thinking",
    "keeping what was said",
    "compacting",
)


class View:
    """Shows the runs of one chat."""

    def __init__(self) -> None:
        self.waiting = Waiting()
        self.interrupts: Sequence[Interrupt] = ()
        """What the last run waits for."""
        self._flow: Flow | Plain | None = None
        self._shown: set[str] = set()

    def begin(self) -> None:
        """Get ready for a run."""
        self.interrupts = ()
        self.waiting.begin(THINKING)

    @contextmanager
    def looking(self) -> Generator[None]:
        """Wait for the database."""
        self.waiting.begin(LOOKING)
        try:
            yield
        finally:
            self.waiting.end()

    def end(self) -> None:
        """Leave the line, however the run has ended."""
        self.waiting.end()
        self._end_words()

    def show(self, mode: str, part: Any) -> None:
        """Show a part of the run's stream."""
        if mode == "messages":
            message, about = part
            if isinstance(message, AIMessage) and about.get("langgraph_node") == "reason":
                self._words(str(message.id), message.text)
        elif mode == "custom":
            self._event(part)
        else:
            for node, update in part.items():
                self._update(node, update)

    def note(self, text: str) -> None:
        """Print a dim line."""
        self.end()
        put(f"  {text}", style="dim")

    def resumed(self, messages: Sequence[BaseMessage], archived: int) -> None:
        """Say what a thread holds that is there already, and how it ended."""
        spoken = [message for message in messages if message.type != "system"]
        held = f"{len(spoken)} message{'' if len(spoken) == 1 else 's'}"
        if any(is_summary(message) for message in spoken):
            held += " (one is a summary of older ones)"
        if archived > len(spoken):
            held += f"; its transcript holds {archived:,}"
        put(f"Resumed: the thread holds {held}.", style="dim", indent="  ")
        for who, text in _last_exchange(spoken):
            put(shortened(text, ECHO_CHARS), lead=f"  {who}: ", style="dim", indent="    ")

    def repeat(self, message: BaseMessage) -> None:
        """Show an answer that was stored and perhaps not seen."""
        if message.type == "ai" and str(message.id) not in self._shown:
            self._words(str(message.id), message.text)
        self.end()

    def asked(self, interrupt: Interrupt, left: int) -> None:
        """Show what waits for a person."""
        self.end()
        more = f" ({left} in all)" if left > 1 else ""
        text = question_in(interrupt.value)
        how = HOW_TO_AGREE if text else "Your next line is the answer."
        text = text or _said(interrupt.value)
        put(f"{text}", lead=f"  approval needed{more}: ", lead_style="bold yellow", indent="    ")
        put(f"  {how}", style="dim")

    def _words(self, ident: str, text: str) -> None:
        """Write what has come of an answer."""
        if not text:
            return
        if self._flow is None:
            self.waiting.end()
            write = out.file.write
            self._flow = Flow(write, width=out.width) if out.is_terminal else Plain(write)
        self._shown.add(ident)
        self._flow.feed(text)
        out.file.flush()

    def _end_words(self) -> None:
        if self._flow is not None:
            self._flow.end()
            if self._flow.is_mid_line:
                out.file.write("\n")
            out.file.flush()
            self._flow = None

    def _event(self, event: Mapping[str, Any]) -> None:
        self.note(f"· {line_of(event)}")
        kind = str(event.get("type"))
        after = COMPACTING if kind == "compaction.started" else THINKING
        self.waiting.begin(KEEPING if kind.startswith("memory.") else after)

    def _update(self, node: str, update: Any) -> None:
        if node == "__interrupt__":
            self.interrupts = update
        for message in _messages_in(update):
            if isinstance(message, ToolMessage) and node in ("tools", "_run_call"):
                self._result(message)
            elif isinstance(message, AIMessage) and node == "reason":
                self._answer(message)

    def _answer(self, message: AIMessage) -> None:
        """Show what was not streamed of an answer, and the calls that it makes."""
        if str(message.id) not in self._shown:
            self._words(str(message.id), message.text)
        if not message.text and not message.tool_calls:
            self.note("(an empty answer)")
        for call in message.tool_calls:
            given = ", ".join(f"{name}={_json(value)}" for name, value in call["args"].items())
            self.note(f"→ {call['name']}({shortened(given, TOOL_CHARS)})")
        self.end()
        self.waiting.begin(THINKING if message.tool_calls else KEEPING)

    def _result(self, message: ToolMessage) -> None:
        if str(message.id) in self._shown:
            return
        self._shown.add(str(message.id))
        said = shortened(message.text, TOOL_CHARS)
        self.note(f"← {'failed: ' if message.status == 'error' else ''}{said}")
        self.waiting.begin(THINKING)


def _messages_in(update: Any) -> Iterable[BaseMessage]:
    """Return the messages of what a node or a call of a tool has brought, in whatever form."""
    parts = cast("list[Any]", update if isinstance(update, list) else [update])
    for part in parts:
        if isinstance(part, BaseMessage):
            yield part
        elif isinstance(part, Mapping):
            found: Any = cast("Mapping[str, Any]", part).get("messages", ())
            yield from (one for one in found if isinstance(one, BaseMessage))


def _last_exchange(spoken: Sequence[BaseMessage]) -> list[tuple[str, str]]:
    """Return the last question, and the answer to it where there is one."""
    asked = [at for at, one in enumerate(spoken) if one.type == "human" and not is_summary(one)]
    if not asked:
        return []
    answers = [str(one.text) for one in spoken[asked[-1] :] if one.type == "ai" and one.text]
    shown = [("you", str(spoken[asked[-1]].text))]
    return [*shown, ("everlong", answers[-1])] if answers else shown


def _said(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
