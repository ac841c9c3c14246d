"""What kim has remembered, to be forgotten."""

from everlong.stores import forgetting, ledger, memory
from everlong.stores.entries import Fact

AT = "2026-03-09T12:00:00Z"


async def remembered(store, *facts, user_id="kim", kind="flush", day="2026-03-01", doubt=""):
    """Put facts in the ledger, an entry each: a text, or a text and ids of messages."""
    for number, given in enumerate(facts):
        text, sources = (given, ("m",)) if isinstance(given, str) else given
        await ledger.append(
            store,
            user_id,
            kind,
            [Fact(text, sources, doubt)],
            instant=f"{day}T10:00:{number:02d}Z",
            zone="UTC",
            thread_id="t",
            sources=[f"{day}-{number}-{user_id}-{kind}"],
        )


async def written(store, text, *, origins=None, user_id="kim"):
    return await memory.write(
        store,
        user_id,
        text=text,
        base=await memory.read(store, user_id),
        consumed=await memory.fresh_entries(store, user_id),
        instant=AT,
        by="test",
        origins=origins,
    )


async def facts_of(store, user_id="kim"):
    return [fact.text for one in await ledger.entries(store, user_id) for fact in one.facts]


async def forget(store, what, **more):
    return await forgetting.forget(store, "kim", what, at=AT, **more)
