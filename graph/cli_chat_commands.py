"""The commands of a chat: `/help`, `/compact`, `/memory`, `/where`; `/exit` is the reader's."""

import re
from collections.abc import Mapping
from typing import Any

from everlong.graph.cli_events import line_of
from everlong.graph.cli_session import Session
from everlong.graph.terminal import put
from everlong.nodes.meter import visible
from everlong.nodes.state import State
from everlong.nodes.thresholds import limits_for, tokens_of_request
from everlong.nodes.transcript import is_summary
from everlong.stores import ledger, pages

_COMMAND = re.compile(r"/[a-z]+(?=\s|$)")
HELP = (
    ("/help", "Show this."),
    ("/where", "Show the thread, its size, and when it will be compacted."),
    ("/memory", "Show MEMORY.md, as the agent reads it."),
    ("/compact [WHAT TO KEEP]", "Replace the older part of the history by a summary now."),
    ("/exit", "Leave; so do Ctrl-D, and Ctrl-C at an empty prompt."),
    ("an empty line", "Try again what was stopped or has failed."),
)
BLANK = "A message that begins with a slash and a word needs a blank before it."
HELP_CELLS = 26
COUNTED = ("messages", "meter", "call", "named_windows")


def is_command(line: str) -> bool:
    """Tell whether a line is a command: a slash and a word; a path such as `/var/log` is none."""
    return _COMMAND.match(line) is not None


async def obey(session: Session, line: str) -> None:
    """Do what a command says."""
    name, _, rest = line.strip().partition(" ")
    match name:
        case "/help":
            _help()
        case "/where":
            await _where(session)
        case "/memory":
            await _memory(session)
        case "/compact":
            await _compact(session, rest.strip())
        case _:
            session.view.note(f"There is no {name}; /help lists what there is. {BLANK}")


def _help() -> None:
    for name, what in HELP:
        put(what, lead=f"  {name:<{HELP_CELLS}}", lead_style="cyan", indent=" " * (HELP_CELLS + 2))


async def _memory(session: Session) -> None:
    user_id = str(session.context.user_id)
    with session.view.looking():
        text = await pages.document_text(session.agent.store, user_id)
        days = len(await ledger.days(session.agent.store, user_id))
    if text:
        put(text)
    held = "one day" if days == 1 else f"{days} days"
    session.view.note(f"{'' if text else 'There is no MEMORY.md yet. '}The ledger holds {held}.")


async def _compact(session: Session, instructions: str) -> None:
    if session.is_asked:
        session.view.note("An approval waits: answer it first.")
        return
    await session.run({"request": {"compact": True, "instructions": instructions}})


async def _where(session: Session) -> None:
    """Show where the thread stands; no model is asked."""
    values = (await session.snapshot()).values
    state = State(**{name: values[name] for name in COUNTED if name in values})
    limits = limits_for(session.context, state)
    messages, tokens = visible(state.messages), tokens_of_request(state)
    most = f" of {limits.trigger_messages:,}" if limits.trigger_messages else ""
    summary = ", one is a summary" if any(map(is_summary, state.messages)) else ""
    archived = int(values.get("archived", {}).get("count", 0))
    window = f"{limits.window:,}" if limits.window else "not known"
    rows = {
        "thread": f"{session.thread_id} of {session.context.user_id}",
        "messages": f"{messages:,}{most}{summary}; the transcript holds {archived:,}",
        "tokens": f"{tokens:,} of {limits.trigger_tokens:,} in the next request; window {window}",
        "compacted": _last(values.get("compaction", {})),
    }
    for name, text in rows.items():
        put(text, lead=f"  {name:<11}", lead_style="cyan", indent=" " * 13)


def _last(receipt: Mapping[str, Any]) -> str:
    """Say when the thread was compacted last, and what came of it."""
    if not receipt:
        return "not yet; it will be at the first limit that is reached"
    line = line_of({"type": "compaction.finished", **receipt})
    return f"{receipt.get('at')}: {line.removeprefix('compacted: ')}"
