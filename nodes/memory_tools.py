"""Tools over the user's long-term memory: search, read, save (R47, R48)."""

from typing import Annotated, Any

from langchain_core.tools import tool
from langgraph.prebuilt import ToolRuntime
from langgraph.store.base import BaseStore
from pydantic import Field

from everlong.nodes.context import context_of, user_of
from everlong.nodes.run import Run, thread_of
from everlong.nodes.saving import save
from everlong.stores import pages, provenance
from everlong.stores.amounts import amount

Tool = ToolRuntime[Any, Any]
MOST_HITS = 20
MOST_LINES = 200
LINE_CHARS = 500
NO_STORE = "There is no memory: this agent runs without a store."


@tool
async def memory_search(
    query: Annotated[str, Field(description="Words to look for.")],
    runtime: Tool,
    limit: Annotated[int, Field(ge=1, le=MOST_HITS, description="Most hits.")] = 8,
) -> str:
    """Search what is remembered about the user: MEMORY.md and the daily ledger."""
    store = runtime.store
    if store is None:
        return NO_STORE
    found = await pages.search(store, user_of(runtime), query, limit=limit)
    if not found:
        return f"Nothing is remembered about {query!r}."
    return "\n\n".join(f"Source: {one.source}\n{_short(one.text)}" for one in found)


@tool
async def memory_get(
    path: Annotated[str, Field(description="MEMORY.md or memory/YYYY-MM-DD.md.")],
    runtime: Tool,
    first_line: Annotated[int, Field(ge=1, description="From this line on.")] = 1,
    last_line: Annotated[int | None, Field(ge=1, description="Through this line.")] = None,
) -> str:
    """Read lines of the user's memory, with their numbers and where they come from."""
    store = runtime.store
    if store is None:
        return NO_STORE
    user_id = user_of(runtime)
    text = await pages.read_page(store, user_id, path)
    if text is None:
        there = ", ".join([*await pages.read_all(store, user_id)][:30]) or "nothing yet"
        return f"There is no {path!r}. There is: {there}."
    lines = text.splitlines()
    last = min(last_line or len(lines), first_line + MOST_LINES - 1, len(lines))
    if first_line > last:
        return f"{path} has {amount(len(lines), 'line')}; expected first_line to be at most that."
    numbered = [f"{n}|{lines[n - 1]}" for n in range(first_line, last + 1)]
    origins = await _origins(store, user_id, path, range(first_line, last + 1))
    return "\n".join([f"Source: {path}#{first_line}-{last}", *numbered, *origins])


@tool
async def memory_save(
    content: Annotated[
        str, Field(description="Facts in the user's words, one a line; each understandable alone.")
    ],
    runtime: Tool,
) -> str:
    """Remember facts about the user from now on, in every session."""
    store = runtime.store
    if store is None:
        return NO_STORE
    state, call = runtime.state, runtime.state["call"]
    run = Run(
        context=context_of(runtime),
        user_id=user_of(runtime),
        thread_id=thread_of(runtime),
        store=store,
        instant=call["instant"],
        first=str(call.get("first", "")),
        tell=runtime.stream_writer,
    )
    return await save(run, store, content, state["messages"], state.get("archived", {}))


async def _origins(store: BaseStore, user_id: str, path: str, numbers: range) -> list[str]:
    """Return, for the lines that have any, where they come from: the ledger, and what was said."""
    lines = dict(enumerate(await pages.lines_of(store, user_id, path), start=1))
    keys = {n: lines[n][1] for n in numbers if n in lines and lines[n][1]}
    if not keys:
        return []
    known = provenance.Ledger(store, user_id)
    found: list[str] = []
    for number, of_line in keys.items():
        origins = await known.origins(of_line)
        places = [one.source for one in origins if not one.source.startswith(f"{path}#")]
        places += [said.source for one in origins for said in one.said]
        if told := ", ".join(dict.fromkeys(filter(None, places))):
            found.append(f"Line {number} comes from {told}")
    return found


def _short(text: str) -> str:
    return text if len(text) <= LINE_CHARS else f"{text[:LINE_CHARS]}... (memory_get has the rest)"
