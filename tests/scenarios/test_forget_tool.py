"""What was forgotten stays out of a conversation, and the tool `memory_forget` (R49)."""

from langchain_core.messages import ToolMessage

from everlong.stores import forgetting, pages, tombstones
from scripted_model import ScriptedModel, calling
from to_forget import AT, facts_of, remembered, written

ON = {"enabled": True, "consolidate": "on_request"}


async def test_what_nobody_has_erased_yet_is_not_injected_all_the_same(converse):
    """A crash between the tombstone and the erasure."""
    talk = converse(model=ScriptedModel(script=script), memory=ON)
    await remembered(talk.store, "phone is 555-0142", "likes tea")
    await written(talk.store, "- phone is 555-0142\n- likes tea")
    planned = await forgetting.plan(talk.store, "kim", "phone", at=AT)
    await tombstones.put(talk.store, "kim", planned.stones)
    await talk.say("hello")
    assert "likes tea" in talk.last_request[1].text
    assert "0142" not in talk.last_request[1].text


def script(messages):
    last = messages[-1]
    if "NO_REPLY" in last.text:
        return "NO_REPLY"
    if last.type == "tool":
        return "Done."
    if last.text.startswith("Forget"):
        return calling(("memory_forget", {"query": last.text.removeprefix("Forget ")}))
    if last.text.startswith("Remember"):
        return calling(("memory_save", {"content": "phone is 555-0142"}), prefix=last.id)
    return "Yes."


async def result(talk):
    return next(m.text for m in reversed(await talk.messages()) if isinstance(m, ToolMessage))


async def test_the_tool_erases_in_its_own_thread_and_tells_how_much(converse):
    talk = converse(model=ScriptedModel(script=script), memory=ON)
    await remembered(talk.store, "phone is 555-0142")
    talk.waived = {"no_half_state": "the request names what is to be forgotten"}
    await talk.say("My phone is 555-0142. Bye.", "Forget 555-0142")
    told = await result(talk)
    assert told.startswith("Forgotten: 1 fact of the ledger")
    assert "0142" not in str(await talk.values())
    texts = [message.text for message in await talk.messages()]
    assert texts[0] == "[forgotten] Bye."
    assert await pages.search(talk.store, "kim", "555-0142") == []


async def test_the_tool_shows_what_may_be_meant_and_takes_its_source(converse):
    talk = converse(model=ScriptedModel(script=script), memory=ON)
    await remembered(talk.store, "works in Bergen", "likes Bergen")
    await talk.say("Forget Bergen")
    told = await result(talk)
    assert "Source: memory/2026-03-01.md#3\nworks in Bergen" in told
    await talk.say("Forget memory/2026-03-01.md#3")
    assert await facts_of(talk.store) == ["likes Bergen"]


async def test_the_user_may_tell_it_again_but_nobody_else(converse):
    talk = converse(model=ScriptedModel(script=script), memory=ON)
    await remembered(talk.store, "phone is 555-0142")
    await talk.say("Forget phone", "Remember what I told you.")
    assert "had this forgotten" in await result(talk)
    assert await facts_of(talk.store) == []
    await talk.say("Remember that my phone is 555-0142 after all.")
    assert await facts_of(talk.store) == ["phone is 555-0142"]
    assert not await tombstones.load(talk.store, "kim")


async def test_where_nothing_is_forgotten_a_call_costs_one_look_and_writes_nothing(converse):
    talk = converse(model=ScriptedModel(script=script), memory=ON)
    await talk.say("hello", "again")
    assert (await talk.values()).get("forgotten", "") == ""
    assert not [key for key, _ in talk.last_call.written if "tombstone" in key]
