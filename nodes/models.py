"""Chat models by name, and what to say when one fails."""

import asyncio
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from langchain_core.exceptions import ModelConnectionError, ModelError, ModelTimeoutError
from langchain_core.language_models import BaseChatModel

from everlong.nodes.context import Context
from everlong.nodes.errors import EverlongError, ModelUnavailableError
from everlong.nodes.overflow import RATE, overflow_in, status_of, words_of
from everlong.nodes.windows import name_of, window_of

SHOWN_CHARS = 300


def chat_model(model: BaseChatModel | str) -> BaseChatModel:
    """Return the chat model of this name; a model object is returned as it is.

    `offline` needs no network. `openai:<name>` is any model that OPENAI_BASE_URL serves, with
    OPENAI_API_KEY; both are read anew each time (under 1 ms), and connections are kept per loop.

    Raises:
        ModelUnavailableError: the name is unknown, or a variable is missing.
    """
    if isinstance(model, BaseChatModel):
        return model
    provider, _, name = model.partition(":")
    if model == "offline":
        from everlong.nodes.offline import OfflineModel  # noqa: PLC0415 - only when it is used

        return OfflineModel()
    if provider == "openai" and name.strip():
        from everlong.nodes.openai_compatible import (  # noqa: PLC0415 - takes two seconds
            openai_compatible,
        )

        return openai_compatible(name.strip())
    msg = (
        f"model {model!r}: expected `offline`, `openai:<name>` such as `openai:gpt-4o` or "
        "`openai:deepseek-flash`, or a LangChain chat model"
    )
    raise ModelUnavailableError(msg)


_loaded: set[str] = set()


async def load(model: BaseChatModel | str) -> BaseChatModel:
    """Return `chat_model(model)`; a name's first use imports in a thread.

    That takes two seconds and reads files: in the loop it would hold up every other run, and a
    development server refuses it.
    """
    if isinstance(model, str) and model not in _loaded:
        await asyncio.to_thread(chat_model, model)
        _loaded.add(model)
    return chat_model(model)


async def load_all(context: Context) -> None:
    """Find out, before a run begins, whether each model that it names can be made.

    A model's first use by name imports in a thread, as `load` does.

    Raises:
        ModelUnavailableError: one cannot; the text begins with the setting's name.
    """
    checked = set[str]()
    for field in ("model", "summary_model", "memory_model"):
        value = getattr(context, field)
        if isinstance(value, str) and value not in checked:
            checked.add(value)
            try:
                await load(value)
            except ModelUnavailableError as error:
                msg = f"`{field}`: {error}"
                raise ModelUnavailableError(msg) from error


def window(model: BaseChatModel | str) -> int | None:
    """Return the context window in tokens of a model, or of a name, which is looked up once."""
    return _window_of_name(model) if isinstance(model, str) else window_of(model)


@cache
def _window_of_name(name: str) -> int | None:
    return window_of(chat_model(name))


def may_pass(error: BaseException) -> bool:
    """Tell a failure that waiting may mend from one that comes again with the same request."""
    if overflow_in(error) is not None or "insufficient_quota" in words_of(error):
        return False
    if isinstance(error, ModelError):
        return error.is_retryable
    status = status_of(error)
    if status is None:
        return isinstance(error, ConnectionError | TimeoutError) or bool(RATE.search(str(error)))
    return status in PASSING or status >= SERVER_FAULTS


def retries_itself(model: Any) -> bool:
    """Whether the model's client repeats such requests by itself, as those of providers do.

    `max_retries` is the name of that setting in every LangChain integration; None stands for the
    client's own default, which is not 0.
    """
    bare = getattr(model, "bound", model)
    return getattr(bare, "max_retries", 0) != 0


PASSING = frozenset({408, 409, 429})
"""HTTP statuses of a failure that may pass, besides those of a server's fault."""
SERVER_FAULTS = 500


def explain(error: BaseException, model: BaseChatModel | str) -> str:
    """Say in one line which model failed, where, why, and what to do. The key is never shown."""
    if isinstance(error, EverlongError):
        return _line(str(error))
    address = _address_of(error, model)
    where = f" at {address}" if address else ""
    return _line(f"{name_of(model)}{where}: {_why(error)}")


def _why(error: BaseException) -> str:
    overflow = overflow_in(error)
    if overflow is not None:
        limit = f" (its limit is {overflow.limit:,} tokens)" if overflow.limit else ""
        return f"the conversation is too long for the model{limit}. Compact it, or set the window."
    if isinstance(error, ModelTimeoutError | TimeoutError):
        return "no answer in time. Try again, or check that the server is well."
    if isinstance(error, ModelConnectionError):
        return (
            f"cannot be reached ({_root_of(error)}). Check that the server runs and that "
            "OPENAI_BASE_URL is its address."
        )
    status = status_of(error)
    advice = ADVICE.get(status or 0)
    if advice:
        return f"{advice} (HTTP {status})"
    said = str(getattr(error, "message", "") or error) or type(error).__name__
    return f"HTTP {status}: {said}" if status else f"{type(error).__name__}: {said}"


ADVICE = {
    401: "the key was refused. Check OPENAI_API_KEY.",
    402: "the account has no credit left. Top it up, or use another key.",
    403: "the key may not use this model. Use another model or another key.",
    404: "there is no such model or address. Check the model's name and OPENAI_BASE_URL.",
    429: "too many requests, or no credit left. Wait and try again, or check the account.",
}


def _root_of(error: BaseException) -> str:
    """Return the words of the innermost cause: `Connection error.` alone tells nothing."""
    words, one = "", error
    while one is not None:
        words, one = str(one) or words, one.__cause__ or one.__context__
    return words or type(error).__name__


def _address_of(error: BaseException, model: BaseChatModel | str) -> str:
    """Return where the request went, else where the model would send it; empty: unknown."""
    request: Any = getattr(error, "request", None)
    client: Any = getattr(model, "root_async_client", None)
    url = str(getattr(request, "url", "") or getattr(client, "base_url", "") or "")
    parts = urlsplit(url)
    place = parts.netloc.rpartition("@")[2]
    path = parts.path.removesuffix("/chat/completions").removesuffix("/responses").rstrip("/")
    return f"{parts.scheme}://{place}{path}" if place else ""


def _line(text: str) -> str:
    one = " ".join(text.split())
    return one if len(one) <= SHOWN_CHARS else f"{one[: SHOWN_CHARS - 1]}…"
