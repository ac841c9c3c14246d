"""Tools that read back what was moved out of the history (R31)."""

from typing import Annotated, Any

from langchain_core.messages import HumanMessage
from langchain_core.tools import ToolException, tool
from langgraph.prebuilt import ToolRuntime
from langgraph.store.base import BaseStore
from pydantic import Field

from everlong.nodes.context import context_of, user_of
from everlong.nodes.oversize import page_limits
from everlong.nodes.repeats import asked_before
from everlong.nodes.tokens import tail_size
from everlong.stores import files
from everlong.stores.amounts import amount
from everlong.stores.paging import PAGE_LINES, Page, page_of
from everlong.stores.sources import Place, place_of, text_at

Tool = ToolRuntime[Any, Any]
LISTED_FILES = 200
MOST_ATTEMPTS = 2
"""How often the same part is read in a row; more is a loop."""
SHRINKS = 8
NO_STORE = "There is nothing to read: this agent runs without a store."


@tool
async def read_file(
    path: Annotated[str, Field(description="Path of a stored text, or what a `Source:` names.")],
    runtime: Tool,
    line: Annotated[int | None, Field(ge=1, description="First line to read, from 1.")] = None,
    offset: Annotated[int, Field(ge=0, description="Or the first character, from 0.")] = 0,
) -> str:
    """Read a stored text, such as a tool result that was too long to keep, one page at a time."""
    store = runtime.store
    if store is None:
        raise ToolException(NO_STORE)
    try:
        page = await _fitting_page(runtime, store, path, line, offset)
    except (ValueError, LookupError) as error:
        msg = f"Not read: {error}"
        raise ToolException(msg) from error
    if page is None:
        msg = f"There is no stored text {path[:200]!r}. list_files shows what there is."
        raise ToolException(msg)
    if not page.text and page.total_chars:
        has = f"{amount(page.total_lines, 'line')} and {amount(page.total_chars, 'character')}"
        msg = f"{path} ends before that: it has {has}."
        raise ToolException(msg)
    if asked_before(runtime.state["messages"], runtime.tool_call_id) >= MOST_ATTEMPTS:
        msg = f"Not read again: it stands above, twice. {_footer(path, page)}"
        raise ToolException(msg)
    return f"{page.text}\n\n{_footer(path, page)}"


@tool
async def list_files(
    runtime: Tool,
    prefix: Annotated[str, Field(description="Only paths that begin so.")] = "",
) -> str:
    """List the stored texts that can be read back, with their sizes."""
    store = runtime.store
    if store is None:
        return NO_STORE
    found = await files.list_paths(store, user_of(runtime), prefix)
    if not found:
        return "There are no stored texts here."
    lines = [f"{file.path} ({amount(file.chars, 'character')})" for file in found[:LISTED_FILES]]
    if len(found) > LISTED_FILES:
        lines.append(f"... and {len(found) - LISTED_FILES} more; give a longer prefix.")
    return "\n".join(lines)


async def _fitting_page(
    runtime: Tool, store: BaseStore, path: str, line: int | None, offset: int
) -> Page | None:
    """Return the page, small enough for the window, however many tokens its characters take."""
    most_chars, most_tokens = page_limits(
        context_of(runtime), runtime.state.get("named_windows") or {}
    )
    page = await _page(runtime, store, path, line, offset, most_chars)
    for _ in range(SHRINKS):
        tokens = tail_size(HumanMessage(page.text)) if page else 0
        if page is None or most_tokens is None or tokens <= most_tokens or most_chars == 1:
            break
        most_chars = max(min(len(page.text), most_chars) * most_tokens // (tokens + 1), 1)
        page = await _page(runtime, store, path, line, offset, most_chars)
    return page


async def _page(
    runtime: Tool, store: BaseStore, path: str, line: int | None, offset: int, most_chars: int
) -> Page | None:
    """Read a page of the file of this very path, else of what the path means."""
    user_id, place = user_of(runtime), Place(path=path)
    if not await _is_file(store, user_id, path):
        place = place_of(path)
    if place.thread or not await _is_file(store, user_id, place.path):
        remembers = context_of(runtime).memory.enabled
        text = await text_at(store, user_id, place, with_memory=remembers)
        if text is None:
            return await files.read_page(store, user_id, place.path)  # refuses an odd path
        first = line or (None if place.thread or offset else place.first)
        return page_of(text, offset=offset, first_line=first, max_chars=most_chars)
    lines = PAGE_LINES
    if line is None and not offset and place.first:
        line = place.first
        lines = max((place.last or line) - line + 1, 1) if place.last else PAGE_LINES
    return await files.read_page(
        store,
        user_id,
        place.path,
        offset=offset,
        first_line=line,
        max_lines=lines,
        max_chars=most_chars,
    )


async def _is_file(store: BaseStore, user_id: str, path: str) -> bool:
    try:
        return await files.exists(store, user_id, path)
    except ValueError:
        return False


def _footer(path: str, page: Page) -> str:
    """Say which part this is, and where to go on."""
    end = page.offset + len(page.text)
    where = f"[{path}: characters {page.offset:,} to {end:,} of {page.total_chars:,}"
    if page.next_offset is None:
        return f"{where}; this is the end.]"
    if page.next_line is not None:
        return f"{where}; go on with line={page.next_line}.]"
    return f"{where}; go on with offset={page.next_offset}.]"
