"""What a compaction does before it asks a model: shorten, plan, make what stays fit (R12, R22)."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage

from everlong.nodes.budget import Limits, Trigger, above_fixed, trigger_of
from everlong.nodes.lighten import lighten, make_fit, preview_oversized
from everlong.nodes.meter import counted, recounted, request_tokens, visible
from everlong.nodes.oversize import eviction_limits
from everlong.nodes.plan import Plan, Sizes, plan
from everlong.nodes.pruning import EVICTED
from everlong.nodes.run import Run
from everlong.nodes.shrinking import Cutting
from everlong.nodes.state import Meter, State
from everlong.nodes.thresholds import estimate_share, limits_for, tokens_of_request
from everlong.nodes.tokens import estimate_messages
from everlong.nodes.transcript import conversation
from everlong.stores import files

log = logging.getLogger("everlong.compaction")


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A plan, and what was shortened already."""

    plan: Plan
    meter: Meter
    """The count of the history with what was shortened."""
    shortened: Sequence[BaseMessage] = ()
    """The messages that became shorter, each under its own id."""
    is_enough: bool = False
    """What was shortened brings the request under its triggers: no summary is needed."""
    too_long: str = ""
    """What cannot be made to fit, in words."""
    events: Sequence[dict[str, Any]] = field(default_factory=tuple[dict[str, Any], ...])
    """Which user messages became previews."""


async def prepare(run: Run, state: State, trigger: Trigger, *, reader: str) -> Prepared:
    """Shorten what needs no model, plan, and shorten harder what stays and would not fit.

    What is shortened has its full text in the user's files, which the tool `reader` reads; ids and
    order stay.
    """
    sizes, cutting = _sizes(state), _cutting(run, state, reader)
    limits = above_fixed(limits_for(run.context, state), sizes.fixed)
    shorter = await lighten(run, state.messages, tokens=sizes.total)
    if free := _room_for_one(state, trigger, limits, sizes):
        shorter += await preview_oversized(run, state.messages, room_tokens=free, cutting=cutting)
    messages, meter = _with(state.messages, shorter), counted(state.messages, state.meter)
    if shorter:
        meter = recounted(messages)
        request = request_tokens(meter, fixed_tokens=sizes.fixed)
        sizes = replace(sizes, request=int(request / sizes.estimate_share))
    settings = run.context.compaction
    planned = plan(messages, settings=settings, trigger=trigger, limits=limits, sizes=sizes)
    still = trigger_of(limits, messages=visible(messages), tokens=sizes.request)
    if shorter and trigger == "tokens" and still is None:
        return _prepared(planned, meter, shorter, is_enough=True)
    fitted, too_long = await _fitted(run, planned, messages, cutting)
    if fitted:
        meter = recounted(_with(messages, fitted))
        planned = planned.holding({message.id: message for message in fitted})
    return _prepared(planned, meter, _merged(shorter, fitted), too_long=too_long)


def _sizes(state: State) -> Sizes:
    return Sizes(
        total=estimate_messages(state.messages),
        request=tokens_of_request(state),
        fixed=state.call.get("fixed_tokens", 0),
        estimate_share=estimate_share(state),
    )


def _cutting(run: Run, state: State, reader: str) -> Cutting:
    _, preview_chars = eviction_limits(run.context, state.named_windows)
    return Cutting(
        preview_chars=preview_chars,
        path_of=files.evicted_path,
        exempt=run.context.eviction.exempt_tools,
        reader=reader,
    )


def _room_for_one(state: State, trigger: Trigger, limits: Limits, sizes: Sizes) -> int:
    """Return the tokens over which no request could ever hold one message; 0: nobody knows."""
    if limits.window is None and trigger != "overflow":
        return 0
    system = [message for message in state.messages if message.type == "system"]
    return max(sizes.free(limits, system), 0)


async def _fitted(
    run: Run, planned: Plan, messages: Sequence[BaseMessage], cutting: Cutting
) -> tuple[list[BaseMessage], str]:
    """Shorten what stays, where it does not fit though nothing older is left to replace."""
    if planned.split.is_cut:
        stays, free = planned.split.kept, planned.kept_room
    else:
        stays, free = tuple(conversation(messages)), planned.history_room
    if not planned.is_bound or estimate_messages(stays) <= free:
        return [], ""
    if free <= 0:
        return [], f"the fixed parts of the request alone, {planned.fixed_tokens} tokens"
    fitted, too_long = await make_fit(run, stays, room_tokens=free, cutting=cutting)
    if too_long:
        log.warning("The request does not fit: %s", too_long)
    return fitted, too_long


def _prepared(
    planned: Plan,
    meter: Meter,
    shortened: Sequence[BaseMessage],
    *,
    is_enough: bool = False,
    too_long: str = "",
) -> Prepared:
    previews = [one for one in shortened if isinstance(one, HumanMessage)]
    return Prepared(
        plan=planned,
        meter=meter,
        shortened=shortened,
        is_enough=is_enough,
        too_long=too_long,
        events=[
            {"type": "eviction", "what": "user message", "message": one.id}
            | one.additional_kwargs[EVICTED]
            for one in previews
        ],
    )


def _with(messages: Sequence[BaseMessage], shorter: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return the messages with the shortened ones in their places."""
    by_id = {message.id: message for message in shorter}
    return [by_id.get(message.id, message) for message in messages]


def _merged(first: Sequence[BaseMessage], then: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return each shortened message once, as it is now."""
    return list({message.id: message for message in (*first, *then)}.values())
