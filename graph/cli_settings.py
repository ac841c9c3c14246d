"""The settings in force, where each comes from, and what is wrong with those that are refused."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from pydantic import BaseModel, ValidationError

from everlong.nodes.budget import Limits
from everlong.nodes.context import Context, Section
from everlong.nodes.errors import InvalidInputError
from everlong.stores.dsn import place_of
from everlong.stores.embedded import default_home
from everlong.stores.settings import PREFIX, Settings, environment, settings

DEFAULT = "default"
SHOWN_CHARS = 60
ONLY_OF_A_RUN = ("user_id", "approve_tools")

Path = tuple[str, ...]
"""A setting's name, section by section."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One setting in force."""

    name: str
    value: str
    source: str
    """`default`, the name of an environment variable, or an option."""


class SettingsError(InvalidInputError):
    """Settings that are refused."""

    def __init__(self, troubles: Sequence[str]) -> None:
        super().__init__("; ".join(troubles))
        self.troubles = troubles
        """What is wrong, one by one."""


def context_for(user_id: str | None, model: str | None) -> Context:
    """Return the run's settings: options over the environment over defaults.

    Raises:
        SettingsError: some are refused; the text names each and where it comes from.
    """
    check_process()
    given = {"user_id": user_id, "model": model}
    chosen = {name: value for name, value in given.items() if value}
    try:
        return Context.model_validate(chosen)
    except ValidationError as error:
        raise SettingsError(_troubles(error, chosen)) from error


def check_process() -> None:
    """See that the process's own settings can be used.

    Raises:
        SettingsError: some are refused.
    """
    try:
        settings()
    except ValidationError as error:
        raise SettingsError(_troubles(error, {})) from error


def _troubles(error: ValidationError, chosen: Mapping[str, Any]) -> list[str]:
    """Return what is wrong with settings, one by one, each with its source."""
    found: list[str] = []
    for one in error.errors(include_url=False):
        path = tuple(str(part) for part in one["loc"] if not str(part).startswith("function-"))
        said = one["msg"].removeprefix("Value error, ")
        told = isinstance(one["input"], dict) or "got" in said or path[:1] == ("auth",)
        got = "" if told else f"; got {one['input']!r}"  # what is said of `auth` repeats no secret
        if path and path[0] in chosen:
            source = f"--{path[0].removesuffix('_id')}"
        else:
            source = _variable(path) if error.title == "Context" else _process_variable(path[0])
        more = "..." if not path else "__..." if said.startswith("unknown setting") else ""
        found.append(f"`{'.'.join(path) or 'settings'}` ({source}{more}): {said}{got}")
    return found


def process_settings() -> list[Setting]:
    """Return the settings of the process; of a DSN the password is not told.

    Raises:
        ValidationError: one of them is refused.
        ValueError: the DSN cannot be read.
    """
    values = settings()
    shown = {
        "database_url": place_of(values.database_url) if values.database_url else "(embedded)",
        "home": str(default_home()),
        "pool_size": _shown(values.pool_size),
        "embed": values.embed or "(none: searches by words)",
        "embed_dims": _shown(values.embed_dims),
        "trust_context_user": _shown(values.trust_context_user),
        "thread_wait_seconds": _shown(values.thread_wait_seconds),
        "auth": str(values.auth),
        "tools": _shown(values.tools or None),
        "mcp": "(JSON)" if "{" in values.mcp else _shown(values.mcp or None),
        "approve_tools": _shown(values.approve_tools),
        "tool_seconds": _shown(values.tool_seconds),
        "checkpoints_kept": _shown(values.checkpoints_kept),
        "checkpoint_days": _shown(values.checkpoint_days),
    }
    given = values.model_fields_set
    return [
        Setting(name=name, value=text, source=_process_variable(name) if name in given else DEFAULT)
        for name, text in shown.items()
    ]


def run_settings(
    context: Context, limits: Limits | None, *, options: Collection[str]
) -> list[Setting]:
    """Return the settings of a run; those in `options` came from the command line.

    `limits` are what the derived ones among them come to; None: not known.
    """
    given = environment()
    derived = _derived(limits) if limits else {}
    found: list[Setting] = []
    for path, value in _leaves(context):
        name = ".".join(path)
        source = f"--{name}" if name in options else _source(path, given)
        if name == "compaction.keep_tokens" and source == DEFAULT and value == 0:
            source = "follows from keep_messages"
        text = _shown(value) + (derived.get(name, "") if value in (0, -1) else "")
        found.append(Setting(name=name, value=text, source=source))
    return [one for one in found if one.name not in ONLY_OF_A_RUN]


def _derived(limits: Limits) -> dict[str, str]:
    """Say what the settings come to that are derived from the model's window."""
    tail = f"{limits.keep_tokens:,} tokens" if limits.keep_tokens else "by keep_messages"
    window = f"{limits.window:,}, the model's own" if limits.window else "not known"
    return {
        "compaction.window_tokens": f" ({window})",
        "compaction.trigger_tokens": f" ({limits.trigger_tokens:,})",
        "compaction.keep_tokens": f" ({tail})",
    }


def _leaves(section: BaseModel, above: tuple[str, ...] = ()) -> Iterator[tuple[Path, Any]]:
    for name in type(section).model_fields:
        value = getattr(section, name)
        if isinstance(value, Section):
            yield from _leaves(value, (*above, name))
        else:
            yield (*above, name), value


def _source(path: Path, given: Mapping[str, Any]) -> str:
    """Return the environment variable that holds a setting; else `default`."""
    place: Any = given
    for name in path:
        if not isinstance(place, Mapping) or name not in place:
            return DEFAULT
        place = cast("Mapping[str, Any]", place)[name]
    return _variable(path)


def _variable(path: Path) -> str:
    return PREFIX + "__".join(path).upper()


def _process_variable(name: str) -> str:
    field = Settings.model_fields.get(name.lower())
    alias = field.validation_alias if field else name
    return str(alias) if alias else PREFIX + name.upper()


def _shown(value: Any) -> str:
    if value is None:
        return "(none)"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        value = tuple(f"{name}: {one:,}" for name, one in cast("dict[str, Any]", value).items())
    if isinstance(value, tuple):
        return ", ".join(map(str, cast("tuple[Any, ...]", value))) or "(empty)"
    if isinstance(value, int | float):
        return f"{value:,}"
    text = " ".join(str(value).split())
    if len(text) <= SHOWN_CHARS:
        return text or "(empty)"
    return f"{text[:SHOWN_CHARS].rstrip()}… ({len(text):,} characters)"
