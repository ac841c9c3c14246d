"""The index by meaning of everlong's own store, as LangGraph configures one: `embed` and `dims`."""

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_core.embeddings import Embeddings
from langgraph.store.base import ensure_embeddings

from everlong.stores.settings import settings

if TYPE_CHECKING:
    from langgraph.store.postgres.base import PostgresIndexConfig

FIELDS = ["text"]
"""What a record is embedded by; each says whether it is."""


def configured() -> "PostgresIndexConfig | None":
    """Return the index that the process's settings ask for; None where they ask for none.

    Raises:
        ValueError: the embedder is named without its dimensions, or cannot be had.
    """
    chosen = settings()
    if not chosen.embed:
        return None
    if not chosen.embed_dims:
        msg = (
            f"expected `EVERLONG_EMBED_DIMS`, how many numbers {chosen.embed!r} makes of a text, "
            "such as 1536; got none"
        )
        raise ValueError(msg)
    return index_of(chosen.embed, chosen.embed_dims)


def index_of(embed: str | Embeddings, dims: int) -> "PostgresIndexConfig":
    """Return the configuration of an index by this embedder, or the one of this name.

    Raises:
        ValueError: there is none of the name.
    """
    return {
        "embed": _named(embed) if isinstance(embed, str) else embed,
        "dims": dims,
        "fields": FIELDS,
    }


def _named(name: str) -> Embeddings:
    """Return `openai:<model>`, `package.module:name`, `./file.py:name`, or what LangChain knows."""
    place, _, attribute = name.rpartition(":")
    if place == "openai":
        from langchain_openai import OpenAIEmbeddings  # noqa: PLC0415 - an extra

        return OpenAIEmbeddings(model=attribute, check_embedding_ctx_length=False)
    if not (place.endswith(".py") or "." in place):
        return ensure_embeddings(name)
    try:
        found: Any = getattr(_module(place), attribute)
    except (ImportError, OSError, AttributeError) as error:
        msg = f"expected an embedder such as './file.py:name'; got {name!r}: {error}"
        raise ValueError(msg) from error
    return ensure_embeddings(found)


def _module(place: str) -> Any:
    if not place.endswith(".py"):
        return importlib.import_module(place)
    spec = importlib.util.spec_from_file_location(Path(place).stem, place)
    if spec is None or spec.loader is None:
        msg = f"{place!r} is no Python file"
        raise ImportError(msg)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
