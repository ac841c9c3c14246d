"""The running token count of a thread: the one number that shows and that triggers.

Deciding costs only the new messages (R6): the count of the others is kept in the state, and the
provider's last reported figure replaces the estimate of the prefix that it covers. What came since
is estimated, in the provider's tokens: by how much it differed from the estimate of the prefix.
"""

from collections.abc import Sequence

from langchain_core.messages import BaseMessage, SystemMessage

from everlong.nodes.state import Meter
from everlong.nodes.tokens import estimate_message, estimate_messages

LEAST_SCALED_TOKENS = 1_000
"""Of a shorter request, what a provider adds on its own says more than its tokenizer."""
SCALES = (70, 150)
"""Per cent; what lies beyond has another reason than the tokenizer, such as images."""


def uncounted(messages: Sequence[BaseMessage], meter: Meter) -> Sequence[BaseMessage]:
    """Return the messages that the meter does not count yet; all, where the history is another.

    A history that no longer continues what was counted comes from a fork or an edit.
    """
    new = 0
    through = meter.get("through", "")
    while new < len(messages) and messages[-1 - new].id != through:
        new += 1
    continues = bool(through) and len(messages) - new == meter.get("count", 0)
    return messages[len(messages) - new :] if continues else messages


def counted(messages: Sequence[BaseMessage], meter: Meter) -> Meter:
    """Return the meter brought up to the newest message."""
    new = uncounted(messages, meter)
    if len(new) == len(messages):
        return recounted(messages)
    if not new:
        return meter
    added = estimate_messages(new)
    reported = meter.get("reported", 0)
    return meter | Meter(
        through=messages[-1].id or "",
        count=len(messages),
        tokens=meter.get("tokens", 0) + added,
        reported=reported + _scaled(added, meter) if reported else 0,
    )


def recounted(messages: Sequence[BaseMessage]) -> Meter:
    """Return a meter of estimates alone: what was reported no longer holds."""
    return Meter(
        through=(messages[-1].id or "") if messages else "",
        count=len(messages),
        tokens=estimate_messages(messages),
        reported=0,
        fixed_tokens=0,
    )


def after_answer(
    meter: Meter, answer: BaseMessage, *, input_tokens: int, fixed_tokens: int
) -> Meter:
    """Return the meter with the answer; `input_tokens` is the provider's figure, 0 for none."""
    size = estimate_message(answer)
    now = Meter(
        through=answer.id or "",
        count=meter.get("count", 0) + 1,
        tokens=meter.get("tokens", 0) + size,
        reported=0,
        fixed_tokens=fixed_tokens,
    )
    if input_tokens:
        now["scale"] = _scale(input_tokens, meter.get("tokens", 0) + fixed_tokens)
        now["reported"] = input_tokens + _scaled(size, now)
    return now


def request_tokens(meter: Meter, *, fixed_tokens: int) -> int:
    """Return the size of the next request: fixed parts and history."""
    reported = meter.get("reported", 0)
    if reported:
        return reported + _scaled(fixed_tokens - meter.get("fixed_tokens", 0), meter)
    return meter.get("tokens", 0) + fixed_tokens


def _scale(reported: int, estimated: int) -> int:
    if estimated < LEAST_SCALED_TOKENS:
        return 100
    low, high = SCALES
    return min(max(round(100 * reported / estimated), low), high)


def _scaled(tokens: int, meter: Meter) -> int:
    """Return an estimate in the tokens of the provider."""
    return round(tokens * meter.get("scale", 100) / 100)


def visible(messages: Sequence[BaseMessage]) -> int:
    """Count the non-system messages."""
    return sum(not isinstance(message, SystemMessage) for message in messages)
