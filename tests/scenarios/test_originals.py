"""What a compaction took out of the history is read back from its record, word for word (R62)."""

from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

from everlong.nodes.transcript import is_summary
from everlong.stores import compactions
from orders import ROUNDS, SMALL, answering, only_record, records
from scripted_model import ScriptedModel, asks_for_summary, calling


async def test_the_originals_are_read_back_word_for_word_after_several_compactions(converse):
    talk = converse(model=answering(summary="They spoke."), compaction=SMALL)
    pinned = HumanMessage("The safe word is heron.", id="p1", additional_kwargs={"pin": True})
    await talk.seed(
        [
            SystemMessage("Be brief.", id="s1"),
            *ROUNDS[:2],
            pinned,
            AIMessage("Noted.", id="p2"),
            *ROUNDS[2:4],
            SystemMessage("Prices with VAT.", id="s2"),
        ]
    )
    said = {str(message.id): message.text for message in await talk.messages()}
    for number in range(8):
        await talk.say(f"message {number} about heron-{number}")
        said |= {str(message.id): message.text for message in await talk.messages()}
    made = await records(talk)
    assert len(made) > 2
    gone: list[str] = []
    for record in made:
        entries = await compactions.originals(talk.store, "kim", "thread-1", record)
        ids = [ident for ident in record["message_ids"] if not ident.startswith("__")]
        assert sorted(entry.message_id for entry in entries) == sorted(ids)
        assert [entry.text for entry in entries] == [said[one.message_id] for one in entries]
        gone += ids
    stays = [str(message.id) for message in await talk.messages()]
    assert len(set(gone)) == len(gone)
    assert set(gone) & {"s1", "s2", "p1"} == set()
    assert {*gone, *stays} == {ident for ident in said if not ident.startswith("__")} | {*stays}


async def test_a_question_that_long_tool_loops_pushed_out_is_found_when_it_goes_at_last(converse):
    def script(messages):
        if asks_for_summary(messages):
            return "Files were listed."
        asked = [m for m in messages if m.type == "human" and m.name is None][-1].text
        rounds = sum(message.type == "tool" for message in messages)
        if not asked.startswith("Look") or (is_summary(messages[1]) and rounds >= 2):
            return "done"
        return calling(("list_files", {"prefix": f"p{len(messages)}"}), prefix=f"c{len(messages)}")

    talk = converse(model=ScriptedModel(script=script), compaction=SMALL)
    await talk.say("Look through every folder, please.", "thanks", "and on", "and on", "and on")
    made = await records(talk)
    assert len(made) > 1
    found = [
        entry.text
        for record in made
        for entry in await compactions.originals(talk.store, "kim", "thread-1", record)
        if entry.role == "human"
    ]
    assert found[0] == "Look through every folder, please."


async def test_the_originals_are_found_though_the_history_was_edited(converse):
    talk = converse(model=answering(summary="They spoke."), compaction=SMALL)
    await talk.say("first", "second")
    messages = await talk.messages()
    gone = {"type": "remove", "content": "", "id": messages[1].id}
    await talk.graph.aupdate_state(talk.config, {"messages": [gone]}, as_node="consolidate")
    await talk.say("third", "fourth")
    record = (await records(talk))[0]
    entries = await compactions.originals(talk.store, "kim", "thread-1", record)
    assert [entry.message_id for entry in entries] == record["message_ids"]
    assert [entry.text for entry in entries][:2] == ["first", "second"]


async def test_the_state_stays_small_however_many_messages_went(converse):
    many = [
        message
        for number in range(1_500)
        for message in (
            HumanMessage(f"order PX-{number}", id=f"h{number:05d}"),
            AIMessage(f"noted {number}", id=f"a{number:05d}"),
        )
    ]
    talk = converse(model=answering(summary="Orders. QQ-1 " * 3), compaction=SMALL)
    await talk.seed(many)
    await talk.say("and now?")
    record = await only_record(talk)
    assert len(record["message_ids"]) == record["replaced"] == 2_999
    assert record["transcript"] == [[0, 2_998]]
    values = await talk.values()
    assert len(repr(values["compaction"])) < 1_500
    assert len(repr(values["archived"])) < 200
