"""A conversation about orders, long enough to be compacted."""

from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from everlong.nodes.transcript import is_summary
from everlong.stores import compactions
from scripted_model import ScriptedModel, asks_for_summary

SMALL: dict[str, Any] = {"trigger_messages": 6, "keep_messages": 2, "flush_before": False}
ROUNDS: list[BaseMessage] = [
    message
    for number in range(5)
    for message in (
        HumanMessage(f"Question {number}: what of order PX-{4470 + number}?", id=f"h{number}"),
        AIMessage(
            f"Order PX-{4470 + number} is on its way, " + "as planned " * 20, id=f"a{number}"
        ),
    )
]
IDS = [str(message.id) for message in ROUNDS]


def answering(summary: Any = "They spoke of orders PX-4470 to PX-4474.") -> ScriptedModel:
    """Return a model that answers `ok`, and a request for a summary with this."""
    return ScriptedModel(script=lambda messages: summary if asks_for_summary(messages) else "ok")


async def records(talk: Any, **options: Any) -> list[dict[str, Any]]:
    """Return the records of the conversation's attempts to compact."""
    return await compactions.read(talk.store, "kim", talk.thread_id, **options)


async def only_record(talk: Any) -> dict[str, Any]:
    """Return the one record that there is."""
    (record,) = await records(talk)
    return record


async def compacted(talk: Any) -> list[BaseMessage]:
    """Return the summaries in the conversation's history: one at most."""
    return [message for message in await talk.messages() if is_summary(message)]
