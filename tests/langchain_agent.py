"""An agent of langchain's with our middleware, on a backend's stores."""

from collections.abc import Callable, Sequence
from typing import Any

from langchain.agents import create_agent

from everlong.graph.middleware import EverlongMiddleware
from foreign_graph import COMPACTING
from invariants import check_nothing_empty, check_pairs
from scripted_model import ScriptedModel

QUIET = {"memory": {"enabled": False}}
LARGE = {"compaction": {"window_tokens": 100_000}}
Make = Callable[..., Any]


def maker(backend: Any) -> Make:
    """Return what makes agents."""

    def make(
        model: ScriptedModel,
        tools: Sequence[Any] = (),
        *,
        settings: dict[str, Any] | None = None,
        **options: Any,
    ) -> Any:
        given = {"compaction": COMPACTING} | QUIET | (settings or {})
        return create_agent(
            model,
            list(tools),
            middleware=[EverlongMiddleware(given)],
            checkpointer=backend.saver,
            store=backend.store,
            **{"system_prompt": "You are theirs."} | options,
        )

    return make


def check_sent(model: ScriptedModel) -> None:
    """Hold every request of the user's model against what a provider takes."""
    for request in model.requests:
        check_pairs(request)
        check_nothing_empty(request)
        assert [m.type for m in request].count("system") <= 1
