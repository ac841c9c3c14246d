"""The one state update that replaces history, and the receipt that says what was done (R15)."""

import hashlib
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import BaseMessage, SystemMessage, messages_to_dict

from everlong.nodes.archive import after, anchors, numbered
from everlong.nodes.facts import Flushed
from everlong.nodes.meter import recounted
from everlong.nodes.plan import Plan
from everlong.nodes.rewriting import unstreamed, whole_history
from everlong.nodes.state import Call, State, Update
from everlong.nodes.summarise import Summarised
from everlong.nodes.summary import summary_carried
from everlong.nodes.tokens import estimate_message
from everlong.nodes.transcript import is_summary
from everlong.stores.compactions import MESSAGE_IDS


def replacement(
    state: State,
    plan: Plan,
    summary: Summarised,
    flushed: Flushed,
    *,
    archived: dict[str, Any],
) -> Update:
    """Return the update: summary, pinned, open question, tail, with all watermarks."""
    split = plan.split
    framed = [summary.message] if summary.message is not None else []
    kept = [*split.system, *framed, *split.kept]
    meter = recounted(kept)
    tokens = meter.get("tokens", 0)
    left = len(kept) - len(split.system)
    little = plan.came_to_little(messages_after=left, tokens_after=tokens)
    receipt = receipt_of(state, plan, outcome="done", reason=summary.refused, settled=little) | {
        MESSAGE_IDS: [str(message.id) for message in split.replaced],
        "replaced": len(split.replaced),
        "messages_after": left,
        **_about(summary),
    }
    call = state.call | {"overflow": None, "settled": little}
    update = Update(
        messages=whole_history(
            [*split.system, *(unstreamed(message) for message in framed), *split.kept]
        ),
        meter=meter,
        call=with_requests(call, [*flushed.requests, *summary.requests]),
        compaction=receipt,
        archived=_anchored(state, kept, archived),
        flushed_through=_watermark(state, plan, framed),
    )
    if flushed.failed and (lost := _lost(state, plan, archived)):
        update["unflushed"] = [*state.unflushed, lost]
    return update


def untouched(
    state: State, *, outcome: str, reason: str, plan: Plan | None = None, settled: bool = True
) -> Update:
    """Return the update of an attempt that leaves the history: the receipt, and no second try."""
    call = state.call | {"settled": settled, "overflow": None}
    receipt = receipt_of(state, plan, outcome=outcome, reason=reason, settled=settled)
    return Update(call=call, compaction=receipt)


def receipt_of(
    state: State, plan: Plan | None, *, outcome: str, reason: str, settled: bool
) -> dict[str, Any]:
    """Return the record of an attempt: what triggered it, where it cut and why, what came out."""
    named = [str(message.id) for message in (plan.split.replaced if plan else state.messages[-1:])]
    number, at = int(state.compaction.get("number", 0)) + 1, state.call.get("instant", "")
    spelled = "\n".join([at, str(number), *named])
    receipt: dict[str, Any] = {
        "id": hashlib.sha256(spelled.encode("utf-8", "replace")).hexdigest()[:16],
        "number": number,
        "at": at,
        "outcome": outcome,
        "reason": reason,
        "settled": settled,
    }
    if plan is None:
        return receipt
    return receipt | {
        "plain_cut": plan.split.cut.plain,
        "safe_cut": plan.split.cut.safe,
        "cut_reason": plan.split.cut.reason,
    }


def _about(summary: Summarised) -> dict[str, Any]:
    """Return what a receipt says of the summary: nothing but `by` where none was made."""
    made: dict[str, Any] = {"by": summary.by}
    if summary.message is None:
        return made
    return made | {
        "summary_id": str(summary.message.id),
        "summary_tokens": estimate_message(summary.message),
        "carried_over": summary.carried,
        "carried": summary_carried(summary.message),
        "invented": summary.invented,
    }


def _anchored(
    state: State, kept: Sequence[BaseMessage], archived: dict[str, Any]
) -> dict[str, Any]:
    """Return `archived` with the places that what stays has in the transcript."""
    rest = {name: value for name, value in archived.items() if name != "anchors"}
    found = anchors(kept, numbered(state.messages, archived), archived) if archived else {}
    return rest | ({"anchors": found} if found else {})


def with_requests(call: Call, requests: Sequence[dict[str, Any]]) -> Call:
    """Return the call with what inner requests cost."""
    return call | {"requests": [*call.get("requests", []), *requests]}


def not_flushed(state: State, plan: Plan) -> list[BaseMessage]:
    """Return the messages that leave the history and that no flush has read.

    Where the watermark's message was edited away, that is all of them.
    """
    new = after(state.messages, state.flushed_through)
    ids = {message.id for message in plan.split.replaced}
    unread = state.messages if new is None else new
    return [message for message in unread if message.id in ids and not is_summary(message)]


def flushed_ahead(state: State, plan: Plan) -> str:
    """Return the watermark where what was to leave the history was flushed, and stays."""
    through = state.flushed_through
    read = {message.id for message in not_flushed(state, plan)}
    new = after(state.messages, through)
    for message in state.messages if new is None else new:
        if message.id not in read and not isinstance(message, SystemMessage):
            if not is_summary(message):
                break
            continue
        through = str(message.id)
    return through


def _watermark(state: State, plan: Plan, framed: Sequence[BaseMessage]) -> str:
    """Keep the flush's watermark among the messages: the summary stands for all it replaced."""
    ids = [message.id for message in state.messages]
    through = state.flushed_through
    read = set(ids[: ids.index(through) + 1]) if through in ids else set[str | None]()
    kept = [str(message.id) for message in plan.split.kept if message.id in read]
    return kept[-1] if kept else str(framed[0].id) if framed else ""


def _lost(state: State, plan: Plan, archived: dict[str, Any]) -> dict[str, Any] | None:
    """Return what a failed flush did not read: its place in the transcript, else itself."""
    unread = not_flushed(state, plan)
    if not unread:
        return None
    if not archived:
        return {"messages": messages_to_dict(unread)}
    spoken = [message.id for message in state.messages if not is_summary(message)]
    behind = len(spoken) - 1 - spoken.index(unread[-1].id)
    last = int(archived.get("count", 0)) - 1 - behind
    return {"first": max(last + 1 - len(unread), 0), "count": len(unread)}
