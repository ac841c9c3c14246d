"""The eight invariants of every case (tests/cases/given.md), held against one observed call."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, BaseMessageChunk, HumanMessage

from everlong.nodes.pruning import EVICTED
from everlong.nodes.transcript import is_summary
from everlong.stores.namespaces import ROOT, label
from everlong.stores.text import clean
from everlong.stores.tombstones import USERS
from invariants import (
    check_leading,
    check_nothing_empty,
    check_pairs,
    check_state,
    check_storable,
    check_summary,
)
from observed import Observed, is_spoken

INNER_NODES = ("compact", "flush_memory", "consolidate")
INNER_CODE = tuple(f"everlong.nodes.{name}" for name in (*INNER_NODES, "inner"))
MOST_TRIES = 3
"""How often the very same summary request may be sent in one attempt."""
MOST_REQUESTS = 24
"""How many summary requests one attempt may take, in chunks and tries."""
LEAST_WORDS = 12
"""Characters of an inner answer that can't stand in an event by chance."""


def check_call(call: Observed, waived: Mapping[str, str] | None = None) -> None:
    """Raise AssertionError, naming the invariant, unless all that are not waived hold.

    `waived` names an invariant and says why it does not hold for this test.
    """
    waived = waived or {}
    assert set(waived) <= set(INVARIANTS), f"one of {[*INVARIANTS]}; got {[*waived]}"
    assert all(reason.strip() for reason in waived.values()), "a reason for each waived invariant"
    for name, holds in INVARIANTS.items():
        if name in waived:
            continue
        try:
            holds(call)
        except AssertionError as error:
            error.add_note(f"invariant `{name}`: {str(holds.__doc__).partition(chr(10))[0]}")
            raise


def pairs(call: Observed) -> None:
    """1: in each request every call has exactly one answer, directly after it."""
    for request in call.requests:
        check_pairs(request)
        check_nothing_empty(request)


def one_summary(call: Observed) -> None:
    """2: at most one summary, of user role, right after the system message."""
    for request in call.requests:
        check_leading(request)
    check_summary([message for message in call.messages if message.type != "system"])


def newest_question(call: Observed) -> None:
    """3: the newest user message is in each request, unchanged or as its documented preview."""
    newest = call.newest
    for request in call.requests if newest else ():
        assert any(_stands_for(call, each, newest) for each in request), (
            f"the newest user message {newest.id} in the request; "
            f"got {[(each.type, each.id, each.text[:80]) for each in request]}"
        )


def no_half_state(call: Observed) -> None:
    """4: no inner error ends the call or half-changes the state, and the question is in it."""
    if call.error is not None and not isinstance(call.error, asyncio.CancelledError):
        through = [module for module in _modules(call.error) if module in INNER_CODE]
        assert not through, f"a call that goes on; {call.error!r} came through {through}"
    for state in _states(call):
        check_pairs(state, may_end_open=True)
        check_nothing_empty(state)
        check_summary([message for message in state if message.type != "system"])
    for before, after, outcome in _compactions(call):
        if outcome not in ("done", "shortened"):
            assert _ids(before) == _ids(after), f"{outcome}: the history as it was; got {after}"
    if not call.was_let_in:
        return
    check_state(call.messages)
    newest = call.newest
    if newest is not None and call.values.get("phase") == "answer":
        found = any(_stands_for(call, each, newest) for each in call.messages)
        assert found, f"the user's message {newest.id} in the state; got {_ids(call.messages)}"


def bounded_inner_calls(call: Observed) -> None:
    """5: after an attempt that came to nothing no model is asked but on overflow; flushes are few.

    What has outgrown the window since then is compacted, by a digest where a model was asked in
    vain; where there was nothing to replace, none was asked, and one may be for what came since.
    """
    attempts = 0
    in_vain = False
    is_settled = False
    may_ask = True
    overflows = 0
    for event in call.events:
        if event.get("type") == "compaction.started":
            attempts += 1
            overflows += event.get("trigger") == "overflow"
            has_grown = not is_settled or event.get("trigger") == "tokens"
            may_ask = event.get("trigger") == "overflow" or (has_grown and not in_vain)
            assert overflows <= 1, "one overflow in a call; got a second compaction for one"
        elif event.get("type") == "compaction.finished":
            assert may_ask or not event.get("requests"), "a summariser asked after a failed attempt"
            if event.get("outcome") != "nothing to replace":
                is_settled = bool(event.get("settled"))
                in_vain = event.get("outcome") in ("failed", "refused")
    for kind, most in (("summary", MOST_REQUESTS * attempts), ("flush", 1 + attempts)):
        sent = Counter(tuple(each.text for each in one.request) for one in call.of_kind(kind))
        assert len(sent) <= most, f"at most {most} requests for a {kind}; got {len(sent)}"
        tries = max(sent.values(), default=0)
        assert tries <= MOST_TRIES * most, f"{MOST_TRIES} tries of a {kind}; got {tries}"
    merges = len({one.request[-1].text for one in call.of_kind("consolidation")})
    assert merges <= 1, f"one consolidation in a call; got {merges}"


def quiet_stream(call: Observed) -> None:
    """6: nothing of the inner calls is in what the user's client is sent."""
    shown: dict[str | None, str] = {}
    for chunk, about in call.chunks:
        node = about.get("langgraph_node")
        assert node not in INNER_NODES, f"nothing from {node!r}; got {chunk!r}"
        assert not is_summary(chunk), f"no summary in the stream; got {chunk!r}"
        if isinstance(chunk, AIMessage):
            whole = isinstance(chunk, BaseMessageChunk)
            shown[chunk.id] = (shown.get(chunk.id, "") if whole else "") + chunk.text
    said = "\n".join(call.answers)
    told = json.dumps(call.events, ensure_ascii=False, default=str)
    for inner in call.exchanges:
        if inner.kind == "answer" or not inner.text or inner.text in said:
            continue
        leaks = [ident for ident, text in shown.items() if inner.text in text]
        assert not leaks, f"no {inner.kind} in the answers; {inner.text!r} is in {leaks}"
        spelled = json.dumps(inner.text, ensure_ascii=False)[1:-1]
        assert len(spelled) < LEAST_WORDS or spelled not in told, f"no {inner.kind} in the events"


def own_places(call: Observed) -> None:
    """7: nothing is read or written under another user's label."""
    if call.places:
        own = (ROOT, label(call.user_id))
        foreign = sorted(p for p in call.places if p[:2] != own and p != USERS)
        assert not foreign, f"namespaces under {own}; got {foreign}"


def storable_text(call: Observed) -> None:
    """8: every string of the state and the store is valid UTF-8 without NUL."""
    check_storable(call.values, "state")
    for key, value in call.written:
        check_storable({key: value}, f"store item {key!r}")


INVARIANTS: Mapping[str, Callable[[Observed], None]] = {
    check.__name__: check
    for check in (
        pairs,
        one_summary,
        newest_question,
        no_half_state,
        bounded_inner_calls,
        quiet_stream,
        own_places,
        storable_text,
    )
}


def _stands_for(call: Observed, message: BaseMessage, asked: HumanMessage) -> bool:
    if not is_spoken(message) or message.id != asked.id:
        return False
    if _said(message) == _said(asked):
        return True
    record = message.additional_kwargs.get(EVICTED, {})
    path = record.get("path") if isinstance(record, dict) else None
    return path in call.previewed and path in message.text and _is_whole(call, path, asked)


def _is_whole(call: Observed, path: str, asked: HumanMessage) -> bool:
    whole = call.previewed[path]
    return whole is not None and whole in (clean(asked.text), asked.text, clean(_in_full(asked)))


def _in_full(asked: BaseMessage) -> str:
    """Return all the text of a message, that of attached text files, too."""
    blocks = [block for block in asked.content if isinstance(block, dict)]
    sources = [(block, block.get("source") or {}) for block in blocks]
    return "".join(str(block.get("text") or source.get("data") or "") for block, source in sources)


def _said(message: BaseMessage) -> Any:
    """Return the content as everlong may send it: storable, without blank text blocks."""
    content: Any = clean(message.content)
    if isinstance(content, str):
        return content
    return [block for block in content if not _is_blank(block)]


def _is_blank(block: Any) -> bool:
    text = block.get("text") if isinstance(block, dict) and block.get("type") == "text" else block
    return text is None or (isinstance(text, str) and not text.strip())


def _modules(error: BaseException) -> Iterator[str]:
    """Yield the module of each frame that the error came through."""
    trace = error.__traceback__
    while trace is not None:
        yield str(trace.tb_frame.f_globals.get("__name__"))
        trace = trace.tb_next


def _states(call: Observed) -> Iterator[Sequence[BaseMessage]]:
    """Yield each history that a node has left: what comes before is the caller's own."""
    worked = False
    for mode, what in call.steps:
        worked = worked or mode == "updates"
        if worked and mode == "values":
            yield what.get("messages", [])


def _compactions(
    call: Observed,
) -> Iterator[tuple[Sequence[BaseMessage], Sequence[BaseMessage], str]]:
    """Yield the history before and after each pass through `compact`, and what came of it."""
    before: Sequence[BaseMessage] = []
    outcome = ""
    for mode, what in call.steps:
        if mode == "updates":
            update = what.get("compact") or {}
            outcome = update.get("compaction", {}).get("outcome", "") if update else ""
            continue
        after = what.get("messages", [])
        if outcome:
            yield before, after, outcome
        before, outcome = after, ""


def _ids(messages: Sequence[BaseMessage]) -> list[str | None]:
    return [message.id for message in messages]
