"""The process's settings. Only this module reads the environment."""

import os
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

PREFIX = "EVERLONG_"
PROCESS_FIELDS = (
    "HOME",
    "DATABASE_URL",
    "TRUST_CONTEXT_USER",
    "POOL_SIZE",
    "EMBED",
    "EMBED_DIMS",
)


class Settings(BaseSettings):
    """What a process needs to know before any run: where the data is."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_ignore_empty=True, frozen=True, extra="ignore"
    )

    database_url: str = Field(
        default="",
        validation_alias="DATABASE_URL",
        description="Postgres to use; empty: the embedded one.",
    )
    home: Path | None = Field(
        default=None, description="Folder of the embedded Postgres; none: the user's data folder."
    )
    xdg_data_home: str = Field(
        default="",
        validation_alias="XDG_DATA_HOME",
        description="Where the user's programs keep data; empty: ~/.local/share.",
    )
    pool_size: int = Field(default=20, ge=2, le=500, description="Most connections of the pool.")
    embed: str = Field(
        default="",
        description="Embedder for searches by meaning: `openai:<model>` or `./file.py:name`.",
    )
    embed_dims: int = Field(
        default=0, ge=0, description="How many numbers the embedder makes of a text."
    )
    trust_context_user: bool = Field(
        default=True,
        description="Accept `user_id` from the context where the server authenticated no one.",
    )


@cache
def environment() -> dict[str, Any]:
    """Defaults for the run's `Context` from `EVERLONG_...`, read once: nested by `__`.

    `EVERLONG_COMPACTION__TRIGGER_MESSAGES=30` becomes `{"compaction": {"trigger_messages": "30"}}`.

    Raises:
        ValueError: a variable gives a value to what others take for a section; both are named.
    """
    found: dict[str, Any] = {}
    given = os.environ.items()  # noqa: TID251 - the one place
    for name, value in sorted(given, key=_lower_name):  # a section's own name before its fields
        if not name.startswith(PREFIX) or name[len(PREFIX) :] in PROCESS_FIELDS:
            continue
        *sections, leaf = name[len(PREFIX) :].lower().split("__")
        place = found
        for depth, section in enumerate(sections, start=1):
            inside: Any = place.setdefault(section, {})
            if isinstance(inside, str):
                _refuse_both(PREFIX + "__".join(sections[:depth]).upper(), inside, name)
            place = inside
        place[leaf] = value
    return found


def _lower_name(variable: tuple[str, str]) -> str:
    return variable[0].lower()


def _refuse_both(section: str, value: str, field: str) -> NoReturn:
    msg = f"expected {section} or {field}; got both ({section}={value!r}); unset the first"
    raise ValueError(msg)


@cache
def settings() -> Settings:
    """Return the process's settings, read once."""
    return Settings()
