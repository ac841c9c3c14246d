"""The configuration of one run, and who it is for."""

from collections.abc import Iterable, Mapping
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
    Names,
    Prune,
    Section,
    TruncateArgs,
    given_in,
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
    "context_within",
    "user_of",
]

OURS = "everlong"
"""Where a parent graph's context may have our fields apart from its own."""

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
    approve_tools: Names = Field(
        default=(),
        description="Tools whose calls wait for a person, beside those that the process says.",
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
    transcript_messages: int = Field(
        default=0, ge=0, description="Newest messages that a transcript keeps of these; 0: all."
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

    Raises:
        InvalidInputError: a field is out of range; the text names it.
    """
    given: Any = runtime.context
    return given if isinstance(given, Context) else context_within(given)


def context_within(given: Any, defaults: Mapping[str, Any] | None = None) -> Context:
    """Return our context out of a parent graph's, over `defaults`.

    A mapping or another object gives the fields that are ours and not None, as far as it has them:
    under `everlong` where it has that, and else beside its own. `user_id` may be in both places.

    Raises:
        InvalidInputError: a field is out of range; the text names it.
    """
    ours = _fields(given, (OURS,)).get(OURS)
    found = _fields(given, Context.model_fields if ours is None else ("user_id",))
    if ours is not None:  # of a mapping every name counts: one that is unknown is a mistake
        found |= ours if isinstance(ours, Mapping) else _fields(ours, Context.model_fields)
    try:
        return Context(**_below(defaults or {}, found))
    except ValidationError as error:
        raise InvalidInputError(str(error)) from error


def _fields(given: Any, names: Iterable[str]) -> dict[str, Any]:
    """Return the fields of these names that a mapping or an object has, save those that are None.

    Of settings of ours only what was given: the others would hide what they stand over.
    """
    if isinstance(given, Context):
        given = given_in(given)
    if isinstance(given, Mapping):
        known = cast("Mapping[str, Any]", given)
        found = {name: known[name] for name in names if name in known}
    else:
        found = {name: getattr(given, name) for name in names if hasattr(given, name)}
    return {name: value for name, value in found.items() if value is not None}


def user_of(runtime: HasContext) -> str:
    """Return whose call it is: who the server authenticated, else the context's `user_id`.

    Raises:
        MissingUserError: nobody says.
        InvalidInputError: the context names another user than the server has authenticated.
    """
    server = runtime.server_info
    user = server.user if server is not None else None
    user_id = context_of(runtime).user_id
    if user is not None and user.is_authenticated and user.identity.strip():
        if user_id not in (None, user.identity):
            msg = f"`user_id`: expected none, or who is authenticated; got {user_id!r}"
            raise InvalidInputError(msg)
        return user.identity
    user_id = user_id if _trusts_context(server) else None
    if user_id is None or not user_id.strip():
        msg = (
            f"`user_id`: expected who the conversation belongs to; got {user_id!r}. "
            "Pass `context=Context(user_id=...)`, or let the server authenticate the user. "
            "A parent graph passes it in its own context: a field `user_id`."
        )
        raise MissingUserError(msg)
    return user_id


def _trusts_context(server: ServerInfo | None) -> bool:
    """Tell whether a `user_id` counts without proof: never in a server that knows its users."""
    is_server = server is not None and bool(server.user or server.graph_id or server.assistant_id)
    return settings().trust_context_user and not (is_server and settings().auth.is_configured)
