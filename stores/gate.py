"""What every write of a user's records passes: nothing brings back what was forgotten (R49).

It is asked before the write, and again after it: whoever forgets leaves the tombstone first and
then erases, so one of the two sees the other, whatever comes between.
"""

import json
from collections.abc import Callable, Sequence
from typing import Any, cast

from langchain_core.messages import messages_from_dict
from langgraph.store.base import BaseStore, PutOp

from everlong.stores import tombstones
from everlong.stores.entries import without_facts
from everlong.stores.namespaces import ROOT, raw
from everlong.stores.spelling import says, spelled
from everlong.stores.tombstones import Tombstones, UserForgottenError

Value = dict[str, Any]
Kept = Value | None
"""What is left of a value; None: nothing."""
PLAIN = frozenset({"files", "file_parts", "retention", "flushes", tombstones.KIND})
"""Kinds that hold no words, or words that are struck where they are written."""


def owner_of(puts: Sequence[PutOp]) -> str | None:
    """Return whose records are written; None: nobody's, or nothing but removals."""
    for put in puts:
        if put.value is not None and put.namespace[0] == ROOT:
            return raw(put.namespace[1])
    return None


async def known(store: BaseStore, user_id: str) -> Tombstones:
    """Return what the user had forgotten.

    Raises:
        UserForgottenError: the user was forgotten altogether.
    """
    found = await tombstones.load(store, user_id)
    if found.user_forgotten:
        msg = (
            "expected a user whose records may be written; those of this id were erased and "
            "nothing is written again until `everlong forget-user ID --allow-again`"
        )
        raise UserForgottenError(msg)
    return found


def admitted(puts: Sequence[PutOp], stones: Tombstones) -> list[PutOp]:
    """Return the puts without what is forgotten; a value of which nothing is left is removed."""
    return [_admitted(put, stones) for put in puts] if stones else list(puts)


def without_forgotten(kind: str, value: Value, stones: Tombstones) -> Kept:
    """Return a value of this kind without what is forgotten; the same where nothing is."""
    if not stones or kind in PLAIN:
        return value
    return _BY_KIND.get(kind, _struck)(value, stones)


def _admitted(put: PutOp, stones: Tombstones) -> PutOp:
    if put.value is None or put.namespace[0] != ROOT:
        return put
    return put._replace(value=without_forgotten(put.namespace[2], dict(put.value), stones))


def _struck(value: Value, stones: Tombstones) -> Kept:
    return stones.struck(value)


def _entry(value: Value, stones: Tombstones) -> Kept:
    """Leave out the facts that are forgotten; the others keep their keys."""
    if "text" not in value:  # a mark
        return value
    return without_facts(value, lambda fact: stones.matches(fact.text))[0]


def _document(value: Value, stones: Tombstones) -> Kept:
    """Leave out the lines that are forgotten, with where they come from."""
    texts = str(value.get("text", "")).split("\n")
    known = cast("list[list[str]]", value.get("origins", []))
    origins = [known[at] if at < len(known) else list[str]() for at in range(len(texts))]
    kept = [at for at, text in enumerate(texts) if not stones.matches(text)]
    if len(kept) == len(texts):
        return value
    text = "\n".join(texts[at] for at in kept)
    return value | {"text": text, "origins": [origins[at] for at in kept]}


def _message(value: Value, stones: Tombstones) -> Kept:
    """Strike in a message that is stored as JSON; a long one lies in a file of its own."""
    if not value.get("stored"):
        text = stones.without(str(value.get("text", "")))
        return value | {"text": text} if value.get("text", "") != text else value
    (message,) = messages_from_dict([json.loads(value["stored"])])
    changed = stones.struck_message(message)
    if changed is message:
        return value
    told = {"text": says(changed)} if "text" in value else {}
    return value | {"stored": spelled(changed)} | told


def _work(value: Value, stones: Tombstones) -> Kept:
    """Strike in the messages that a record of work holds, and in why its last try failed."""
    held = [_message({"stored": one}, stones) or {} for one in value["messages"]]
    messages = [str(one["stored"]) for one in held]
    reason = stones.without(value["reason"])
    if reason == value["reason"] and messages == value["messages"]:
        return value
    return value | {"messages": messages, "reason": reason}


_BY_KIND: dict[str, Callable[[Value, Tombstones], Kept]] = {
    "ledger": _entry,
    "ledger_archive": _entry,
    "memory": _document,
    "transcripts": _message,
    "finished_calls": _message,
    "work": _work,
}
