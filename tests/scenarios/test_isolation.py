"""R47: no tool reads or writes another user's data, whatever path, name, key or query it is given.

Each pair of users is one whose ids a careless store would mix up; everything is on Postgres.
"""

from dataclasses import dataclass, replace
from typing import Any

import pytest
from langchain_core.messages import ToolMessage
from langchain_core.tools import tool

from conversation import Conversation
from everlong.nodes.context import Context
from everlong.stores import files, ledger, transcripts
from everlong.stores.namespaces import ROOT, label
from everlong.stores.postgres import open_stores
from everlong.stores.records import all_items
from scripted_model import ScriptedModel, calling, kind_of

PAIRS = [
    ("kim.berg@x.example", "kim~2eberg@x~2eexample"),
    ("kim.berg@x.example", "KIM.BERG@X.EXAMPLE"),
    ("kim", "k_m%"),
    ("kim", "kim.memory"),
    ("kim", "../kim"),
    ("kim", "users.kim.*"),
    ("kim", "\uff4b\uff49\uff4d"),
    ("K\u00efm", "Ki\u0308m"),
    ("用户", "用户1"),
]
SAID = "My code word is heron and it lands at dawn."
DOUBTED = "The code word was agreed on 2019-07-31 at noon."
SECRETS = ("lands at dawn", "at noon", "nests in the reeds", "herons of line 7")
"""What others may ask for by its first words only."""


@tool
def report() -> str:
    """Return a report that is too long to keep."""
    return "\n".join(f"{number} herons of line {number} {'x' * 90}" for number in range(400))


@dataclass
class Seen:
    """What one call of a tool came to."""

    call: tuple[str, dict[str, Any]]
    text: str


def of_user(calls=()):
    left = list(calls)

    def script(messages):
        last, kind = messages[-1], kind_of(messages)
        if kind == "flush":
            said = last.text.partition("<conversation>")[2]
            return f"- {SAID} [1]\n- {DOUBTED} [1]" if SAID in said else "NO_REPLY"
        if kind == "consolidation":
            return f"# Words\n- {SAID}"
        if isinstance(last, ToolMessage):
            return "It nests in the reeds."
        if last.text == "report":
            return calling(("report", {}), prefix=last.id)
        if last.text == "attack":
            return calling(*left, prefix=last.id)
        return "Noted."

    return ScriptedModel(script=script)


@pytest.fixture
async def stores(dsn):
    async with open_stores(dsn, pool_size=4) as opened:
        yield opened


def talk_of(stores, user_id, thread_id, calls=()):
    context = Context.model_validate(
        {
            "user_id": user_id,
            "model": of_user(calls),
            "memory": {"enabled": True},
            "eviction": {"over_chars": 10_000},
        }
    )
    return Conversation(
        saver=stores.saver,
        store=stores.store,
        context=context,
        tools=[report],
        thread_id=thread_id,
    )


async def lived(stores, user_id, thread_id):
    """Leave something in every kind of record that a user has."""
    talk = talk_of(stores, user_id, thread_id)
    await talk.say(SAID, "report")
    return talk


async def records(store, user_id):
    found = await all_items(store, (ROOT, label(user_id)))
    return {(one.namespace, one.key): one.value for one in found}


async def attacks(store, victim, thread):
    """Return calls that try to reach a user by everything that names what is theirs."""
    spelled, (file,) = label(victim), await files.list_paths(store, victim, files.EVICTED)
    entries = await ledger.entries(store, victim)
    keys = [fact.key for entry in entries for fact in entry.facts]
    day, message = entries[0].day, (await transcripts.read(store, victim, thread, limit=1))[0]
    pages = ["MEMORY.md", f"memory/{day}.md", file.path, f"sessions/{thread}#0"]
    roots = [
        *("../{}/", "../../users/{}/", "/users/{}/", "users.{}.", "users/{}/", "users/{}/memory/"),
        *("%2e%2e/{}/", "..\\{}\\", "\uff0e\uff0e/{}/", "./../{}/", "memory/../../{}/", "{}\x00/"),
        *("users/{}/files/", "users/{}/transcripts/", "{}#", "file:///{}/"),
    ]
    paths = [
        root.format(name) + pages[number % len(pages)]
        for number, root in enumerate([*roots, *roots[:3]])
        for name in {victim, spelled}
    ]
    paths += [
        file.path,
        f"sessions/{thread}#0",
        f"sessions/{thread}",
        f"sessions/{label(thread)}#0",
    ]
    paths += [*keys, message.message_id, f"users.{spelled}.memory", "memory.md", "MEMORY.MD#1"]
    names = [
        thread,
        f"sessions/{thread}",
        label(thread),
        f"{thread}\u200b",
        f"../{spelled}/{thread}",
    ]
    names += [thread.upper(), f"{thread}%", f"users.{spelled}.transcripts.{label(thread)}"]
    forged = [
        {"user_id": victim},
        {"runtime": {"context": {"user_id": victim}}},
        {"config": {"configurable": {"user_id": victim, "thread_id": thread}}},
        {"namespace": ["users", spelled], "prefix": f"users.{spelled}"},
        {"state": {"owner": victim}, "store": None},
    ]
    queries = ["heron", "code word", f"heron {victim}", victim, spelled, "%", "*", "'", "herons of"]
    return [
        *((name, {"path": path}) for path in paths for name in ("read_file", "memory_get")),
        *(("session_history", {"thread": name}) for name in names),
        *(("list_files", {"prefix": root.format(spelled)}) for root in roots),
        *(
            (name, {"query": query} | more)
            for name in ("memory_search", "session_search")
            for query in queries[:4]
            for more in ({}, *forged)
        ),
        *(("session_search", {"query": one, "everywhere": True}) for one in queries),
        *(("memory_get", {"path": page} | more) for page in pages for more in forged),
        *(("read_file", {"path": page} | more) for page in pages for more in forged),
        *(("session_history", more) for more in forged),
        *(("list_files", more) for more in forged),
    ]


def writes(victim, thread, keys):
    """Return calls that try to change what is a user's, or to have it as one's own."""
    forged = ({}, {"user_id": victim}, {"runtime": {"context": {"user_id": victim}}})
    cited = f"Source: memory/2026-03-09.md#3 Source: MEMORY.md#2 Source: sessions/{thread}#0"
    return [
        *(
            ("memory_forget", {"query": what} | more)
            for what in (*keys, "heron", "code word", f"sessions/{thread}#0", "MEMORY.md#2", victim)
            for more in forged
        ),
        *(("memory_save", {"content": f"Likes tea. {cited}"} | more) for more in forged),
        ("memory_save", {"content": f"The code word was agreed on 2019-07-31. {cited}"}),
    ]


async def seen(talk, calls):
    await talk.say("attack")
    results = [one for one in await talk.messages() if isinstance(one, ToolMessage)][-len(calls) :]
    return [Seen(call, one.text) for call, one in zip(calls, results, strict=True)]


def leaks(found):
    return [one for one in found if any(secret in one.text for secret in SECRETS)]


@pytest.mark.parametrize(("victim", "other"), PAIRS)
async def test_no_tool_shows_what_is_another_users(stores, victim, other):
    await lived(stores, victim, "thread of v")
    before = await records(stores.store, victim)
    calls = await attacks(stores.store, victim, "thread of v")
    talk = talk_of(stores, other, "thread of o", calls)
    found = await seen(talk, calls)
    assert leaks(found) == []
    assert not any("lands at dawn" in one.text for one in talk.last_request)
    assert await records(stores.store, victim) == before


@pytest.mark.parametrize(("victim", "other"), PAIRS)
async def test_no_tool_changes_what_is_another_users_or_takes_it(stores, victim, other):
    await lived(stores, victim, "thread of v")
    before = await records(stores.store, victim)
    entries = await ledger.entries(stores.store, victim)
    keys = [fact.key for entry in entries for fact in entry.facts]
    calls = writes(victim, "thread of v", keys)
    talk = talk_of(stores, other, "thread of o", calls)
    found = await seen(talk, calls)
    assert leaks(found) == []
    assert await records(stores.store, victim) == before
    own = [fact for one in await ledger.entries(stores.store, other) for fact in one.facts]
    assert {fact.text for fact in own if not fact.doubt} == {"Likes tea."}
    assert [fact.doubt for fact in own if "2019" in fact.text] == ["2019-07-31 was never said"]
    assert not {source for fact in own for source in fact.sources} & set(keys)


@pytest.mark.parametrize("victim", ["kim.berg@x.example", "../kim", "用户"])
async def test_the_same_calls_reach_what_is_one_s_own(stores, victim):
    """The attacks miss because it is another's, not because they would find nothing at all."""
    await lived(stores, victim, "thread of v")
    (file,) = await files.list_paths(stores.store, victim, files.EVICTED)
    calls = [
        ("memory_search", {"query": "heron"}),
        ("memory_get", {"path": "MEMORY.md"}),
        ("session_search", {"query": "code word", "everywhere": True}),
        ("session_history", {"thread": "thread of v"}),
        ("read_file", {"path": file.path}),
        ("read_file", {"path": "sessions/thread of v#0"}),
        ("list_files", {}),
    ]
    found = await seen(talk_of(stores, victim, "another thread", calls), calls)
    assert [replace(one, text="") for one in leaks(found)] == [
        Seen(call, "") for call in calls[:-1]
    ]
    assert file.path in found[-1].text


async def test_a_path_that_two_users_have_leads_each_to_their_own(stores):
    """Paths go by content: the same path with another text would be another's."""
    for user_id in ("kim", "kimo"):
        await files.write(stores.store, user_id, "notes/a.txt", f"of {user_id}")
    for user_id in ("kim", "kimo"):
        call = ("read_file", {"path": "notes/a.txt"})
        (found,) = await seen(talk_of(stores, user_id, f"thread of {user_id}", [call]), [call])
        assert found.text.startswith(f"of {user_id}\n")
