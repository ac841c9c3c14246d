"""The process's settings. Only this module reads the environment."""

import os
from functools import cache
from pathlib import Path
from typing import Annotated, Any, NoReturn, Self
from urllib.parse import urlsplit

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PositiveFloat,
    SecretStr,
    StringConstraints,
    model_validator,
)
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from everlong.stores.spelled_settings import names_in, object_in

PREFIX = "EVERLONG_"
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
DEVELOPMENT = "local_dev"
"""What `langgraph dev`, and nothing else, sets as the server's variant."""
SECRET_BYTES = 32
"""Least length of a shared secret: as long as the hash of HS256."""
SHARED = frozenset({"HS256", "HS384", "HS512"})
PUBLIC = frozenset(
    {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}
)

Text = Annotated[str, StringConstraints(strip_whitespace=True)]


class AuthSettings(BaseModel):
    """Whose bearer tokens (JWT) a server accepts; nothing set: it authenticates nobody."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    secret: SecretStr = Field(
        default=SecretStr(""), description="Secret that tokens are signed with (HS256)."
    )
    public_key: Text = Field(
        default="", description="Public key of those who sign: in PEM, or the path of such a file."
    )
    jwks_url: Text = Field(
        default="", description="Where those who sign publish their keys (JWKS), by https."
    )
    algorithms: frozenset[str] = Field(
        default=frozenset(),
        description="JSON list of the algorithms accepted; empty: HS256, the public key's own, or "
        "RS256, ES256 and EdDSA of a JWKS.",
    )
    audience: Text = Field(default="", description="The `aud` that a token must name.")
    issuer: Text = Field(default="", description="The `iss` that a token must name; empty: any.")
    leeway_seconds: int = Field(
        default=30, ge=0, le=300, description="How far the clocks of those who sign may be off."
    )

    def __str__(self) -> str:
        kinds = {"secret": self.secret.get_secret_value(), "public key": self.public_key}
        found = [kind for kind, value in kinds.items() if value] or [self.jwks_url]
        return f"{found[0]}, audience {self.audience}" if self.is_configured else "(nobody's)"

    @property
    def is_configured(self) -> bool:
        """Whether a server authenticates its users."""
        return bool(self.secret.get_secret_value() or self.public_key or self.jwks_url)

    @model_validator(mode="after")
    def _one_kind_of_key(self) -> Self:
        secret = self.secret.get_secret_value()
        given = [
            name
            for name, value in (
                ("secret", secret),
                ("public_key", self.public_key),
                ("jwks_url", self.jwks_url),
            )
            if value
        ]
        if self.model_fields_set and len(given) != 1:
            msg = f"expected one of secret, public_key, jwks_url; got {given or 'none of them'}"
            raise ValueError(msg)
        if given and not self.audience:
            msg = "`audience`: expected what tokens for this server name as `aud`; got none"
            raise ValueError(msg)
        if secret and len(secret.encode()) < SECRET_BYTES:
            msg = f"`secret`: expected at least {SECRET_BYTES} random bytes; got fewer"
            raise ValueError(msg)
        return self

    @model_validator(mode="after")
    def _algorithms_of_that_key(self) -> Self:
        allowed = SHARED if self.secret.get_secret_value() else PUBLIC
        if wrong := sorted(self.algorithms - allowed):
            msg = f"`algorithms`: expected some of {sorted(allowed)} for this key; got {wrong}"
            raise ValueError(msg)
        return self

    @model_validator(mode="after")
    def _keys_come_by_https(self) -> Self:
        url = urlsplit(self.jwks_url)
        if self.jwks_url and not (
            url.scheme == "https" or (url.scheme == "http" and url.hostname in LOOPBACK)
        ):
            msg = f"`jwks_url`: expected https://...; got {self.jwks_url!r}"
            raise ValueError(msg)
        return self


class Settings(BaseSettings):
    """What a process needs to know before any run: where the data is."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_nested_delimiter="__",
        env_ignore_empty=True,
        frozen=True,
        extra="ignore",
        hide_input_in_errors=True,  # a secret may be among it
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
    thread_wait_seconds: PositiveFloat = Field(
        default=600.0,
        description="Longest wait for another run of the same thread, on a server that starts "
        "several at once; and of the same agent inside another graph.",
    )
    auth: AuthSettings = Field(
        default_factory=AuthSettings, description="Whose bearer tokens a server accepts."
    )
    tools: str = Field(
        default="", description="Tools of your own, such as shop.tools:TOOLS; several by commas."
    )
    mcp: str = Field(
        default="", repr=False, description="MCP servers: JSON, or the path of a JSON file."
    )
    approve_tools: Annotated[tuple[str, ...], NoDecode, BeforeValidator(names_in)] = Field(
        default=(),
        description="Tools whose calls wait for a person, whatever a run says: names, or patterns "
        "such as bank_*.",
    )
    tool_seconds: Annotated[dict[str, PositiveFloat], NoDecode, BeforeValidator(object_in("*"))] = (
        Field(
            default={"*": 300.0},
            description="Longest wait for a call of a tool, in seconds; JSON: by name or pattern.",
        )
    )
    checkpoints_kept: int = Field(
        default=20,
        ge=0,
        description="Newest checkpoints of a thread that stay, for time travel; 0: all.",
    )
    checkpoint_days: int = Field(
        default=7,
        ge=0,
        description="After so many days a thread keeps what resuming it needs; 0: never.",
    )
    server_variant: str = Field(
        default="",
        validation_alias="LANGSMITH_LANGGRAPH_API_VARIANT",
        description="What kind of LangGraph server this is; the server sets it.",
    )

    @property
    def is_development(self) -> bool:
        """Whether this is `langgraph dev`."""
        return self.server_variant == DEVELOPMENT


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
        if not name.startswith(PREFIX) or _is_of_the_process(name[len(PREFIX) :]):
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


def _is_of_the_process(name: str) -> bool:
    return name.partition("__")[0].lower() in Settings.model_fields


def variable(name: str) -> str | None:
    """Return a variable of the process that a setting refers to; None where it is not set."""
    return os.environ.get(name)  # noqa: TID251 - the one place


def _lower_name(variable: tuple[str, str]) -> str:
    return variable[0].lower()


def _refuse_both(section: str, value: str, field: str) -> NoReturn:
    msg = f"expected {section} or {field}; got both ({section}={value!r}); unset the first"
    raise ValueError(msg)


@cache
def settings() -> Settings:
    """Return the process's settings, read once."""
    return Settings()
