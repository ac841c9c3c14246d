"""Keep the transcript complete (R17): for `compact`, before it removes, and `flush_memory`."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from langchain_core.messages import BaseMessage

from everlong.nodes.run import Run
from everlong.nodes.state import State
from everlong.nodes.transcript import is_summary
from everlong.stores import transcripts
from everlong.stores.text import clean_text

log = logging.getLogger("everlong.transcript")


def after(messages: Sequence[BaseMessage], through: str) -> list[BaseMessage] | None:
    """Return the messages after the one with this id; None where it is not among them."""
    if not through:
        return list(messages)
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].id == through:
            return list(messages[index + 1 :])
    return None


async def archive(run: Run, state: State) -> dict[str, Any]:
    """Append what the transcript lacks; return the new value of `State.archived`.

    Appending twice is harmless: an entry's key comes from its number and the message's id.

    Raises:
        Exception: the store's own, when it cannot be written.
    """
    store = run.archive
    if store is None:
        return state.archived
    count = int(state.archived.get("count", 0))
    new = after(state.messages, str(state.archived.get("through", "")))
    edited = new is None
    if new is None:  # the watermark's message was edited away: ask the archive what it holds
        entries = await transcripts.read(store, run.user_id, run.thread_id)
        held = {entry.message_id for entry in entries}
        count = max((entry.number + 1 for entry in entries), default=count)
        new = [message for message in state.messages if message.id not in held]
    new = [message for message in new if not is_summary(message)]
    if not new:
        return state.archived
    await transcripts.append(
        store,
        run.user_id,
        run.thread_id,
        new,
        first=count,
        instant=run.instant,
        may_be_there=edited,
    )
    return dict(state.archived) | {"through": new[-1].id, "count": count + len(new)}


def numbered(messages: Sequence[BaseMessage], archived: Mapping[str, Any]) -> dict[str, int]:
    """Return the number in the transcript of each of the history's messages.

    Counted back from the newest, which is the transcript's last; `anchors` says where a compaction
    has left a gap. Only where the history was edited it may be wrong.
    """
    anchors: Mapping[str, int] = archived.get("anchors", {})
    number = int(archived.get("count", 0))
    found: dict[str, int] = {}
    for message in reversed(messages):
        if not is_summary(message):
            number = anchors.get(str(message.id), number - 1)
            found[str(message.id)] = number
    return found


def anchors(
    kept: Sequence[BaseMessage], numbers: Mapping[str, int], archived: Mapping[str, Any]
) -> dict[str, int]:
    """Return the numbers of those that stay whose next one in the transcript is gone."""
    expected = int(archived.get("count", 0)) - 1
    found: dict[str, int] = {}
    for message in reversed(kept):
        if is_summary(message):
            continue
        number = numbers.get(str(message.id), expected)
        if number != expected:
            found[str(message.id)] = number
        expected = number - 1
    return found


async def places(
    run: Run, messages: Sequence[BaseMessage], ids: Sequence[str], archived: Mapping[str, Any]
) -> list[list[int]]:
    """Return where the transcript has messages of the history: first and last number, each.

    Raises:
        Exception: the store's own, when it cannot be read.
    """
    store = run.archive
    if store is None or not archived:
        return []
    numbers = numbered(messages, archived)
    by_number = {numbers[one]: one for one in ids if one in numbers}
    found = ranges(by_number)
    for number in {number for both in found for number in both}:
        entries = await transcripts.read_between(store, run.user_id, run.thread_id, number, number)
        if clean_text(by_number[number]) not in [entry.message_id for entry in entries]:
            return await _searched(run, ids)  # the history was edited
    return found


async def _searched(run: Run, ids: Sequence[str]) -> list[list[int]]:
    """Look for messages in the whole transcript."""
    if run.archive is None:
        return []
    wanted = {clean_text(one) for one in ids}
    entries = await transcripts.read(run.archive, run.user_id, run.thread_id)
    return ranges(entry.number for entry in entries if entry.message_id in wanted)


def ranges(numbers: Iterable[int]) -> list[list[int]]:
    """Return the first and the last of each run of numbers."""
    found: list[list[int]] = []
    for number in sorted(set(numbers)):
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return found
