"""Consolidation (R41, R42, R45): one document of at most so many tokens, rewritten as a whole."""

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import HumanMessage
from langgraph.store.base import BaseStore

from everlong.nodes.acceptance import objection, summary_text
from everlong.nodes.inner import ask
from everlong.nodes.models import load
from everlong.nodes.prompts import render
from everlong.nodes.rendering import within_frame
from everlong.nodes.revision import Revision, revised
from everlong.nodes.run import Run
from everlong.stores import documents, memory
from everlong.stores.amounts import amount
from everlong.stores.documents import Document
from everlong.stores.entries import Entry, render_day

log = logging.getLogger("everlong.memory")

CONSOLIDATION_SECONDS = 120.0


async def consolidation(run: Run) -> list[dict[str, Any]]:
    """Write a new MEMORY.md when the ledger has fresh entries; return what the requests cost.

    An answer that is empty, cut off, a refusal, or drops most of what is known leaves everything
    as it was. Doubtful facts are no material.
    """
    store = run.memory
    if store is None:
        return []
    document = await memory.read(store, run.user_id)
    fresh = await memory.fresh_entries(store, run.user_id)
    if not fresh:
        since = document.watermark if document else documents.BEGINNING
        log.info("No fresh daily entries since %s — skipping consolidation", since)
        return []
    limit = run.context.memory.document_tokens
    prompt = render(
        "consolidate",
        limit=str(limit),
        document=within_frame(document.text) if document else "(empty)",
        ledger=within_frame(render_day(fresh)),
    )
    model = await load(run.context.memory_model or run.context.model)
    answer = await ask(
        model, [HumanMessage(prompt)], kind="consolidation", seconds=CONSOLIDATION_SECONDS
    )
    lines = document.lines if document else []
    # Much text takes seconds, which nobody else should have to wait for.
    revision = await asyncio.to_thread(
        revised, summary_text(answer.message), lines, fresh, limit=limit
    )
    if reason := objection(answer.message) or revision.objection:
        log.warning("Consolidation refused (%s); MEMORY.md stays as it was", reason)
        return [answer.record]
    written = await _written(run, store, revision, document, fresh)
    if written is not None:
        _tell(run, revision, written, fresh)
    return [answer.record]


async def _written(
    run: Run,
    store: BaseStore,
    revision: Revision,
    document: Document | None,
    fresh: Sequence[Entry],
) -> Document | None:
    """Write the new document; None where another run has written one meanwhile."""
    try:
        return await memory.write(
            store,
            run.user_id,
            text=revision.text,
            base=document,
            consumed=fresh,
            instant=run.instant,
            by=memory.BY_CODE,
            origins=revision.origins,
        )
    except memory.DocumentChangedError:
        log.info("MEMORY.md was rewritten meanwhile; what it lacks waits for the next time")
        return None


def _tell(run: Run, revision: Revision, written: Document, fresh: Sequence[Entry]) -> None:
    """Log what was written, and what was left out of the answer; send the event."""
    for line, why in revision.dropped:
        log.warning("Consolidation: left out %.200r: %s", line, why)
    if revision.kept_saved:
        log.info("Consolidation: put back %s", amount(revision.kept_saved, "saved fact"))
    taken = amount(len(fresh), "entry", "entries")
    log.info("MEMORY.md rewritten from %s, through %s", taken, written.watermark)
    event = {"type": "memory.consolidated", "entries": len(fresh), "version": written.version}
    run.tell(event | ({"dropped": len(revision.dropped)} if revision.dropped else {}))
