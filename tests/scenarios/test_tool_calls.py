"""Tool calls: parallel, failing, unknown, malformed, capped, and waiting for a person."""

import asyncio

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.types import Command, interrupt

from everlong.nodes.errors import InvalidInputError
from scripted_model import ScriptedModel, calling


class Till:
    """Tools with a memory of how often they ran."""

    def __init__(self):
        self.charged = 0
        self.mails = []
        till = self

        @tool
        async def charge_card(amount: int) -> str:
            """Charge the card."""
            till.charged += 1
            return f"charged {amount}, receipt 881"

        @tool
        async def send_mail(to: str) -> str:
            """Send a mail, when a person agrees."""
            answer = interrupt({"ask": f"Send the mail to {to}?"})
            till.mails.append((to, answer))
            return f"mail to {to}: {answer}"

        @tool
        def broken() -> str:
            """Fail."""
            msg = "the drive is on fire"
            raise RuntimeError(msg)

        self.tools = [charge_card, send_mail, broken]


def results(messages):
    return [message for message in messages if isinstance(message, ToolMessage)]


async def test_parallel_calls_run_at_the_same_time(converse):
    together = asyncio.Barrier(2)

    @tool
    async def meet(name: str) -> str:
        """Wait for the other one."""
        async with asyncio.timeout(5):
            await together.wait()
        return name

    model = ScriptedModel(script=[calling(("meet", {"name": "a"}), ("meet", {"name": "b"})), "met"])
    talk = converse(model=model, tools=[meet])
    assert await talk.say("meet") == "met"
    assert [message.text for message in results(await talk.messages())] == ["a", "b"]


async def test_a_failing_and_an_unknown_call_become_error_results(converse):
    script = [calling(("broken", {}), ("nowhere", {})), "Both failed."]
    talk = converse(model=ScriptedModel(script=script), tools=Till().tools)
    assert await talk.say("try") == "Both failed."
    broken, unknown = results(await talk.messages())
    assert broken.status == unknown.status == "error"
    assert "the drive is on fire" in broken.text
    assert "nowhere" in unknown.text
    assert "charge_card" in unknown.text


async def test_arguments_that_do_not_fit_are_told_to_the_model(converse):
    script = [calling(("charge_card", {"amount": "much"})), "I will ask for a number."]
    till = Till()
    talk = converse(model=ScriptedModel(script=script), tools=till.tools)
    await talk.say("charge")
    (result,) = results(await talk.messages())
    assert result.status == "error"
    assert "amount" in result.text
    assert till.charged == 0


@pytest.mark.parametrize("bad_id", ["bad1", None])
async def test_a_malformed_call_gets_an_error_result_and_its_sibling_runs_once(converse, bad_id):
    till = Till()
    asking = AIMessage(
        "",
        tool_calls=[{"name": "charge_card", "args": {"amount": 5}, "id": "ok1"}],
        invalid_tool_calls=[
            {"name": "send_mail", "args": '{"to": oops]', "id": bad_id, "error": "not JSON"}
        ],
    )
    talk = converse(
        model=ScriptedModel(script=[asking, "Done in part.", "Hello"]), tools=till.tools
    )
    await talk.say("go", "hi")
    good, bad = results(await talk.messages())
    assert till.charged == 1
    assert good.tool_call_id == "ok1"
    assert bad.status == "error"
    assert "valid JSON" in bad.text
    assert till.mails == []


async def test_the_round_cap_ends_with_an_answer_and_without_tools(converse):
    def insist(messages):
        last = messages[-1]
        return (
            "Enough."
            if "has used its 2 rounds" in last.text
            else calling(("charge_card", {"amount": 1}), prefix=f"c{len(messages)}")
        )

    till = Till()
    model = ScriptedModel(script=insist)
    talk = converse(model=model, tools=till.tools, max_tool_rounds=2)
    assert await talk.say("go") == "Enough."
    assert till.charged == 2
    assert model.tools[-1] == []
    assert "charge_card" in model.tools[0]


async def test_a_model_that_calls_tools_beyond_the_cap_still_ends(converse):
    def insist(messages):
        return calling(("charge_card", {"amount": 1}), prefix=f"c{len(messages)}")

    talk = converse(model=ScriptedModel(script=insist), tools=Till().tools, max_tool_rounds=1)
    assert "tool rounds" in await talk.say("go")


ASKING = calling(("charge_card", {"amount": 20}), ("send_mail", {"to": "ops@example.test"}))


async def test_an_approval_resumes_without_running_the_finished_sibling_again(converse):
    till = Till()
    talk = converse(model=ScriptedModel(script=[ASKING, "All done."]), tools=till.tools)
    await talk.send({"messages": [{"role": "user", "content": "go"}]})
    snapshot = await talk.graph.aget_state(talk.config)
    assert [one.value for one in snapshot.interrupts] == [
        {"ask": "Send the mail to ops@example.test?"}
    ]
    again = converse(model=talk.context.model, tools=till.tools)
    messages = await again.send(Command(resume="yes"))
    assert messages[-1].text == "All done."
    assert till.charged == 1
    assert till.mails == [("ops@example.test", "yes")]
    assert [m.text for m in results(messages)] == [
        "charged 20, receipt 881",
        "mail to ops@example.test: yes",
    ]


async def test_typing_instead_of_approving_keeps_the_finished_result(converse):
    till = Till()
    model = ScriptedModel(script=[ASKING, "Your balance is 7."])
    talk = converse(model=model, tools=till.tools)
    await talk.send({"messages": [{"role": "user", "content": "go"}]})
    await talk.say("never mind, what is my balance?")
    kinds = [message.type for message in talk.last_request]
    assert kinds == ["system", "human", "ai", "tool", "tool", "human"]
    charged, mail = results(talk.last_request)
    assert charged.text == "charged 20, receipt 881"
    assert mail.status == "error"
    assert "not answered by the user" in mail.text
    assert (till.charged, till.mails) == (1, [])


async def test_a_message_beside_an_answer_is_refused_and_the_question_still_waits(converse):
    till = Till()
    talk = converse(model=ScriptedModel(script=[ASKING, "Fine."]), tools=till.tools)
    await talk.send({"messages": [{"role": "user", "content": "go"}]})
    said = {"messages": [{"role": "user", "content": "and then?"}]}
    with pytest.raises(InvalidInputError, match="none beside `resume`"):
        await talk.send(Command(resume="yes", update=said))
    messages = await talk.send(Command(resume="yes"))
    assert messages[-1].text == "Fine."
    assert till.mails == [("ops@example.test", "yes")]


async def test_two_approvals_can_be_answered_one_after_the_other(converse):
    till = Till()
    asking = calling(
        ("send_mail", {"to": "a"}), ("send_mail", {"to": "b"}), ("charge_card", {"amount": 3})
    )
    talk = converse(model=ScriptedModel(script=[asking, "Sent."]), tools=till.tools)
    await talk.send({"messages": [{"role": "user", "content": "go"}]})
    first, second = (await talk.graph.aget_state(talk.config)).interrupts
    await talk.send(Command(resume={first.id: "yes"}))
    (left,) = (await talk.graph.aget_state(talk.config)).interrupts
    assert left.value == second.value
    messages = await talk.send(Command(resume={left.id: "no"}))
    assert messages[-1].text == "Sent."
    assert sorted(till.mails) == [("a", "yes"), ("b", "no")]
    assert till.charged == 1


async def test_a_cancelled_call_loses_no_finished_result(converse):
    started = asyncio.Event()

    @tool
    async def quick() -> str:
        """Finish at once."""
        return "receipt 5512"

    @tool
    async def slow() -> str:
        """Take long."""
        await asyncio.sleep(0.2)
        started.set()
        await asyncio.sleep(60)
        return "never"

    script = [calling(("quick", {}), ("slow", {})), "It was stopped."]
    talk = converse(model=ScriptedModel(script=script), tools=[quick, slow])
    running = asyncio.create_task(talk.send({"messages": [{"role": "user", "content": "go"}]}))
    await asyncio.wait_for(started.wait(), 10)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await talk.say("what happened?")
    done, stopped = results(talk.last_request)
    assert done.text == "receipt 5512"
    assert stopped.status == "error"


async def test_a_history_that_ends_in_open_calls_runs_them_first(converse):
    till = Till()
    talk = converse(model=ScriptedModel(script=["Charged."]), tools=till.tools)
    history = [HumanMessage("charge 5"), calling(("charge_card", {"amount": 5}))]
    messages = await talk.send({"messages": history})
    assert messages[-1].text == "Charged."
    assert till.charged == 1
