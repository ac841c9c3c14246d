"""Whether an error says that the context is too long, and which limit it names. Pure.

langchain-openai 1.7 recognises almost no overflow with openai 3 (it looks for the code in the
text, which no longer holds it), and most providers answer a plain 400 in words of their own.
A wrong no shows the user a raw 400; a wrong yes compacts on a rate limit. So the words below are
those that providers send, and rate limits, output limits and refusals are told apart first.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from langchain_core.exceptions import ContextOverflowError

READ_CHARS = 4_000
"""So much of an error is read: some providers repeat the request, and its words are not theirs."""

LEAST_LIMIT = 256
"""A smaller number is no context window (an index, a status, a count of messages)."""


STATUSES = range(100, 600)


@dataclass(frozen=True)
class Overflow:
    """A request that did not fit, in tokens as the provider counts them."""

    limit: int | None
    """The most that fits; None where the provider does not say."""
    requested: int | None
    """What was asked for, with the room for the answer where the provider counts it in."""


def overflow_in(error: BaseException) -> Overflow | None:
    """Return the overflow that the error, its causes or its group report; None: it is no overflow.

    Of several reports the first that names a limit counts.
    """
    found = [overflow for one in _chain(error) if (overflow := _read(one)) is not None]
    return next((overflow for overflow in found if overflow.limit), found[0] if found else None)


def status_of(error: BaseException) -> int | None:
    """Return the HTTP status that an error of any client carries; None: it carries none."""
    response: Any = getattr(error, "response", None)
    if isinstance(response, Mapping):  # botocore's
        metadata: Any = cast("Mapping[str, Any]", response).get("ResponseMetadata") or {}
        candidates: list[Any] = [metadata.get("HTTPStatusCode")]
    else:
        candidates = [getattr(error, name, None) for name in ("status_code", "status", "code")]
        candidates.append(getattr(response, "status_code", None))
    return next((int(c) for c in candidates if isinstance(c, int) and c in STATUSES), None)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield the error, the members of its group, its cause and its context; each once."""
    waiting, seen = [error], set[int]()
    while waiting:
        one = waiting.pop(0)
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        if isinstance(one, BaseExceptionGroup):
            waiting.extend(cast("BaseExceptionGroup[BaseException]", one).exceptions)
        context = None if one.__suppress_context__ else one.__context__
        waiting.extend(e for e in (one.__cause__, context) if e is not None)


CODES = re.compile(
    r"context_length_exceeded|context_window_exceeded|exceed_context_size_error"
    r"|max_prompt_tokens_exceeded|tokens_limit_reached|ContextWindowExceeded|prompt_too_long"
)
"""Error codes and types: OpenAI and its kin, llama.cpp, GitHub (two), LiteLLM."""

INVALID, TOO_LARGE, TOO_MANY = (400, 422), 413, 429

NEVER = frozenset({401, 402, 403, 404, 408})
"""Statuses that are about something else, whatever the text says."""

RATE = re.compile(
    r"rate.?limit|quota|throttl|\bTP[MD]\b|\bper (?:min|minute|hour|day|month)\b"
    r"|please wait|try again (?:in|later)|too many requests",
    re.IGNORECASE,
)
"""Limits over time: they pass by waiting, except where one request is over the whole of them."""

TOKENS_OVER_TIME = re.compile(r"tokens? per|\bTP[MD]\b.*?limit", re.IGNORECASE | re.DOTALL)

OUTPUT_ROOM = re.compile(r"max_\w*tokens\W+is too large: *(\d[\d,]{0,12})", re.IGNORECASE)
"""vLLM: the room for the answer does not fit beside the prompt."""

SPACE = r"context[ _](?:length|window|size|limit)"

SAID = (
    r"maximum (?:context|prompt|input|model|sequence) length",  # OpenAI, DeepSeek, vLLM, xAI
    # OpenAI's responses, llama.cpp, Ollama, LM Studio; the other way round: MiniMax
    rf"(?:exceed\w*|(?:long|larg|great)er than|over)\b.{{0,60}}?\b{SPACE}",
    rf"\b{SPACE}\b.{{0,20}}?\b(?:exceed|overflow|too (?:long|small))",
    r"context (?:overflow|the overflows|length of only)",  # LM Studio
    # Anthropic, Bedrock, Moonshot, Fireworks
    r"\b(?:(?:prompt|input)(?: tokens?)?(?: length)?|inputs|conversation)(?: is| are)? too long",
    r"reduce the length of the (?:messages|prompt|input|conversation)",  # OpenAI, Groq
    r"input tokens exceed",  # Azure, Bedrock
    r"number of (?:input )?tokens.{0,60}?\b(?:exceeds|cannot exceed|only supports)",  # watsonx
    # Gemini, GitHub Copilot
    r"\b(?:input|prompt) token count\b.{0,60}?\b(?:exceeds|only supports)",
    r"input length [\d,]+ exceeds",  # Volcengine
    r"length of prompt_tokens.{0,20}?must be less than",  # SiliconFlow
    r"request body too large for .{0,60}?model",  # GitHub Models
    r"request exceeds the maximum size",  # Anthropic
    r"range of input length should be",  # DashScope
    r"exceed\w* (?:the )?(?:model'?s? )?(?:max\w* )?(?:token limit|message tokens)",  # Moonshot
    r"tokens in the prompt cannot exceed",  # Cohere
    r"[`']?inputs[`']?(?: tokens \+ [`']?max_new_tokens[`']?)? must (?:be|have)",  # TGI
    r"too large for model with [\d,]+ maximum",  # Mistral
    r"prompt length.{0,30}?should not exceed",  # TensorRT-LLM
    r"prompt exceeds max length|prompt *超长",  # Zhipu
    r"(?:输入|提示词|上下文|消息).{0,12}?(?:过长|超长|超限|超出|超过)|超[过出].{0,12}?上下文",
)
WORDINGS = re.compile("|".join(SAID), re.IGNORECASE | re.DOTALL)

NUMBER = r"(\d[\d,_]{0,12}(?:\.\d{1,3})?[ ]?[km]?)\b"

LIMITS = tuple(
    re.compile(pattern.replace("<n>", NUMBER), re.IGNORECASE | re.DOTALL)
    for pattern in (
        r"n_ctx['\"]: *<n>",
        r"maximum \w+ length(?: of| is| \w+ is|:)? *(?:only )?\(?<n>",
        r"\d \+ \d[\d,]{0,12} > <n>",
        r"tokens > <n> maximum",
        r"model with <n> maximum",
        SPACE + r"(?: of| is|:)? *(?:only )?\(?<n>",
        r"maximum number of (?:input )?tokens(?: allowed)? *\(?<n>",
        r"only supports up to <n>",
        r"maximum input length of <n>",
        r"range of input length should be \[\d+, *<n>",
        r"max_(?:seq_len|num_tokens) *\(?<n>",
        r"limit(?:ed)?(?: of| is|:| to)? *<n>",
        r"cannot exceed (?:the total tokens limit )?<n>",
        r"(?:less than|<=|max size:|exceeds the maximum length) *<n>",
    )
)

REQUESTED = tuple(
    re.compile(pattern.replace("<n>", NUMBER), re.IGNORECASE | re.DOTALL)
    for pattern in (
        r"n_prompt_tokens['\"]: *<n>",
        r"resulted in <n>",
        r"requested:? *(?:about |a total of )?<n>",
        r"too long: *<n>",
        r"(?:request|prompt|input) (?:contains|has|\() *<n>",
        r"token count (?:of |is |\()?<n>",
        r"number of input tokens <n>",
        r"prompt_tokens *\(<n>",
        r"(?:given:|received|current length is|you passed|input length|prompt \(length) *<n>",
    )
)

SUM = re.compile(r"(\d[\d,]{0,12}) \+ (\d[\d,]{0,12}) > \d")
"""Anthropic: prompt and room for the answer, against the window."""


def _read(error: BaseException) -> Overflow | None:
    """Return what one error says of an overflow."""
    text, status = words_of(error), status_of(error)
    overflow = Overflow(_number(LIMITS, text, least=LEAST_LIMIT), _requested(text))
    if isinstance(error, ContextOverflowError) or CODES.search(text) or status == TOO_LARGE:
        return overflow
    if status in NEVER:
        return None
    if status == TOO_MANY or (status not in INVALID and RATE.search(text)):
        return overflow if _never_fits(text, overflow) else None
    if not WORDINGS.search(text):
        return None
    room = OUTPUT_ROOM.search(text)
    if room and overflow.limit and _value(room[1]) >= overflow.limit:
        return None
    return overflow


def _never_fits(text: str, overflow: Overflow) -> bool:
    """Say whether one request is over a limit of tokens over time: waiting never helps."""
    if not TOKENS_OVER_TIME.search(text) or not overflow.limit or not overflow.requested:
        return False
    return overflow.requested >= overflow.limit


def words_of(error: BaseException) -> str:
    """Return all that the error says: its class, its text, its code and its body."""
    attributes: Any = (getattr(error, name, None) for name in ("code", "body"))
    words = [type(error).__name__, str(error), *(str(one) for one in attributes if one)]
    return "\n".join(word[:READ_CHARS] for word in words)


def _requested(text: str) -> int | None:
    parts = SUM.search(text)
    if parts:
        return _value(parts[1]) + _value(parts[2])
    return _number(REQUESTED, text)


def _number(patterns: tuple[re.Pattern[str], ...], text: str, *, least: int = 1) -> int | None:
    """Return the first plausible number that a pattern finds, in the patterns' order."""
    for pattern in patterns:
        for match in pattern.finditer(text):
            value = _value(match[1])
            if value >= least:
                return value
    return None


def _value(number: str) -> int:
    """Return the number of `128,000`, `1_048_576`, `128k` or `1.05 M`."""
    plain = number.lower().replace(",", "").replace("_", "").strip()
    factor = {"k": 1_000, "m": 1_000_000}.get(plain[-1], 1)
    return round(float(plain.rstrip("km ")) * factor)
