"""Tools that read back what was moved out of the history (R31)."""

from typing import Annotated, Any

from langchain_core.tools import tool
from langgraph.prebuilt import ToolRuntime
from pydantic import Field

from everlong.nodes.context import Context, context_of, user_of
from everlong.nodes.thresholds import CHARS_PER_TOKEN, window_for
from everlong.stores import files
from everlong.stores.paging import Page

PAGE_CHARS = 20_000
LISTED_FILES = 200
WINDOW_SHARE = 0.25


@tool
async def read_file(
    path: Annotated[str, Field(description="Path of a stored text.")],
    runtime: ToolRuntime[Context, dict[str, Any]],
    line: Annotated[int | None, Field(ge=1, description="First line to read, from 1.")] = None,
    offset: Annotated[int, Field(ge=0, description="Or the first character, from 0.")] = 0,
) -> str:
    """Read a stored text, such as a tool result that was too long to keep, one page at a time."""
    store = runtime.store
    if store is None:
        return NO_STORE
    user_id = user_of(runtime)
    most = page_chars(runtime)
    try:
        page = await files.read_page(
            store, user_id, path, offset=offset, first_line=line, max_chars=most
        )
    except ValueError as error:
        return f"Not read: {error}"
    if page is None:
        return f"There is no stored text {path!r}. list_files shows what there is."
    if not page.text and page.total_chars:
        return (
            f"{path} ends before that: it has {page.total_lines:,} lines and "
            f"{page.total_chars:,} characters."
        )
    return f"{page.text}\n\n{_footer(path, page)}"


@tool
async def list_files(
    runtime: ToolRuntime[Context, dict[str, Any]],
    prefix: Annotated[str, Field(description="Only paths that begin so.")] = "",
) -> str:
    """List the stored texts that read_file can read, with their sizes."""
    store = runtime.store
    if store is None:
        return NO_STORE
    found = await files.list_paths(store, user_of(runtime), prefix)
    if not found:
        return "There are no stored texts here."
    lines = [f"{file.path} ({file.chars:,} characters)" for file in found[:LISTED_FILES]]
    if len(found) > LISTED_FILES:
        lines.append(f"... and {len(found) - LISTED_FILES} more; give a longer prefix.")
    return "\n".join(lines)


NO_STORE = "There is nothing to read: this agent runs without a store."


def page_chars(runtime: ToolRuntime[Context, dict[str, Any]]) -> int:
    """Return how much one page holds: well under the eviction limit and a quarter of the window."""
    context = context_of(runtime)
    window = window_for(context)
    by_window = int(window * CHARS_PER_TOKEN * WINDOW_SHARE) if window else PAGE_CHARS
    return max(min(PAGE_CHARS, by_window, context.eviction.over_chars // 2), 1)


def _footer(path: str, page: Page) -> str:
    """Say which part this is, and where to go on."""
    end = page.offset + len(page.text)
    where = f"[{path}: characters {page.offset:,} to {end:,} of {page.total_chars:,}"
    if page.next_offset is None:
        return f"{where}; this is the end.]"
    if page.next_line is not None:
        return f"{where}; go on with line={page.next_line}.]"
    return f"{where}; go on with offset={page.next_offset}.]"
