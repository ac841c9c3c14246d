"""A24: user ids as namespaces; nobody reads or writes another user's data, whatever a model asks.

`42` as a number is refused, `'42'` is a user; the two spellings of `Kïm` are two users
(`stores/namespaces.py`). What a server's store API may reach is a matter of its authentication.
"""

from typing import Any

import pytest
from langchain_core.messages import ToolMessage
from langchain_core.tools import tool

from everlong.nodes.context import Context
from everlong.nodes.errors import InvalidInputError
from everlong.stores import erasure, files, ledger, memory, transcripts
from everlong.stores.namespaces import ROOT, label
from given import case
from scripted_model import ScriptedModel, calling

IDS = case("A24")["user_ids"]
REFUSED = [one for one in IDS if not isinstance(one, str) or not one.strip() or "\x00" in one]
VALID = [*(one for one in IDS if one not in REFUSED), "42"]
SECRET = "heron-{}"  # noqa: S105 - looked for in what others see


@tool
def report() -> str:
    """Return a report that is too long to keep."""
    return "\n".join(f"{number} {'x' * 90}" for number in range(1_000))


class OfUser(ScriptedModel):
    """Remembers the user's own code word, and tries what it is told to."""

    secret: str = ""
    attacks: tuple[Any, ...] = ()

    def __init__(self, secret, **more):
        super().__init__(secret=secret, **more)
        self.script = self.answer

    def answer(self, messages):
        last = messages[-1]
        if "NO_REPLY" in last.text:
            return (
                f"- the code word is {self.secret} [1]" if self.secret in last.text else "NO_REPLY"
            )
        if "<ledger>" in last.text:
            return f"# Words\n- the code word is {self.secret}"
        if last.type == "tool":
            return "Done."
        if last.text == "report":
            return calling(("report", {}), prefix=last.id)
        if last.text == "attack":
            return calling(*self.attacks, prefix=last.id)
        return "Noted."


def thread_of(number):
    return f"thread of {number}"


async def talk_of(converse, number, user_id):
    """Begin a thread, and tell a code word and a report in it."""
    talk = converse(
        model=OfUser(SECRET.format(number)),
        user_id=user_id,
        memory={"enabled": True},
        eviction={"over_chars": 10_000},
        tools=[report],
        thread_id=thread_of(number),
    )
    await talk.say(f"My code word is {SECRET.format(number)}.", "report")
    return talk


def attacks_on(victim, number, path):
    """Return calls that try to reach another user by every path, name and query."""
    spelled = label(victim)
    secret, thread = SECRET.format(number), thread_of(number)
    paths = [
        path,
        f"../{spelled}/{path}",
        f"users/{spelled}/files/{path}",
        f"users.{spelled}.files.{path}",
        f"sessions/{thread}",
        f"sessions/{thread}#0",
        f"sessions/../{spelled}/transcripts/{label(thread)}#0",
        f"../{victim}/MEMORY.md",
        f"../{spelled}/MEMORY.md#1-9",
        f"memory/../../{spelled}/memory/2026-03-09.md",
    ]
    reading = [(name, {"path": one}) for one in paths for name in ("read_file", "memory_get")]
    threads = [thread, f"sessions/{thread}", f"../{spelled}/{thread}", label(thread)]
    return (
        *reading,
        *(("session_history", {"thread": one}) for one in threads),
        ("session_search", {"query": secret, "everywhere": True}),
        ("session_search", {"query": f'"{secret}"', "everywhere": True, "user_id": victim}),
        ("memory_search", {"query": secret}),
        ("memory_search", {"query": f"{secret} {victim}", "user_id": victim}),
        ("memory_forget", {"query": secret, "user_id": victim}),
        ("memory_forget", {"query": f"sessions/{thread}#0"}),
        ("list_files", {"prefix": ""}),
        ("list_files", {"prefix": f"../{spelled}/"}),
    )


async def evicted_path(store, user_id):
    (file,) = await files.list_paths(store, user_id, files.EVICTED)
    return file.path


async def test_each_valid_id_sees_its_own_fact_and_nobody_elses(converse, backend):
    talks = [await talk_of(converse, number, one) for number, one in enumerate(VALID)]
    for number, user_id in enumerate(VALID):
        own = SECRET.format(number)
        facts = [one.text for one in await ledger.entries(backend.store, user_id)]
        assert facts == [f"- the code word is {own}"]
        document = await memory.read(backend.store, user_id)
        assert document.text == f"# Words\n- the code word is {own}"
        assert await transcripts.threads(backend.store, user_id) == [thread_of(number)]
        places = await backend.store.alist_namespaces(prefix=(ROOT, label(user_id)), limit=1_000)
        assert {place[:2] for place in places} == {(ROOT, label(user_id))}
        values = await talks[number].values()
        assert values["owner"] == user_id
    assert await labels_in(backend.store) == {label(one) for one in VALID}


async def test_no_path_name_or_query_reaches_another_user(converse, backend):
    talks = [await talk_of(converse, number, one) for number, one in enumerate(VALID)]
    for number, talk in enumerate(talks):
        victim = (number + 1) % len(VALID)
        path = await evicted_path(backend.store, VALID[victim])
        own_path = await evicted_path(backend.store, VALID[number])
        talk.context.model.attacks = attacks_on(VALID[victim], victim, path)
        await talk.say("attack")
        results = [one for one in await talk.messages() if isinstance(one, ToolMessage)][1:]
        assert len(results) == len(talk.context.model.attacks)
        shown = "\n".join(
            one.text for one in results if not (one.name == "read_file" and path == own_path)
        )
        found = shown.replace(f"'{SECRET.format(victim)}", "")  # as it was asked for
        assert f"is {SECRET.format(victim)}" not in found
        assert f"sessions/{thread_of(victim)}#" not in found.replace(
            f"'sessions/{thread_of(victim)}", ""
        )
    for number, user_id in enumerate(VALID):
        facts = [one.text for one in await ledger.entries(backend.store, user_id)]
        assert facts == [f"- the code word is {SECRET.format(number)}"]
        assert await transcripts.read(backend.store, user_id, thread_of(number), limit=1)


async def test_a_report_is_read_back_by_its_owner_alone(converse, backend):
    kim = await talk_of(converse, 0, "kim")
    path = await evicted_path(backend.store, "kim")
    for user_id, is_there in (("kim", True), ("kimo", False)):
        other = converse(
            model=OfUser("none", attacks=(("read_file", {"path": path}),)),
            user_id=user_id,
            memory={"enabled": True},
            thread_id=f"reading of {user_id}",
        )
        await other.say("attack")
        result = next(m for m in await other.messages() if isinstance(m, ToolMessage))
        assert ("There is no stored text" not in result.text) is is_there
    assert kim.last_call.error is None


async def called(talk, model, user_id):
    context = Context.model_validate({"user_id": user_id, "model": model})
    given = {"messages": [{"role": "user", "content": "hello"}]}
    await talk.graph.ainvoke(given, talk.config, context=context)


async def labels_in(store):
    """Return the labels of the users who have anything in a store."""
    places = await store.alist_namespaces(prefix=(ROOT,), limit=10_000)
    return {place[1] for place in places if await store.asearch(place, limit=1)}


@pytest.mark.parametrize("user_id", REFUSED)
async def test_an_id_that_is_none_is_refused_before_any_model_call(converse, backend, user_id):
    model = ScriptedModel(script=[])
    talk = converse(model=model, memory={"enabled": True})
    with pytest.raises((InvalidInputError, ValueError), match="user_id"):
        await called(talk, model, user_id)
    assert model.requests == []
    assert await labels_in(backend.store) == set()


@pytest.mark.parametrize(
    ("one", "other"), [("K\u00efm", "Ki\u0308m"), ("kim", "Kim"), ("kim", "kimo")]
)
async def test_ids_are_compared_code_point_by_code_point_in_store_and_checkpoints(
    converse, one, other
):
    first = converse(model=OfUser("heron"), user_id=one, memory={"enabled": True})
    await first.say("My code word is heron.")
    second = converse(model=OfUser("heron"), user_id=other, memory={"enabled": True})
    with pytest.raises(InvalidInputError, match="not a thread of"):
        await second.say("mine?")
    assert await ledger.entries(first.store, other) == []


async def test_another_users_thread_is_refused_and_stays_as_it_is(converse):
    kim = await talk_of(converse, 0, "kim")
    before = await kim.messages()
    eve = converse(model=OfUser("none"), user_id="kimo", thread_id=thread_of(0))
    with pytest.raises(InvalidInputError, match="not a thread of"):
        await eve.say("attack")
    assert await kim.messages() == before


async def test_forgetting_one_user_leaves_every_other(converse, backend):
    for number, one in enumerate(VALID):
        await talk_of(converse, number, one)
    for number, user_id in enumerate(VALID):
        await erasure.forget_user(
            backend.store, user_id, saver=backend.saver, at="2026-03-09T12:00:00Z"
        )
        assert await labels_in(backend.store) == {label(one) for one in VALID[number + 1 :]}
