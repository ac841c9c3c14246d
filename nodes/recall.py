"""Read MEMORY.md for a call's requests (R46)."""

import asyncio
import logging
from typing import Any

from everlong.nodes.run import Run
from everlong.stores import documents, memory, tombstones

log = logging.getLogger("everlong.memory")


async def recall(run: Run) -> dict[str, Any]:
    """Return MEMORY.md as a reader sees it; {} without.

    `text`; `lines`, with the keys of their facts; the document's `version`, `consolidated_at` and
    `edited`.

    A store that fails costs the recollection, not the call.
    """
    store = run.memory
    if store is None:
        return {}
    try:
        (document, saved), stones = await asyncio.gather(
            memory.recollect(store, run.user_id), tombstones.load(store, run.user_id)
        )
    except Exception:
        log.exception("MEMORY.md cannot be read; this call goes on without it")
        return {}
    lines = documents.visible_lines(document, saved)
    if stones:  # forgotten while somebody wrote
        lines = [line for line in lines if not stones.matches(line[0])]
    text = "\n".join(line for line, _ in lines).strip()
    return {
        "version": document.version if document else ("saved" if text else ""),
        "text": text,
        "lines": lines,
        "consolidated_at": document.consolidated_at if document else "",
        "edited": document.edited if document else "",
    }
