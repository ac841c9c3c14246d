"""Versions of a checkpoint's channels: which of two is newer, their order as texts says.

Ours have eight digits, those of LangGraph 32. A thread has both where programs and servers take
turns: a server goes on in LangGraph's, whatever its checkpointer says, and so does a thread that
has some. In memory ours have a space before them, since eight digits alone would come after 32.
"""

import base64
import random
from collections.abc import Callable
from typing import Any

from langgraph.checkpoint.base import ChannelVersions, Checkpoint

DIGITS = 8
SHORT = " "
"""Before a version of ours, in memory alone: it comes before any digit."""


def next_version(current: str | None) -> str:
    """Return the version after `current`.

    Each checkpoint names some twenty of them, so ours take a third of LangGraph's characters. The
    random part keeps forks of one checkpoint apart.
    """
    before = str(current or "0").partition(".")[0].removeprefix(SHORT)
    number = int(before) + 1
    spelled = f"{number:0{len(before)}}" if len(before) > DIGITS else f"{SHORT}{number:0{DIGITS}}"
    apart = base64.urlsafe_b64encode(random.randbytes(6)).decode()  # noqa: S311 - no secret
    return f"{spelled}.{apart}"


def sortable(checkpoint: Checkpoint) -> Checkpoint:
    """Return a checkpoint that was read, with versions in their order."""
    return _respelled(checkpoint, _sortable)


def as_stored(checkpoint: Checkpoint, new: ChannelVersions) -> tuple[Checkpoint, ChannelVersions]:
    """Return a checkpoint to write, and which versions are new, as the rows of values have them."""
    return _respelled(checkpoint, _stored), _each(new, _stored)


def _stored(version: Any) -> Any:
    return version.removeprefix(SHORT) if isinstance(version, str) else version


def _sortable(version: Any) -> Any:
    is_short = isinstance(version, str) and version[DIGITS : DIGITS + 1] == "."
    return f"{SHORT}{version}" if is_short else version


def _respelled(checkpoint: Checkpoint, spell: Callable[[Any], Any]) -> Checkpoint:
    found = checkpoint.copy()
    found["channel_versions"] = _each(checkpoint["channel_versions"], spell)
    seen = checkpoint["versions_seen"]
    found["versions_seen"] = {node: _each(versions, spell) for node, versions in seen.items()}
    return found


def _each(versions: ChannelVersions, spell: Callable[[Any], Any]) -> ChannelVersions:
    return {channel: spell(version) for channel, version in versions.items()}
