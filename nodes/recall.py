"""Read MEMORY.md for a call's requests (R46)."""

import logging
from typing import Any

from everlong.nodes.run import Run
from everlong.stores import memory

log = logging.getLogger("everlong.memory")


async def recall(run: Run) -> dict[str, Any]:
    """Return `version`, `text`, `consolidated_at` of MEMORY.md as a reader sees it; {} without.

    A store that fails costs the recollection, not the call.
    """
    store = run.memory
    if store is None:
        return {}
    try:
        document, saved = await memory.recollect(store, run.user_id)
    except Exception:
        log.exception("MEMORY.md cannot be read; this call goes on without it")
        return {}
    text = memory.visible_text(document, saved)
    return {
        "version": document.version if document else ("saved" if text else ""),
        "text": text,
        "consolidated_at": document.consolidated_at if document else "",
    }
