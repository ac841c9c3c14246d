"""Tools over the complete transcripts of the user's threads (R47)."""

from typing import Annotated, Any

from langchain_core.tools import tool
from langgraph.prebuilt import ToolRuntime
from pydantic import Field

from everlong.nodes.context import Context, user_of
from everlong.nodes.run import thread_of
from everlong.stores import file_search, transcripts
from everlong.stores.search import terms_of

Tool = ToolRuntime[Context, dict[str, Any]]
MOST_HITS = 20
MOST_MESSAGES = 50
AROUND_CHARS = 300
LARGE_RESULTS = "large_tool_results/"
MESSAGE_CHARS = 1_500
NO_STORE = "There is no archive: this agent runs without a store."


@tool
async def session_search(
    query: Annotated[str, Field(description="Words to look for.")],
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
    thread_id = None if everywhere else thread_of(runtime)
    hits = await transcripts.search(
        store, user_of(runtime), query, thread_id=thread_id, limit=limit
    )
    found = [(_covers(hit.entry.text, query), _hit(hit.entry, query)) for hit in hits]
    if len(found) < limit or not any(covers for covers, _ in found):
        stored = await file_search.search(
            store, user_of(runtime), query, prefix=LARGE_RESULTS, limit=limit
        )
        found += [
            (_covers(line.text, query), f"Source: {line.path}#{line.line}\n{line.text}")
            for line in stored
        ]
    found.sort(key=lambda one: one[0], reverse=True)
    return "\n\n".join(text for _, text in found[:limit]) or f"Nothing was said about {query!r}."


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
    thread_id = thread or thread_of(runtime)
    entries = await transcripts.read(store, user_of(runtime), thread_id, first=first, limit=count)
    if not entries:
        return f"The archive holds no message {first} of {thread_id!r}."
    return "\n\n".join(_entry(entry, entry.text[:MESSAGE_CHARS]) for entry in entries)


def _covers(text: str, query: str) -> bool:
    """Tell whether a text holds every word of the query as it is written."""
    folded = text.casefold()
    return all(word in folded for word in query.casefold().split())


def source_of(entry: transcripts.Entry) -> str:
    """Return where a message is, as answers cite it."""
    return f"sessions/{entry.thread_id}#{entry.number}"


def _entry(entry: transcripts.Entry, text: str) -> str:
    left = len(entry.text) - len(text)
    more = f" ... ({left} more characters)" if left > 0 else ""
    return f"Source: {source_of(entry)} [{entry.role}, {entry.at}]\n{text}{more}"


def _hit(entry: transcripts.Entry, query: str) -> str:
    """Show the part of a message that holds what was asked."""
    folded = entry.text.lower()
    places = [at for term in terms_of(query) if (at := folded.find(term)) >= 0]
    start = max(min(places, default=0) - AROUND_CHARS, 0)
    part = entry.text[start : start + 3 * AROUND_CHARS]
    return _entry(entry, f"... {part}" if start else part)
