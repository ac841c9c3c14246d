"""The configuration of one run, and who it is for."""

from collections.abc import Mapping
from typing import Annotated, Any, Protocol, Self, cast
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from langchain_core.language_models import BaseChatModel
from langgraph.runtime import ExecutionInfo, ServerInfo
from pydantic import (
    AfterValidator,
    BaseModel,
    Field,
    SkipValidation,
    ValidationError,
    WithJsonSchema,
    model_validator,
)

from everlong.nodes.errors import InvalidInputError, MissingUserError
from everlong.nodes.prompts import text_of
from everlong.nodes.sections import (
    Compaction,
    Eviction,
    Memory,
    Prune,
    Section,
    TruncateArgs,
)
from everlong.stores.settings import environment, settings

__all__ = [
    "Compaction",
    "Context",
    "Eviction",
    "HasContext",
    "Memory",
    "Prune",
    "TruncateArgs",
    "context_of",
    "user_of",
]

Model = Annotated[
    str | SkipValidation[BaseChatModel],
    WithJsonSchema({"type": "string"}),
]


def _time_zone(value: str) -> str:
    try:
        ZoneInfo(value)
    except (ZoneInfoNotFoundError, ValueError):
        msg = f"expected an IANA time zone such as 'Asia/Shanghai'; got {value!r}"
        raise ValueError(msg) from None
    return value


class Context(Section):
    """The configuration of one run; `EVERLONG_...` in the environment gives other defaults."""

    user_id: str | None = Field(
        default=None,
        description="Whose conversation it is. There is no default user.",
    )
    model: Model = Field(
        default="offline",
        description="Chat model: an object, or a name such as `openai:gpt-4o` or `offline`.",
        json_schema_extra={"langgraph_nodes": ["reason"], "langgraph_type": "llm"},
    )
    summary_model: Model | None = Field(
        default=None,
        description="Model of the summaries; none: `model`.",
        json_schema_extra={"langgraph_nodes": ["compact"]},
    )
    memory_model: Model | None = Field(
        default=None,
        description="Model of flush and consolidation; none: `model`.",
        json_schema_extra={"langgraph_nodes": ["flush_memory", "consolidate"]},
    )
    system_prompt: str = Field(
        default=text_of("reason"),
        description="The system prompt.",
        json_schema_extra={"langgraph_nodes": ["reason"], "langgraph_type": "prompt"},
    )
    rules: str = Field(
        default="",
        description="Text of AGENTS.md: rules that every request carries, uncompacted.",
        json_schema_extra={"langgraph_nodes": ["reason"], "langgraph_type": "prompt"},
    )
    time_zone: Annotated[str, AfterValidator(_time_zone)] = Field(
        default="UTC", description="The user's IANA time zone."
    )
    max_tool_rounds: int = Field(
        default=25, ge=1, le=1_000, description="Rounds of tool calls in one call of the agent."
    )
    transcript: bool = Field(
        default=True, description="Keep the complete transcript; off: no undo, no archive search."
    )
    transcript_days: int = Field(
        default=180,
        ge=0,
        description="Messages that have left the history go from the transcript after so many "
        "days; 0: never.",
    )
    compaction: Compaction = Field(
        default_factory=Compaction, description="When old messages become one summary."
    )
    eviction: Eviction = Field(
        default_factory=Eviction, description="When one tool result is too big."
    )
    memory: Memory = Field(default_factory=Memory, description="What moves across sessions.")

    @model_validator(mode="before")
    @classmethod
    def _environment_below(cls, values: Any) -> Any:
        return _below(environment(), values) if isinstance(values, Mapping) else values

    @model_validator(mode="after")
    def _models_are_models(self) -> Self:
        for name in ("model", "summary_model", "memory_model"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str | BaseChatModel):
                msg = f"`{name}`: expected a chat model or its name; got {type(value).__name__}"
                raise ValueError(msg)
        return self


def _below(defaults: Mapping[str, Any], values: Any) -> Any:
    """`values` over `defaults`, section by section."""
    if isinstance(values, BaseModel):
        given = {name: getattr(values, name) for name in values.model_fields_set}
        return _below(defaults, given) if defaults else values
    if not isinstance(values, Mapping):
        return values
    merged = dict(defaults) | dict(cast("Mapping[str, Any]", values))
    for name, default in defaults.items():
        if isinstance(default, Mapping) and name in values:
            merged[name] = _below(cast("Mapping[str, Any]", default), values[name])
    return merged


class HasContext(Protocol):
    """A node's `Runtime` or a tool's `ToolRuntime`."""

    @property
    def context(self) -> Any:
        """The run's context, as the caller gave it."""

    @property
    def server_info(self) -> ServerInfo | None:
        """Who a server authenticated."""

    @property
    def execution_info(self) -> ExecutionInfo | None:
        """Which thread it is."""


def context_of(runtime: HasContext) -> Context:
    """Return the run's context, in whatever form a caller or a parent graph gave it.

    A mapping or another object gives the fields that are ours; nothing given leaves the defaults.

    Raises:
        InvalidInputError: a field is out of range; the text names it.
    """
    given: Any = runtime.context
    if isinstance(given, Context):
        return given
    if given is None:
        found: dict[str, Any] = {}
    elif isinstance(given, Mapping):
        found = {
            k: v for k, v in cast("Mapping[str, Any]", given).items() if k in Context.model_fields
        }
    else:
        found = {k: getattr(given, k) for k in Context.model_fields if hasattr(given, k)}
    try:
        return Context(**found)
    except ValidationError as error:
        raise InvalidInputError(str(error)) from error


def user_of(runtime: HasContext) -> str:
    """Return whose call it is: who the server authenticated, else the context's `user_id`.

    Raises:
        MissingUserError: nobody says.
    """
    user = runtime.server_info.user if runtime.server_info is not None else None
    if user is not None and user.is_authenticated and user.identity.strip():
        return user.identity  # a cron of a server that knows no users has a blank one
    user_id = context_of(runtime).user_id if settings().trust_context_user else None
    if user_id is None or not user_id.strip():
        msg = (
            f"`user_id`: expected who the conversation belongs to; got {user_id!r}. "
            "Pass `context=Context(user_id=...)`, or let the server authenticate the user."
        )
        raise MissingUserError(msg)
    return user_id
