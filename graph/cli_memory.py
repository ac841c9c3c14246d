"""What `everlong memory` and `everlong consolidate` do."""

from collections.abc import Sequence
from typing import Any

from everlong.graph.agent import utc_now
from everlong.graph.cli_errors import trace
from everlong.graph.cli_memory_lines import MARGIN, Shown, as_data, lines_of, said_of, sourced
from everlong.graph.cli_open import opened_store
from everlong.graph.cli_settings import context_for
from everlong.graph.cli_tables import put_json
from everlong.graph.terminal import err, put, put_error, waiting
from everlong.nodes.consolidation import consolidation
from everlong.nodes.context import Context
from everlong.nodes.models import explain, load
from everlong.nodes.retention import archive_entries
from everlong.nodes.run import Run
from everlong.stores import ledger, memory, pages
from everlong.stores.amounts import amount
from everlong.stores.diagnosis import DATABASE_ERRORS
from everlong.stores.ledger_archive import with_archived


async def show(user_id: str, path: str, *, sources: bool, as_json: bool, dsn: str | None) -> int:
    """Print a page as a reader sees it; 1 where there is none."""
    async with opened_store(dsn) as store:
        lines = await lines_of(store, user_id, path)
        if lines:
            shown = await sourced(store, user_id, lines) if sources else lines
            _put_page(path, shown, as_json=as_json)
            return 0
        days = len({entry.day for entry in await with_archived(store, user_id)})
    known = f"the ledger has {amount(days, 'day')}" if days else "nothing is remembered yet"
    advice = "--list shows them" if days else "a chat writes it"
    if path == pages.DOCUMENT and days:
        advice = f"`everlong consolidate --user {user_id}` writes it"
    put_error(f"{user_id} has no {path}: {known}; {advice}.")
    return 1


def _put_page(path: str, lines: Sequence[Shown], *, as_json: bool) -> None:
    if as_json:
        put_json({"path": path, "lines": [as_data(line) for line in lines]})
        return
    for line in lines:
        put(line.text)
        for source in said_of(line, own_page=path):
            put(source, style="dim", indent=MARGIN + "  ", lead=MARGIN)


async def show_list(user_id: str, *, as_json: bool, dsn: str | None) -> int:
    """Print which pages there are, and how long each is."""
    async with opened_store(dsn) as store:
        found = await pages.read_all(store, user_id)
    sizes = {path: len(text.splitlines()) for path, text in found.items()}
    if as_json:
        put_json([{"path": path, "lines": lines} for path, lines in sizes.items()])
        return 0
    for path, lines in sizes.items():
        put(f"  {amount(lines, 'line')}", lead=path)
    if not found:
        put(f"Nothing is remembered about {user_id} yet.", style="dim", to=err)
    return 0


async def search(user_id: str, query: str, *, limit: int, as_json: bool, dsn: str | None) -> int:
    """Print the lines that say what is asked, best first, each with its source."""
    async with opened_store(dsn) as store:
        found = await pages.search(store, user_id, query, limit=limit)
    if as_json:
        put_json([{"source": one.source, "text": one.text} for one in found])
        return 0
    for one in found:
        lead = f"Source: {one.source}"
        put(f": {one.text}", lead=lead, lead_style="cyan", indent="  ")
    if not found:
        put(f"Nothing is remembered about {query!r}.", style="dim", to=err)
    return 0


async def clear_document(user_id: str, *, dsn: str | None) -> int:
    """Remove MEMORY.md; its versions and the ledger stay."""
    async with opened_store(dsn) as store:
        document = await memory.read(store, user_id)
        if document is None:
            put(f"{user_id} has no consolidated MEMORY.md; nothing was changed.")
            return 0
        await memory.clear(store, user_id)
        days = len(await ledger.days(store, user_id))
        saved = await pages.document_text(store, user_id)
    put(
        f"MEMORY.md of {user_id} is removed. Its earlier versions and the ledger "
        f"({amount(days, 'day')}) stay; `everlong consolidate --user {user_id}` writes it anew."
    )
    if saved:
        put("What was saved on its own account is still shown as MEMORY.md.", style="dim")
    return 0


async def consolidate(user_id: str, *, model: str | None, dsn: str | None) -> int:
    """Rewrite MEMORY.md from the ledger's fresh entries; 1 where that fails."""
    context = context_for(user_id, model)
    await load(context.memory_model or context.model)
    async with opened_store(dsn) as store:
        told: list[dict[str, Any]] = []
        run = Run(
            context=context,
            user_id=user_id,
            thread_id="",
            store=store,
            instant=utc_now().isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            tell=told.append,
        )
        if run.memory is None:
            put_error("memory is switched off (EVERLONG_MEMORY__ENABLED); nothing was changed.")
            return 1
        code = await _consolidated(run, told)
        await archive_entries(run)
        return code


async def _consolidated(run: Run, told: list[dict[str, Any]]) -> int:
    try:
        with waiting("Rewriting MEMORY.md"):
            requests = await consolidation(run)
    except DATABASE_ERRORS:
        raise
    except Exception as error:  # noqa: BLE001 - a model's errors are its provider's own
        trace(error)
        put_error(f"{explain(error, _model(run.context))} MEMORY.md stays as it was.")
        return 1
    for event in told:
        taken = amount(event["entries"], "ledger entry", "ledger entries")
        put(f"MEMORY.md of {run.user_id} is rewritten from {taken}.")
    if not told and requests:
        return 1  # the reason is logged
    if not told:
        put(f"Nothing new in the ledger of {run.user_id}: MEMORY.md stays as it is.")
    return 0


def _model(context: Context) -> Any:
    return context.memory_model or context.model
