"""The tool by which a user has something forgotten (R47, R49)."""

from collections.abc import Sequence
from typing import Annotated, Any

from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.tools import ToolException, tool
from langgraph.prebuilt import ToolRuntime
from langgraph.store.base import BaseStore
from pydantic import Field

from everlong.nodes.context import user_of
from everlong.nodes.internals import saver_in
from everlong.stores import forgetting, tombstones
from everlong.stores.amounts import amount
from everlong.stores.entries import Fact
from everlong.stores.forgetting import Forgotten
from everlong.stores.matters import Matter

Tool = ToolRuntime[Any, Any]
MOST_SHOWN = 10
NO_STORE = "There is no memory: this agent runs without a store."


@tool
async def memory_forget(
    query: Annotated[
        str, Field(description="What it is, in a few words, or the `Source:` of one line.")
    ],
    runtime: Tool,
) -> str:
    """Erase one thing for good, everywhere: only when the user asks to have it forgotten."""
    store = runtime.store
    if store is None:
        raise ToolException(NO_STORE)
    done = await forgetting.forget(
        store,
        user_of(runtime),
        query,
        at=runtime.state["call"]["instant"],
        said=runtime.state["messages"],
        saver=saver_in(runtime.config),
    )
    return told(done)


async def not_forgotten(
    store: BaseStore, user_id: str, facts: Sequence[Fact], messages: Sequence[BaseMessage]
) -> list[Fact]:
    """Return the facts that may be saved: none that the user had forgotten.

    Unless it is the user who says it again, in the newest message: that takes the forgetting back.
    """
    stones = await tombstones.load(store, user_id)
    again = [fact for fact in facts if stones.matches(fact.text)]
    asked = next((one for one in reversed(messages) if isinstance(one, HumanMessage)), None)
    if again and asked is not None and stones.matches(str(asked.text)):
        await tombstones.lift(store, user_id, [fact.text for fact in again])
        return list(facts)
    return [fact for fact in facts if fact not in again]


def told(done: Forgotten) -> str:
    """Say what came of it, without what was forgotten."""
    if not done.is_done and not done.matters:
        return "Nothing was forgotten: nothing that is remembered says so. Try other words."
    if not done.is_done:
        return (
            "Nothing was forgotten yet: it is not certain which of these is meant. Ask the user, "
            f"or call again with the source of one.\n\n{listed(done.matters)}"
        )
    text = f"Forgotten: {extent(done)}. Do not repeat what it was."
    if done.also:
        text += f"\n\nThis stays, and names a part of it:\n\n{listed(done.also)}"
    return text


def extent(done: Forgotten) -> str:
    """Say how much was erased."""
    swept = done.swept
    parts = [
        (swept.facts, "fact of the ledger", "facts of the ledger"),
        (swept.lines, "line of MEMORY.md and its versions", "lines of MEMORY.md and its versions"),
        (swept.records, "message or record", "messages and records"),
        (swept.files, "stored text", "stored texts"),
    ]
    said = [amount(count, one, many) for count, one, many in parts if count]
    return ", ".join(said) or "it was in no record"


def listed(matters: tuple[Matter, ...]) -> str:
    """List lines with their sources."""
    shown = [f"Source: {one.source}\n{one.text}" for one in matters[:MOST_SHOWN]]
    left = len(matters) - len(shown)
    return "\n\n".join([*shown, *([f"... and {left} more"] if left else [])])
