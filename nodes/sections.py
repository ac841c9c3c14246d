"""The sections of a run's configuration: compaction, eviction, memory."""

from typing import Annotated, Any, Literal, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    WithJsonSchema,
    model_validator,
)

from everlong.nodes.prompts import text_of
from everlong.stores.spelled_settings import names_in, object_in, zero_or_at_least

LEAST_CHARS = 1_000
_zero_or_enough = zero_or_at_least(LEAST_CHARS)
Names = Annotated[tuple[str, ...], BeforeValidator(names_in)]

READ_BACK_TOOLS = (
    "read_file",
    "read_stored",
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


def given_in(section: Section) -> dict[str, Any]:
    """Return what was given of settings, section by section, without what was left to defaults."""
    found = {name: getattr(section, name) for name in section.model_fields_set}
    return {k: given_in(v) if isinstance(v, Section) else v for k, v in found.items()}


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
        json_schema_extra={
            "langgraph_nodes": ["compact"],
            "langgraph_type": "prompt",
            "pattern": r"\{messages\}",
        },
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
        default=80_000, ge=LEAST_CHARS, description="Texts longer than this, in characters."
    )
    preview_chars: int = Field(
        default=2_000, ge=100, description="Characters that stay: half from each end."
    )
    exempt_tools: Names = Field(
        default=READ_BACK_TOOLS, description="Tools whose results are never moved."
    )
    tool_chars: Annotated[
        dict[str, int], BeforeValidator(object_in()), AfterValidator(_zero_or_enough)
    ] = Field(
        default_factory=dict,
        description="Limits of single tools in the place of `over_chars`, by name or pattern "
        "such as crm_*; 0: never moved.",
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
    flush_mode: Literal["inline", "background"] = Field(
        default="inline",
        description="`background`: the answer returns first; a worker flushes and consolidates.",
    )
    consolidate: Literal["auto", "on_request"] = Field(
        default="auto", description="Rewrite MEMORY.md by itself, or only when asked."
    )
    consolidate_every_minutes: float = Field(
        default=30.0, ge=0, description="Least time between two automatic consolidations."
    )
    document_tokens: int = Field(default=4_000, ge=100, description="Limit of MEMORY.md.")
    ledger_days: int = Field(
        default=90,
        ge=0,
        description="Entries that MEMORY.md has taken up move to the archive after so many days; "
        "0: never.",
    )
    archive_days: int = Field(
        default=0, ge=0, description="Archived entries go for good after so many days; 0: never."
    )
    archive_entries: int = Field(
        default=0, ge=0, description="Newest archived entries of a user that stay; 0: all."
    )
    inject_tokens: int = Field(
        default=8_000, ge=100, description="Most of MEMORY.md that a request carries."
    )
