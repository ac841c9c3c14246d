"""Node `open_call`: what has to be right before a call's first request."""

import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.runtime import Runtime

from everlong.nodes.approval import approvals
from everlong.nodes.attempts import confirmed
from everlong.nodes.budget import warn_of_frequent_compaction
from everlong.nodes.context import Context
from everlong.nodes.errors import InvalidInputError
from everlong.nodes.forgetting import in_state, known, struck
from everlong.nodes.injection import carried, still_known
from everlong.nodes.meter import uncounted
from everlong.nodes.models import load_all
from everlong.nodes.oversize import window_of
from everlong.nodes.pins import most_pinned_tokens, within
from everlong.nodes.recall import recall
from everlong.nodes.repair import repair
from everlong.nodes.rewriting import whole_history
from everlong.nodes.run import Run, is_inside, run_of
from everlong.nodes.state import Call, Injected, Phase, State, Update, nothing_injected
from everlong.nodes.storable import without_faults
from everlong.nodes.thresholds import window_for
from everlong.nodes.toolbox import Toolbox
from everlong.nodes.transcript import adopted, call_ids, is_pinned
from everlong.stores import finished_calls
from everlong.stores.text import clean
from everlong.stores.tombstones import Tombstones

log = logging.getLogger("everlong.call")


async def open_call(
    state: State,
    runtime: Runtime[Context],
    *,
    toolbox: Toolbox,
    clock: Callable[[], datetime],
    may_be_silent: bool = False,
) -> Update:
    """Check the input, repair the history, recall MEMORY.md and reset the call's counters.

    Reads `messages`, `request`, `owner`. Writes `messages` (only what had to be repaired), `phase`,
    `call`, `injected`, `recalled`, `owner`, `flushed_through`. `may_be_silent`: no user need have
    spoken.

    Raises:
        InvalidInputError: no user, another user's thread, or nothing to answer.
        ModelUnavailableError: no model can be made of a name in the settings.
    """
    run = run_of(state, runtime)
    await load_all(run.context)
    _refuse_stranger(run, state)
    phase = _phase(state.request or {})
    stones = await known(run)
    forgetting = await struck(state, stones)
    state = in_state(state, forgetting)
    await confirmed(run, state)
    mended = await _mended(run, state)
    messages = state.messages if mended is None else mended
    may_be_silent |= is_inside(runtime) and bool(uncounted(messages, state.meter))
    if phase == "answer" and not may_be_silent:
        _refuse_nothing_to_answer(messages)
    warn_of_frequent_compaction(run.context.compaction)
    recalled = await recall(run)
    injected = _injected(run, state, recalled, messages, stones)
    call = _call(run, state, messages, clock())
    call["fixed_tokens"] = toolbox.fixed_tokens(run.context, injected)
    call["memory_version"] = str(recalled.get("version", ""))
    update = forgetting | Update(phase=phase, call=call, recalled=recalled)
    if injected != state.injected:
        update["injected"] = injected
    if not state.owner:
        update["owner"] = run.user_id
    if forgone := _said_without_memory(state):
        update["flushed_through"] = forgone
    if mended is not None:
        update["messages"] = whole_history(mended)
    return update


def _refuse_stranger(run: Run, state: State) -> None:
    if state.owner not in ("", run.user_id):
        msg = f"`thread_id`: expected a thread of {run.user_id!r}; {run.thread_id!r} is not."
        raise InvalidInputError(msg)


def _call(run: Run, state: State, messages: Sequence[BaseMessage], now: datetime) -> Call:
    """Return the call's counters, at their beginning."""
    call = Call(
        instant=now.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        first=_first_new(state),
        last=str(messages[-1].id) if messages else "",
        tool_rounds=0,
        settings=_settings(run.context),
        requests=[],
    )
    if waiting := approvals(run.context):
        call["approve_tools"] = waiting
    if instructions := (state.request or {}).get("instructions"):
        call["instructions"] = str(clean(instructions))
    return call


def _injected(
    run: Run,
    state: State,
    recalled: dict[str, Any],
    messages: Sequence[BaseMessage],
    stones: Tombstones | None,
) -> Injected:
    """Return what of MEMORY.md the call's requests carry, so that their prefix is kept."""
    if run.memory is None:
        return nothing_injected()
    is_known = stones is None or stones.digest == state.forgotten
    return carried(
        state.injected if is_known else still_known(state.injected, stones),
        recalled,
        messages,
        new={str(message.id) for message in uncounted(state.messages, state.meter)},
        old_tokens=state.meter.get("tokens", 0),
        most_tokens=run.context.memory.inject_tokens,
    )


def _phase(wish: Mapping[str, Any]) -> Phase:
    if wish.get("compact"):
        return "compact_only"
    return "consolidate_only" if wish.get("consolidate") else "answer"


def _settings(context: Context) -> dict[str, Any]:
    """Return what a fork may ask for, as far as it is not the default."""
    sections = {"compaction", "eviction", "memory", "transcript"}
    found = context.model_dump(mode="json", include=sections, exclude_defaults=True)
    compaction = found.get("compaction", {}) | {"window_tokens": window_for(context) or 0}
    compaction.pop("summary_prompt", None)
    return found | {"compaction": compaction}


def _said_without_memory(state: State) -> str:
    """Return the watermark that leaves out what was said while memory was off; else nothing."""
    was_on = state.call.get("settings", {}).get("memory", {}).get("enabled", True)
    old = len(state.messages) - len(uncounted(state.messages, state.meter))
    return "" if was_on or not old else str(state.messages[old - 1].id)


def _first_new(state: State) -> str:
    new = uncounted(state.messages, state.meter) or state.messages[-1:]
    return str(new[0].id) if new else ""


async def _mended(run: Run, state: State) -> list[BaseMessage] | None:
    """Return the history as it has to be, or None when it is so already."""
    new = uncounted(state.messages, state.meter)
    kept = [adopted(without_faults(message)) for message in new if not _is_blank(message)]
    kept = _allowed_pins(run, state, kept, len(new))
    changed = len(kept) < len(new) or any(a is not b for a, b in zip(kept, new, strict=True))
    storable = [*state.messages[: len(state.messages) - len(new)], *kept]
    asked = bool(storable) and isinstance(storable[-1], HumanMessage)
    finished = await _finished(run, storable) if asked else None
    mending = repair(storable, finished=finished, close_open=asked)
    if mending is None:
        return storable if changed else None
    for note in mending.notes:
        log.warning("Repaired the history of thread %s: %s", run.thread_id, note)
    return mending.messages


def _allowed_pins(run: Run, state: State, kept: list[BaseMessage], count: int) -> list[BaseMessage]:
    """Return the new messages without the marks that would pin too much; say which lost theirs."""
    if not any(is_pinned(message) for message in kept):
        return kept
    most = most_pinned_tokens(window_of(run.context, state.named_windows))
    old = state.messages[: len(state.messages) - count]
    allowed, refused = within(old, kept, most)
    for one in refused:
        log.warning(
            "Message %s is kept but not pinned: %d tokens would be pinned, at most %d may be",
            one.message_id,
            one.tokens,
            most,
        )
        run.tell(
            {
                "type": "pin.refused",
                "message_id": one.message_id,
                "tokens": one.tokens,
                "most_tokens": most,
            }
        )
    return allowed


def _is_blank(message: BaseMessage) -> bool:
    """Tell a user message with neither text nor blocks; no provider takes one."""
    blank = isinstance(message.content, str) and not message.content.strip()
    return isinstance(message, HumanMessage) and (blank or not message.content)


async def _finished(run: Run, messages: Sequence[BaseMessage]) -> Mapping[str, ToolMessage]:
    """Return results that were kept while the last batch of calls waited for a person."""
    last = next((m for m in reversed(messages) if isinstance(m, AIMessage)), None)
    answered = {m.tool_call_id for m in messages if isinstance(m, ToolMessage)}
    if run.store is None or last is None or set(call_ids(last)) <= answered:
        return {}
    return await finished_calls.find(run.store, run.user_id, run.thread_id, str(last.id))


def _refuse_nothing_to_answer(messages: Sequence[BaseMessage]) -> None:
    spoken = [message for message in messages if message.type != "system"]
    if not spoken or (isinstance(spoken[-1], AIMessage) and not call_ids(spoken[-1])):
        msg = (
            "`messages`: expected at least one user message with text or other content; got "
            "nothing to answer. Send `{'messages': [{'role': 'user', 'content': '...'}]}`, or "
            "`{'request': {'compact': True}}` (or `'consolidate'`) for that alone."
        )
        raise InvalidInputError(msg)
