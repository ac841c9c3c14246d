"""R43-R45: memory cannot invent, and says where it has everything from."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from pydantic import Field

from everlong.stores import ledger, memory, pages
from scripted_model import ScriptedModel, calling, kind_of

TOLD = "Just confirm: our exports go through Shanghai port only, customer code ALPHA."
FACT = "Exports go through Shanghai port only; customer code ALPHA."
INVENTED = "The agreement on exports was made on 2026-02-13."
ON = {"enabled": True, "consolidate": "on_request"}
NOON = datetime(2026, 3, 9, 12, tzinfo=UTC)


class Scribe(ScriptedModel):
    """Flushes and consolidates what it is told to; answers all else."""

    flushes: list[Any] = Field(default_factory=list)
    documents: list[Any] = Field(default_factory=list)
    said: str = "Confirmed."

    def __init__(self, **more):
        super().__init__(**more)
        self.script = self.answer

    def answer(self, messages):
        kind = kind_of(messages)
        if kind == "flush":
            return self.flushes.pop(0) if self.flushes else "NO_REPLY"
        if kind == "consolidation":
            return self.documents.pop(0)
        return "done" if isinstance(messages[-1], ToolMessage) else self.said

    def prompts(self, kind):
        return [request[-1].text for request in self.requests if kind_of(request) == kind]


async def facts(talk):
    found = await ledger.entries(talk.store, "kim")
    return [(fact.text, fact.doubt) for entry in found for fact in entry.facts]


async def consolidate(talk):
    await talk.send({"request": {"consolidate": True}})
    return await memory.read(talk.store, "kim")


async def test_the_invented_date_is_kept_from_the_document_and_listed_for_review(converse):
    model = Scribe(flushes=[f"- {FACT} [1]\n- {INVENTED} [1]"], documents=[f"# Trade\n- {FACT}"])
    talk = converse(model=model, memory=ON)
    await talk.say(TOLD)
    doubt = "2026-02-13 was never said"
    assert await facts(talk) == [(FACT, ""), (INVENTED, doubt)]
    assert talk.events[-1] | {"facts": 2, "unverified": 1} == talk.events[-1]
    page = await pages.read_page(talk.store, "kim", "memory/2026-03-09.md")
    assert f"- {INVENTED} [unverified: {doubt}]" in (page or "")
    document = await consolidate(talk)
    assert "2026-02-13" not in model.prompts("consolidation")[0]
    assert "2026-02-13" not in document.text
    other = converse(model=model, memory=ON, thread_id="t2")
    await other.say("hello")
    assert "2026-02-13" not in "".join(message.text for message in other.last_request)
    ((entry, fact),) = await memory.review(talk.store, "kim")
    assert (entry.day, fact.text) == ("2026-03-09", INVENTED)


async def test_a_confirmed_fact_is_remembered_at_once_and_a_rejected_one_nowhere(converse):
    wrong = "The customer pays in 90 days."
    model = Scribe(flushes=[f"- {FACT} [1]\n- {INVENTED} [1]\n- {wrong} [1]"])
    talk = converse(model=model, memory=ON)
    await talk.say(TOLD)
    (_, invented), (_, other) = await memory.review(talk.store, "kim")
    later = (NOON + timedelta(minutes=1)).isoformat()
    await ledger.confirm(talk.store, "kim", invented.key, instant=later, zone="UTC")
    await ledger.reject(talk.store, "kim", other.key)
    assert await memory.review(talk.store, "kim") == []
    assert await pages.document_text(talk.store, "kim") == f"- {INVENTED}"
    everything = "\n".join((await pages.read_all(talk.store, "kim")).values())
    assert "unverified" not in everything
    assert "90 days" not in everything
    assert (await ledger.saved(talk.store, "kim"))[0].facts[0].sources == invented.sources


async def test_a_flush_of_doubtful_facts_alone_is_no_reason_to_consolidate(converse, caplog):
    caplog.set_level("INFO", logger="everlong.memory")
    model = Scribe(flushes=[f"- {INVENTED} [1]"])
    talk = converse(model=model, memory={"enabled": True})
    await talk.say(TOLD)
    assert model.prompts("consolidation") == []
    assert "1 fact written to the ledger, 1 of them unverified" in caplog.text
    await consolidate(talk)
    assert "No fresh daily entries since" in caplog.text
    assert await memory.read(talk.store, "kim") is None


async def test_messages_are_numbered_and_facts_carry_their_ids(converse):
    model = Scribe(
        flushes=["NO_REPLY", "1) Badge number is 5512 [user 3]\n+ likes tea [77]\n- 喜欢喝茶 [1]"]
    )
    talk = converse(model=model, memory=ON | {"flush": 10}, clock=lambda: now[0])
    now = [NOON]
    await talk.say("hello")
    now[0] += timedelta(minutes=1)
    await talk.say("I like tea.")
    now[0] += timedelta(minutes=11)
    await talk.say("My badge number is 5512.")
    (prompt,) = model.prompts("flush")[1:]
    asked = prompt.partition("<conversation>\n")[2]
    assert asked.startswith(
        "[user 1]\nI like tea.\n\n[assistant 2]\nConfirmed.\n\n[user 3]\nMy badge"
    )
    ids = {message.text: message.id for message in await talk.messages()}
    (entry,) = await ledger.entries(talk.store, "kim")
    assert [fact.sources for fact in entry.facts] == [
        (ids["My badge number is 5512."],),
        (ids["I like tea."],),
        (ids["I like tea."],),
    ]


async def test_memory_get_shows_each_line_s_sources_down_to_the_transcript(converse):
    model = Scribe(flushes=[f"- {FACT} [1]"], documents=[f"# Trade\n- {FACT}"])
    talk = converse(model=model, memory=ON)
    await talk.say(TOLD)
    await consolidate(talk)
    call = calling(("memory_get", {"path": "MEMORY.md"}))
    call.tool_calls[0]["id"] = "g1"
    model.said = call
    other = converse(model=model, memory=ON, thread_id="t2")
    await other.say("where from?")
    told = next(m.text for m in await other.messages() if isinstance(m, ToolMessage))
    assert told.splitlines() == [
        "Source: MEMORY.md#1-2",
        "1|# Trade",
        f"2|- {FACT}",
        "Line 2 comes from memory/2026-03-09.md#3, sessions/thread-1#0",
    ]
    model.said = AIMessage("fine")


async def test_what_the_consolidation_invents_is_left_out_and_told(converse, caplog):
    document = f"Here is the updated MEMORY.md:\n# Trade\n- {FACT}\n- Agreed on 2026-02-13"
    model = Scribe(flushes=[f"- {FACT} [1]"], documents=[document])
    talk = converse(model=model, memory=ON)
    await talk.say(TOLD)
    written = await consolidate(talk)
    assert written.text == f"# Trade\n- {FACT}"
    assert "2026-02-13 was never said" in caplog.text
    assert "a remark about the document" in caplog.text
    told = next(event for event in talk.events if event["type"] == "memory.consolidated")
    assert told["dropped"] == 2


PREFERENCES = ["Likes tea.", "Lives in Oslo.", "Sister is called Anna.", "Never works on Fridays."]
BAD = {
    "empty": "",
    "no fact": "# Facts",
    "drops most": "# Facts\n- Likes tea.",
    "refusal": "I'm sorry, but I can't help with that.",
    "cut off": AIMessage(
        "# Facts\n" + "\n".join(f"- {one}" for one in PREFERENCES),
        response_metadata={"finish_reason": "length"},
    ),
    "invented": "- Badge 99999 since 2020-01-01",
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
async def test_a_bad_consolidation_is_refused_and_the_old_document_stays(converse, caplog, bad):
    first = "\n".join(f"- {one}" for one in PREFERENCES)
    good = f"# Facts\n{first}\n- Rides a bicycle."
    model = Scribe(
        flushes=[first, "- Rides a bicycle."], documents=[f"# Facts\n{first}", bad, good]
    )
    talk = converse(model=model, memory=ON)
    await talk.say(" ".join(PREFERENCES))
    old = await consolidate(talk)
    await talk.say("I ride a bicycle.")
    assert await consolidate(talk) == old
    assert "Consolidation refused" in caplog.text
    assert (await consolidate(talk)).text == good


async def test_what_a_person_saved_survives_a_consolidation_that_forgets_it(converse):
    model = Scribe(flushes=["- Likes tea."], documents=["# Facts\n- Likes tea."])
    talk = converse(model=model, memory=ON)
    await talk.say("I like tea.")
    await ledger.append(
        talk.store,
        "kim",
        "save",
        [ledger.Fact("Never mail the client.")],
        instant=NOON.isoformat(),
        zone="UTC",
        thread_id="",
        sources=[],
    )
    assert (await consolidate(talk)).text == "# Facts\n- Likes tea.\n\n- Never mail the client."


async def test_what_memory_says_is_not_stored_again(converse):
    again = "Our exports go through the Shanghai port only, the customer code is ALPHA"
    model = Scribe(
        flushes=[f"- {FACT} [1]", f"- {FACT} [2]", f"- {again} [1]"],
        documents=[f"# Trade\n- {FACT}"],
    )
    talk = converse(model=model, memory=ON)
    await talk.say(TOLD)
    await consolidate(talk)
    model.said = f"{FACT} Source: MEMORY.md#2"
    other = converse(model=model, memory=ON, thread_id="t2")
    await other.say("Which port and code?")
    await other.say("Right: our exports go through Shanghai port only, code ALPHA.")
    assert await facts(talk) == [(FACT, "")]


async def test_an_error_text_for_an_answer_has_the_messages_read_again(converse):
    model = Scribe(flushes=["Error: 503 overloaded", f"- {FACT} [1]"])
    talk = converse(model=model, memory=ON)
    await talk.say(TOLD)
    assert await facts(talk) == []
    await talk.say("hello")
    assert await facts(talk) == [(FACT, "")]


async def test_the_last_line_of_a_flush_that_was_cut_off_is_not_trusted(converse):
    cut = AIMessage(
        f"- {FACT} [1]\n- Exports never go", response_metadata={"finish_reason": "length"}
    )
    talk = converse(model=Scribe(flushes=[cut]), memory=ON)
    await talk.say(TOLD)
    assert await facts(talk) == [(FACT, "")]


async def test_without_a_transcript_the_day_of_an_older_message_is_not_known(converse):
    model = Scribe(flushes=["Error: 503 overloaded", "- Signed the lease yesterday [1]"])
    now = [NOON]
    talk = converse(model=model, memory=ON, transcript=False, clock=lambda: now[0])
    await talk.say("I signed the lease yesterday.")
    now[0] += timedelta(days=18)
    await talk.say("Hello again.")
    doubt = "on which day 'yesterday' was said is not known"
    assert await facts(talk) == [("Signed the lease yesterday", doubt)]
