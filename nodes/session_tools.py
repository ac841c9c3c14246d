"""Tools over the complete transcripts of the user's threads (R47)."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, cast

from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.prebuilt import ToolRuntime
from pydantic import Field

from everlong.nodes.archive import after
from everlong.nodes.context import context_of, user_of
from everlong.nodes.oversize import page_limits
from everlong.nodes.pruning import EVICTED
from everlong.nodes.run import thread_of
from everlong.nodes.tokens import tail_size
from everlong.stores import transcript_search, transcripts
from everlong.stores.amounts import amount
from everlong.stores.characters import safe_end, safe_start
from everlong.stores.file_search import FoundLine
from everlong.stores.search import first_place
from everlong.stores.sources import SESSIONS
from everlong.stores.transcript_search import Hit

Tool = ToolRuntime[Any, Any]
MOST_HITS = 20
MOST_MESSAGES = 50
AROUND_CHARS = 300
MESSAGE_CHARS = 1_500
NO_STORE = "There is no archive: this agent runs without a store."


@tool
async def session_search(
    query: Annotated[
        str, Field(description='Words to look for; a "quoted phrase" as it was written.')
    ],
    runtime: Tool,
    everywhere: Annotated[
        bool, Field(description="In all of the user's conversations, not only in this one.")
    ] = False,
    limit: Annotated[int, Field(ge=1, le=MOST_HITS, description="Most hits.")] = 5,
) -> str:
    """Search the conversation's exact words, also of what was summarised or stored away."""
    store = runtime.store
    if store is None:
        return NO_STORE
    hits, lines = await transcript_search.search_all(
        store,
        user_of(runtime),
        query,
        thread_id=None if everywhere else thread_of(runtime),
        more_paths=_moved_to(runtime.state),
        limit=limit,
    )
    shown = [_hit(found, query) for found in _merged(hits, lines, limit)]
    return "\n\n".join(_within(runtime, shown)) or f"Nothing was said about {query!r}."


@tool
async def session_history(
    runtime: Tool,
    first: Annotated[int, Field(ge=0, description="Number of the first message, from 0.")] = 0,
    count: Annotated[int, Field(ge=1, le=MOST_MESSAGES, description="How many.")] = 20,
    thread: Annotated[
        str, Field(description="Another conversation of the user; empty: this one.")
    ] = "",
) -> str:
    """Read the conversation's messages as they were, from the archive."""
    store = runtime.store
    if store is None:
        return NO_STORE
    thread_id = thread.removeprefix(SESSIONS) or thread_of(runtime)
    entries = await transcripts.read(store, user_of(runtime), thread_id, first=first, limit=count)
    if not entries:
        return f"The archive holds no message {first} of {thread_id!r}."
    texts = [entry.text[: safe_end(entry.text, 0, MESSAGE_CHARS)] for entry in entries]
    shown = _within(runtime, [_entry(*pair) for pair in zip(entries, texts, strict=True)])
    if len(shown) < len(entries):
        shown.append(f"[Go on with first={entries[len(shown)].number}.]")
    return "\n\n".join(shown)


def source_of(entry: transcripts.Entry) -> str:
    """Return where a message is, as answers cite it."""
    return f"{SESSIONS}{entry.thread_id}#{entry.number}"


def _merged(hits: Sequence[Hit], lines: Sequence[FoundLine], limit: int) -> list[Hit | FoundLine]:
    """Return the closest of both, messages first; the best line has a place if it is as close."""
    found = sorted([*hits, *lines], key=lambda one: one.closeness, reverse=True)
    best = found[:limit]
    if lines and lines[0] not in best and limit > 1 and lines[0].closeness == best[0].closeness:
        best[-1] = lines[0]
    return best


def _hit(found: Hit | FoundLine, query: str) -> str:
    """Show the part that holds what was asked, and where it is."""
    if isinstance(found, FoundLine):
        return f"Source: {found.path}#{found.line} [from character {found.offset}]\n{found.text}"
    text = found.entry.text
    start = safe_start(text, max(first_place(text, query) - AROUND_CHARS, 0))
    part = text[start : safe_end(text, start, start + 3 * AROUND_CHARS)]
    return _entry(found.entry, f"... {part}" if start else part)


def _entry(entry: transcripts.Entry, text: str) -> str:
    left = len(entry.text) - len(text)
    more = f" ... ({amount(left, 'more character')})" if left > 0 else ""
    return f"Source: {source_of(entry)} [{entry.role}, {entry.at}]\n{text}{more}"


def _within(runtime: Tool, texts: Iterable[str]) -> list[str]:
    """Return as many of the texts as one result may show; one at least."""
    most_chars, most_tokens = page_limits(
        context_of(runtime), runtime.state.get("named_windows") or {}
    )
    shown: list[str] = []
    for text in texts:
        most_chars -= len(text)
        if most_tokens is not None:
            most_tokens -= tail_size(HumanMessage(text))
        if shown and min(most_chars, most_tokens or 0) < 0:
            break
        shown.append(text)
    return shown


def _moved_to(state: Mapping[str, Any]) -> list[str]:
    """Return the paths of texts that were moved out of messages which no transcript has yet."""
    messages: Sequence[BaseMessage] = state["messages"]
    archived: Mapping[str, Any] = state.get("archived") or {}
    new = after(messages, str(archived.get("through", "")))
    paths: list[str] = []
    for message in reversed(messages if new is None else new):
        record: Any = message.additional_kwargs.get(EVICTED)
        if isinstance(record, dict):
            paths.append(str(cast("dict[str, Any]", record).get("path")))
    return paths
