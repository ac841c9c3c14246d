"""A compacted history beside the whole one, until a run of langchain's agent has ended.

What a model call changes in the history could be written with its answer, but only as a second
update of one step, which nobody who follows an agent expects. So the agent's messages stay as they
are while it runs, and `everlong` says how the history is seen; after the run it takes their place.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import BaseMessage, messages_from_dict, messages_to_dict

from everlong.graph.foreign import KEPT
from everlong.nodes.rewriting import unstreamed, whole_history
from everlong.nodes.transcript import is_summary

VIEW = "view"
"""In `everlong`: `ids` in order, `made`: the messages that the agent's history has not so, and
`through`: the newest of its messages that it stands for."""


def has_view(values: Mapping[str, Any]) -> bool:
    """Tell whether the history is seen otherwise than it is kept."""
    return VIEW in (values.get(KEPT) or {})


def seen(values: Mapping[str, Any]) -> list[BaseMessage]:
    """Return the history as our nodes and the model see it."""
    messages: list[BaseMessage] = list(values["messages"])
    if not has_view(values):
        return messages
    view: Mapping[str, Any] = values[KEPT][VIEW]
    known = {one.id: one for one in messages}
    known |= {one.id: one for one in messages_from_dict(view["made"])}
    ids: Sequence[str] = view["ids"]
    ends = {view["through"]} if view["through"] in known else set(ids)
    last = max((i for i, one in enumerate(messages) if one.id in ends), default=-1)
    return [*(known[one] for one in ids if one in known), *messages[last + 1 :]]


def view_of(messages: Sequence[BaseMessage], history: Sequence[BaseMessage]) -> dict[str, Any]:
    """Return what is kept so that `messages` are seen as `history`."""
    own = {one.id: one for one in messages}
    made = [one for one in history if own.get(one.id) is not one]
    view = {
        "ids": [str(one.id) for one in history],
        "made": messages_to_dict(made),
        "through": str(messages[-1].id) if messages else "",
    }
    return {VIEW: view}


def written_out(history: Sequence[BaseMessage]) -> list[BaseMessage | dict[str, Any]]:
    """Return the update that puts the history as it is seen in the place of the agent's."""
    return whole_history([unstreamed(one) if is_summary(one) else one for one in history])
