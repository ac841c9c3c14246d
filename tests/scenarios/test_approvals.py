"""Calls that wait for a person: approved, refused, changed; and calls that take too long."""

import asyncio
import time

import pytest
from langchain_core.messages import ToolMessage
from langchain_core.tools import tool
from langgraph.types import Command, interrupt
from pydantic import ValidationError

from scripted_model import ScriptedModel, calling

ASKED = {"role": "user", "content": "go"}


class Bank:
    """Tools with a memory of what they did."""

    def __init__(self):
        self.done = []
        bank = self

        @tool
        async def bank_pay(to: str, amount: int) -> str:
            """Pay."""
            bank.done.append((to, amount))
            return f"paid {amount} to {to}"

        @tool
        def bank_balance() -> str:
            """Say what is left."""
            bank.done.append("balance")
            return "7 are left"

        @tool
        def bank_close(account: str) -> str:
            """Close an account, with a question of its own."""
            said = interrupt({"ask": f"Sure about {account}?"})
            bank.done.append(("close", account, said))
            return f"closed {account}"

        self.tools = [bank_pay, bank_balance, bank_close]


@pytest.fixture
def bank(given):
    given(EVERLONG_APPROVE_TOOLS="bank_pay")
    return Bank()


def results(messages):
    return [message for message in messages if isinstance(message, ToolMessage)]


def decided(**decision):
    return Command(resume={"decisions": [decision]})


PAY = ("bank_pay", {"to": "kim", "amount": 20})


async def asking(converse, bank, *calls, **context):
    """Begin a conversation whose model makes these calls; return it and what waits."""
    model = ScriptedModel(script=[calling(*calls), "Done.", "Hello."])
    talk = converse(model=model, tools=bank.tools, **context)
    await talk.send({"messages": [ASKED]})
    return talk, await waiting(talk)


async def waiting(talk):
    return list((await talk.graph.aget_state(talk.config)).interrupts)


async def test_a_call_waits_with_a_question_that_says_all_and_runs_once_when_it_is_approved(
    converse, bank
):
    talk, (asked,) = await asking(converse, bank, PAY, ("bank_balance", {}))
    (request,), (config,) = asked.value["action_requests"], asked.value["review_configs"]
    assert (request["name"], request["args"]) == PAY
    assert config == {
        "action_name": "bank_pay",
        "allowed_decisions": ["approve", "edit", "reject", "respond"],
    }
    assert "decisions" in asked.response_schema["properties"]
    assert bank.done == ["balance"]
    messages = await talk.send(decided(type="approve"))
    assert messages[-1].text == "Done."
    assert [one.text for one in results(messages)] == ["paid 20 to kim", "7 are left"]
    assert bank.done == ["balance", ("kim", 20)]


async def test_no_run_can_switch_off_what_the_process_demands(converse, bank):
    talk, asked = await asking(converse, bank, PAY, approve_tools=())
    assert len(asked) == 1
    assert bank.done == []
    assert talk.event_types() == []


async def test_a_run_can_ask_for_more_by_name_or_pattern(converse, bank):
    talk, (asked,) = await asking(
        converse, bank, ("bank_balance", {}), PAY, approve_tools=["bank_b*", "memory_save"]
    )
    assert asked.value["action_requests"][0]["name"] == "bank_balance"
    await talk.send(decided(type="reject"))
    (asked,) = await waiting(talk)
    assert asked.value["action_requests"][0]["name"] == "bank_pay"
    assert bank.done == []


async def test_a_refused_call_does_not_run_and_the_model_hears_why(converse, bank):
    talk, _ = await asking(converse, bank, PAY)
    messages = await talk.send(decided(type="reject", message="kim has been paid."))
    (result,) = results(messages)
    assert result.status == "error"
    assert "a person refused this call" in result.text
    assert "kim has been paid." in result.text
    assert result.tool_call_id == "call_0_bank_pay"
    assert bank.done == []


async def test_a_person_may_give_the_result_in_the_place_of_the_tool(converse, bank):
    talk, _ = await asking(converse, bank, PAY)
    messages = await talk.send(decided(type="respond", message="Paid by hand: 20 to kim."))
    (result,) = results(messages)
    assert (result.text, result.status) == ("Paid by hand: 20 to kim.", "success")
    assert bank.done == []


async def test_changed_arguments_are_what_runs_and_the_model_is_told(converse, bank):
    talk, _ = await asking(converse, bank, PAY)
    action = {"name": "bank_pay", "args": {"to": "kim", "amount": 2}}
    messages = await talk.send(decided(type="edit", edited_action=action))
    (result,) = results(messages)
    assert bank.done == [("kim", 2)]
    assert result.text == (
        '[A person changed the arguments before this call ran: {"to": "kim", "amount": 2}]\n\n'
        "paid 2 to kim"
    )
    assert messages[1].tool_calls[0]["args"]["amount"] == 20


async def test_a_call_is_not_changed_into_one_of_another_tool(converse, bank):
    talk, _ = await asking(converse, bank, PAY)
    action = {"name": "bank_balance", "args": {"to": "kim", "amount": 1}}
    (result,) = results(await talk.send(decided(type="edit", edited_action=action)))
    assert result.status == "error"
    assert bank.done == []


@pytest.mark.parametrize(
    "wrong",
    [
        "perhaps",
        {"decisions": []},
        {"decisions": [{"type": "maybe"}]},
        {"decisions": [{"type": "approve"}] * 2},
        {"type": "edit"},
        {"type": "respond"},
        7,
        [1],
    ],
)
async def test_an_answer_that_is_none_is_refused_and_can_be_given_again(converse, bank, wrong):
    talk, (asked,) = await asking(converse, bank, PAY)
    with pytest.raises(ValidationError, match=r"approve|decisions|expected"):
        await talk.send(Command(resume=wrong))
    assert [one.id for one in await waiting(talk)] == [asked.id]
    assert bank.done == []
    await talk.send(Command(resume={asked.id: "yes"}))
    assert bank.done == [("kim", 20)]


async def test_parallel_calls_are_asked_about_one_by_one_so_that_no_answer_needs_an_id(
    converse, bank
):
    others = [("bank_pay", {"to": to, "amount": 30}) for to in ("lee", "mo")]
    talk, (first,) = await asking(converse, bank, PAY, others[0], ("bank_balance", {}), others[1])
    assert bank.done == ["balance"]
    with pytest.raises(ValidationError, match="approve"):
        await talk.send(Command(resume="perhaps"))
    assert await waiting(talk) == [first]
    await talk.send(Command(resume="yes"))
    assert bank.done == ["balance", ("kim", 20)]
    again = converse(model=talk.context.model, tools=bank.tools)
    await again.send(Command(resume="no: not today"))
    (last,) = await waiting(again)
    messages = await again.send(Command(resume={last.id: "yes"}))
    assert [one.text.rpartition("given: ")[2] for one in results(messages)] == [
        *("paid 20 to kim", "not today", "7 are left", "paid 30 to mo")
    ]
    assert bank.done == ["balance", ("kim", 20), ("mo", 30)]


async def test_a_tool_that_is_gone_when_the_answer_comes_moves_no_other_into_its_place(
    converse, bank
):
    second = ("bank_pay", {"to": "lee", "amount": 30})
    talk, _ = await asking(
        converse,
        bank,
        ("bank_close", {"account": "A-1"}),
        ("bank_balance", {}),
        second,
        approve_tools=["bank_close"],
    )
    pay, balance, _ = bank.tools
    again = converse(model=talk.context.model, tools=[pay, balance])
    await again.send(Command(resume="yes"))
    (left,) = await waiting(again)
    assert left.value["action_requests"][0]["args"]["to"] == "lee"
    gone, looked, refused = results(await again.send(Command(resume="no")))
    assert "there is no tool 'bank_close' here" in gone.text
    assert looked.text == "7 are left"
    assert "a person refused" in refused.text
    assert bank.done == ["balance"]


async def test_a_refusal_is_heard_where_the_run_that_brings_it_asks_for_no_approval(
    converse, given
):
    bank = Bank()
    talk, _ = await asking(converse, bank, PAY, approve_tools=["bank_pay"])
    again = converse(model=talk.context.model, tools=bank.tools)
    (result,) = results(await again.send(Command(resume="no")))
    assert "a person refused" in result.text
    assert bank.done == []


async def test_a_refusal_is_heard_after_a_restart_with_other_settings(converse, bank, given):
    talk, _ = await asking(converse, bank, PAY)
    given(EVERLONG_APPROVE_TOOLS="")
    await talk.send(Command(resume="no"))
    assert bank.done == []


async def test_typing_instead_of_answering_closes_the_call_and_runs_nothing(converse, bank):
    talk, _ = await asking(converse, bank, PAY)
    assert await talk.say("never mind") == "Done."
    (result,) = results(talk.last_request)
    assert result.text == "not answered by the user"
    assert bank.done == []


async def test_a_tool_that_asks_by_itself_is_asked_about_first(converse, bank, given):
    given(EVERLONG_APPROVE_TOOLS="bank_*")
    talk, _ = await asking(converse, bank, ("bank_close", {"account": "A-1"}))
    await talk.send(decided(type="approve"))
    (own,) = await waiting(talk)
    assert own.value == {"ask": "Sure about A-1?"}
    assert bank.done == []
    await talk.send(Command(resume="quite"))
    assert bank.done == [("close", "A-1", "quite")]


async def test_our_own_tools_can_wait_too(converse, bank, given):
    given(EVERLONG_APPROVE_TOOLS="memory_*")
    save = ("memory_save", {"facts": ["Pays on Fridays"]})
    _, asked = await asking(converse, bank, save, ("nowhere", {}), memory={"enabled": True})
    assert [one.value["action_requests"][0]["name"] for one in asked] == ["memory_save"]


async def test_a_call_that_takes_too_long_is_given_up_and_its_sibling_is_not(converse, given):
    given(EVERLONG_TOOL_SECONDS='{"slow_*": 0.2}')
    ended = []

    @tool
    async def slow_look() -> str:
        """Look for long."""
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("look")
        return "found"

    @tool
    def slow_count() -> str:
        """Count in a thread."""
        time.sleep(0.6)
        return "counted"

    @tool
    async def own_limit() -> str:
        """Give up by itself."""
        await asyncio.sleep(0.4)
        raise TimeoutError("the line is dead")  # noqa: EM101, TRY003 - a tool's own

    script = [calling(("slow_look", {}), ("slow_count", {}), ("own_limit", {})), "Done."]
    talk = converse(model=ScriptedModel(script=script), tools=[slow_look, slow_count, own_limit])
    assert await talk.say("go") == "Done."
    look, count, own = results(await talk.messages())
    for one in (look, count):
        assert one.status == "error"
        assert "no answer within 0.2 seconds" in one.text
    assert "the line is dead" in own.text
    assert ended == ["look"]
