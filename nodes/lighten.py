"""What needs no model: shorten old arguments and old tool results, and keep the full text (R12)."""

from collections.abc import Sequence

from langchain_core.messages import BaseMessage

from everlong.nodes.pruning import Shortened, prune_results, truncate_arguments
from everlong.nodes.run import Run
from everlong.stores import files


async def lighten(run: Run, messages: Sequence[BaseMessage], *, tokens: int) -> list[BaseMessage]:
    """Return the messages that became shorter, each under its own id; none where nothing did.

    The full texts are in the user's files first. Without a store nothing is shortened, since what
    is cut has to stay readable.

    Raises:
        Exception: the store's own, when it cannot be written.
    """
    if run.store is None:
        return []
    settings = run.context.compaction
    prune, cut = settings.prune, settings.truncate_args
    shortened: list[Shortened] = []
    if cut.enabled and (len(messages) >= cut.trigger_messages or tokens >= cut.trigger_tokens):
        shortened += truncate_arguments(
            messages,
            keep_messages=cut.keep_messages,
            over_chars=cut.over_chars,
            path_of=files.evicted_path,
        )
    if prune.enabled:
        shortened += prune_results(
            messages,
            protect_tokens=prune.protect_tokens,
            minimum_tokens=prune.minimum_tokens,
            preview_chars=prune.preview_chars,
            exempt=run.context.eviction.exempt_tools,
            path_of=files.evicted_path,
        )
    for one in shortened:
        await _keep_full(run, one)
    return [one.message for one in shortened]


async def _keep_full(run: Run, shortened: Shortened) -> None:
    if run.store is not None and shortened.path_text:
        await files.write(
            run.store, run.user_id, files.evicted_path(shortened.path_text), shortened.path_text
        )
