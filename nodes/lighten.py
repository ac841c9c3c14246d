"""What needs no model: shorten messages, and keep their full texts (R12, R22)."""

import logging
from collections.abc import Iterable, Sequence

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from everlong.nodes.meter import visible
from everlong.nodes.pruning import Shortened, prune_results, truncate_arguments
from everlong.nodes.run import Run
from everlong.nodes.shrinking import Cutting, shrink
from everlong.nodes.tokens import estimate_message, estimate_messages
from everlong.nodes.transcript import batches, is_pinned, is_summary
from everlong.stores import files

log = logging.getLogger("everlong.compaction")


async def lighten(run: Run, messages: Sequence[BaseMessage], *, tokens: int) -> list[BaseMessage]:
    """Return the messages that became shorter, each under its own id: old results and arguments.

    The full texts are in the user's files first. Without a store nothing is shortened, since what
    is cut has to stay readable. Results that no model has read yet are not old.
    """
    settings = run.context.compaction
    prune, cut = settings.prune, settings.truncate_args
    shortened: list[Shortened] = []
    if cut.enabled and (visible(messages) >= cut.trigger_messages or tokens >= cut.trigger_tokens):
        shortened += truncate_arguments(
            messages,
            keep_messages=cut.keep_messages,
            over_chars=cut.over_chars,
            path_of=files.evicted_path,
        )
    if prune.enabled:
        unread = _unread(messages)
        shortened += prune_results(
            messages[:unread],
            protect_tokens=max(prune.protect_tokens - estimate_messages(messages[unread:]), 0),
            minimum_tokens=prune.minimum_tokens,
            preview_chars=prune.preview_chars,
            exempt=run.context.eviction.exempt_tools,
            path_of=files.evicted_path,
        )
    return await _stored(run, shortened)


async def preview_oversized(
    run: Run, messages: Sequence[BaseMessage], *, room_tokens: int, cutting: Cutting
) -> list[BaseMessage]:
    """Return previews of the user messages that alone are longer than a request has room for."""
    shortened: list[Shortened] = []
    for message in messages:
        is_spoken = isinstance(message, HumanMessage) and not is_summary(message)
        if is_spoken and not is_pinned(message) and estimate_message(message) > room_tokens:
            found = shrink([message], room_tokens=room_tokens, cutting=cutting)
            shortened += found.shortened
    return await _stored(run, shortened)


async def make_fit(
    run: Run, messages: Sequence[BaseMessage], *, room_tokens: int, cutting: Cutting
) -> tuple[list[BaseMessage], str]:
    """Return the messages that were shortened so that all fit, and in words what still does not.

    Shortened is as little as may be, and nothing without a store.
    """
    found = shrink(messages, room_tokens=room_tokens, cutting=cutting)
    stored = await _stored(run, found.shortened)
    if not found.over_tokens and len(stored) == len(found.shortened):
        return stored, ""
    if len(stored) < len(found.shortened):
        return stored, "what is too long cannot be moved out: there is no store that takes it"
    return stored, f"{found.over_tokens} tokens over what fits: {found.stays} cannot be shortened"


def _unread(messages: Sequence[BaseMessage]) -> int:
    """Return the index from which on no model has read the messages: a batch without an answer."""
    newest = next((group for group in reversed(batches(messages))), None)
    if newest is None or any(isinstance(one, AIMessage) for one in messages[newest[0] + 1 :]):
        return len(messages)
    return newest[0]


async def _stored(run: Run, shortened: Iterable[Shortened]) -> list[BaseMessage]:
    """Return the messages whose full texts are in the user's files; the others stay as they are."""
    if run.store is None:
        return []
    stored: list[BaseMessage] = []
    for one in shortened:
        try:
            await _keep_full(run, one)
        except Exception:
            log.exception("%s cannot be shortened: its full text is not stored", one.message.id)
        else:
            stored.append(one.message)
    return stored


async def _keep_full(run: Run, shortened: Shortened) -> None:
    text, message = shortened.path_text, shortened.message
    if run.store is None or not text:
        return
    call = message.tool_call_id if isinstance(message, ToolMessage) else ""
    origin = {"tool": message.name or "", "call": call, "thread": run.thread_id}
    await files.write(run.store, run.user_id, files.evicted_path(text), text, origin=origin)
