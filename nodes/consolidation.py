"""Consolidation (R41, R42, R45): one document of at most so many tokens, rewritten as a whole."""

import logging
from typing import Any

from langchain_core.messages import HumanMessage

from everlong.nodes.acceptance import objection
from everlong.nodes.inner import ask
from everlong.nodes.models import load
from everlong.nodes.prompts import render
from everlong.nodes.rendering import within_frame
from everlong.nodes.run import Run
from everlong.nodes.tokens import estimate_text
from everlong.stores import ledger, memory
from everlong.stores.amounts import amount

log = logging.getLogger("everlong.memory")

CONSOLIDATION_SECONDS = 120.0


async def consolidation(run: Run) -> list[dict[str, Any]]:
    """Write a new MEMORY.md when the ledger has fresh entries; return what the requests cost.

    An answer that is empty, cut off or a refusal leaves everything as it was.
    """
    store = run.memory
    if store is None:
        return []
    document = await memory.read(store, run.user_id)
    fresh = await memory.fresh_entries(store, run.user_id)
    if not fresh:
        since = document.watermark if document else memory.BEGINNING
        log.info("No fresh daily entries since %s — skipping consolidation", since)
        return []
    limit = run.context.memory.document_tokens
    prompt = render(
        "consolidate",
        limit=str(limit),
        document=within_frame(document.text) if document else "(empty)",
        ledger=within_frame(ledger.render_day(fresh)),
    )
    model = await load(run.context.memory_model or run.context.model)
    answer = await ask(
        model, [HumanMessage(prompt)], kind="consolidation", seconds=CONSOLIDATION_SECONDS
    )
    if reason := objection(answer.message):
        log.warning("Consolidation refused (%s); MEMORY.md stays as it was", reason)
        return [answer.record]
    written = await memory.write(
        store,
        run.user_id,
        text=within(answer.text, limit),
        base=document,
        consumed=fresh,
        instant=run.instant,
        by="consolidation",
    )
    taken = amount(len(fresh), "entry", "entries")
    log.info("MEMORY.md rewritten from %s, through %s", taken, written.watermark)
    run.tell({"type": "memory.consolidated", "entries": len(fresh), "version": written.version})
    return [answer.record]


def within(text: str, most_tokens: int) -> str:
    """Keep whole lines from the top, as many as the limit holds; headings left alone go, too."""
    kept: list[str] = []
    room = most_tokens
    for line in text.strip().splitlines():
        room -= estimate_text(line) + 1
        if room < 0:
            break
        kept.append(line)
    while kept and (not kept[-1].strip() or kept[-1].startswith("#")):
        kept.pop()
    return "\n".join(kept)
