"""The configuration of one run, and who it is for."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Protocol, Self, cast
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from langchain_core.language_models import BaseChatModel
from langgraph.runtime import ExecutionInfo, ServerInfo
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SkipValidation,
    ValidationError,
    WithJsonSchema,
    model_validator,
)

from everlong.nodes.errors import InvalidInputError, MissingUserError
from everlong.nodes.prompts import text_of
from everlong.stores.settings import environment, settings

READ_BACK_TOOLS = (
    "read_file",
    "write_file",
    "edit_file",
    "list_files",
    "memory_search",
    "memory_get",
    "session_search",
    "session_history",
)


class Section(BaseModel):
    """Settings that refuse an unknown name by listing the known ones."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    @model_validator(mode="before")
    @classmethod
    def _known_names(cls, values: Any) -> Any:
        if isinstance(values, dict):
            unknown = sorted(set(cast("dict[str, Any]", values)) - set(cls.model_fields))
            if unknown:
                msg = f"unknown setting {unknown}; expected one of {sorted(cls.model_fields)}"
                raise ValueError(msg)
        return cast("Any", values)


class Prune(Section):
    """Shortening of old tool results before any summary is paid for."""

    enabled: bool = Field(default=True, description="Shorten old tool results.")
    protect_tokens: int = Field(
        default=40_000, ge=0, description="The newest tool results, up to so many tokens, stay."
    )
    minimum_tokens: int = Field(
        default=20_000, ge=0, description="Only when at least so many tokens can be freed."
    )
    preview_chars: int = Field(
        default=2_000, ge=2, description="Longer texts become their first and last half of this."
    )


class TruncateArgs(Section):
    """Shortening of the arguments of old tool calls."""

    enabled: bool = Field(default=False, description="Shorten long arguments of old tool calls.")
    trigger_messages: int = Field(default=25, ge=1, description="From so many messages on.")
    trigger_tokens: int = Field(default=40_000, ge=1, description="Or from so many tokens on.")
    keep_messages: int = Field(default=20, ge=0, description="The newest so many stay whole.")
    over_chars: int = Field(default=2_000, ge=20, description="Strings longer than this.")


def _two_or_off(value: int) -> int:
    if value == 1 or value < 0:
        msg = f"expected 0 (off) or at least 2; got {value}"
        raise ValueError(msg)
    return value


def _tail_budget(value: int) -> int:
    if value < -1:
        msg = f"expected -1 (derived), 0 (count messages) or a number of tokens; got {value}"
        raise ValueError(msg)
    return value


def _holds_messages(value: str) -> str:
    if "{messages}" not in value:
        msg = "expected a prompt that contains `{messages}`, where the conversation goes"
        raise ValueError(msg)
    return value


class Compaction(Section):
    """When old messages become one summary, and what stays beside it."""

    enabled: bool = Field(
        default=True, description="Compact automatically. Overflow recovery has its own switch."
    )
    strategy: Literal["summary", "window"] = Field(
        default="summary", description="`window` drops old messages into the archive, unsummarised."
    )
    trigger_messages: Annotated[int, AfterValidator(_two_or_off)] = Field(
        default=50,
        description="Compact from so many non-system messages on; 0: off.",
        json_schema_extra={"minimum": 0},
    )
    trigger_tokens: int = Field(
        default=0, ge=0, description="Compact from so many tokens on; 0: window less reserve."
    )
    keep_messages: int = Field(
        default=20, ge=1, description="Messages that stay, where `keep_tokens` is 0."
    )
    keep_tokens: Annotated[int, AfterValidator(_tail_budget)] = Field(
        default=-1,
        description="Tokens that stay; 0: by messages; -1: derived from the window.",
        json_schema_extra={"minimum": -1},
    )
    window_tokens: int = Field(
        default=0, ge=0, description="The model's context window; 0: from the model's profile."
    )
    reserve_tokens: int = Field(
        default=20_000, ge=0, description="Part of the window that is held back for the answer."
    )
    summary_prompt: Annotated[str, AfterValidator(_holds_messages)] = Field(
        default=text_of("compact"),
        description="What the summariser is told; `{messages}` stands for the conversation.",
        json_schema_extra={"langgraph_nodes": ["compact"], "langgraph_type": "prompt"},
    )
    summary_seconds: float = Field(
        default=120.0, gt=0, description="Longest wait for a summary, in seconds."
    )
    flush_before: bool = Field(
        default=True, description="Flush facts to the ledger before messages are replaced."
    )
    overflow_retry: bool = Field(
        default=True, description="Compact and ask once more when the provider says: too long."
    )
    identifier_tokens: int = Field(
        default=1_500, ge=0, description="Room for the list of carried-over identifiers."
    )
    prune: Prune = Field(default_factory=Prune, description="Shortening of old tool results.")
    truncate_args: TruncateArgs = Field(
        default_factory=TruncateArgs, description="Shortening of old tool calls' arguments."
    )
    min_gain: float = Field(
        default=0.1, ge=0, le=1, description="A compaction that frees less than this has failed."
    )

    @model_validator(mode="before")
    @classmethod
    def _messages_alone(cls, values: Any) -> Any:
        """`keep_messages` given alone means: by messages."""
        if isinstance(values, dict) and "keep_messages" in values:
            return {"keep_tokens": 0} | cast("dict[str, Any]", values)
        return cast("Any", values)


class Eviction(Section):
    """When one tool result is too big for the history."""

    enabled: bool = Field(default=True, description="Move oversized tool results to the store.")
    over_chars: int = Field(
        default=80_000, ge=1_000, description="Texts longer than this, in characters."
    )
    preview_chars: int = Field(
        default=2_000, ge=100, description="Characters that stay: half from each end."
    )
    exempt_tools: tuple[str, ...] = Field(
        default=READ_BACK_TOOLS, description="Tools whose results are never moved."
    )


FLUSH_FORM = {
    "anyOf": [
        {"type": "string", "enum": ["always", "never"]},
        {"type": "number", "exclusiveMinimum": 0},
    ]
}


def _flush_rule(value: str | float) -> str | float:
    if isinstance(value, str) and value not in ("always", "never"):
        try:
            value = float(value)
        except ValueError:
            msg = f"expected 'always', 'never' or a number of minutes; got {value!r}"
            raise ValueError(msg) from None
    if not isinstance(value, str) and not value > 0:
        msg = f"expected 'always', 'never' or more than 0 minutes; got {value}"
        raise ValueError(msg)
    return value


class Memory(Section):
    """What moves across sessions, and when."""

    enabled: bool = Field(default=True, description="Long-term memory; off: none of it, anywhere.")
    tools: bool = Field(default=True, description="Offer the model its memory and archive tools.")
    flush: Annotated[str | float, AfterValidator(_flush_rule), WithJsonSchema(FLUSH_FORM)] = Field(
        default="always",
        description="Flush facts: `always` (each call), `never`, or at most every so many minutes.",
    )
    consolidate: Literal["auto", "on_request"] = Field(
        default="auto", description="Rewrite MEMORY.md by itself, or only when asked."
    )
    consolidate_every_minutes: float = Field(
        default=30.0, ge=0, description="Least time between two automatic consolidations."
    )
    document_tokens: int = Field(default=4_000, ge=100, description="Limit of MEMORY.md.")
    inject_tokens: int = Field(
        default=8_000, ge=100, description="Most of MEMORY.md that a request carries."
    )
    ledger_days: int = Field(
        default=90, ge=1, description="Consumed ledger entries older than this move to the archive."
    )


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
    server = runtime.server_info
    if server is not None and server.user is not None and server.user.is_authenticated:
        return server.user.identity
    user_id = context_of(runtime).user_id if settings().trust_context_user else None
    if user_id is None or not user_id.strip():
        msg = (
            f"`user_id`: expected who the conversation belongs to; got {user_id!r}. "
            "Pass `context=Context(user_id=...)`, or let the server authenticate the user."
        )
        raise MissingUserError(msg)
    return user_id
