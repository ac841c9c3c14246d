"""A04: a user types instead of answering an approval; nothing is lost, nothing runs twice."""

import pytest
from langchain_core.messages import ToolMessage
from langchain_core.tools import tool
from langgraph.types import Command, interrupt

from given import case
from scripted_model import ScriptedModel, calling, kind_of

STEPS = case("A04")["steps"]
ASKED = STEPS[0]["send"]["human"]
CALLS = STEPS[1]["agent_model"]["tool_calls"]
CHARGED = STEPS[2]["returns"]
TYPED = STEPS[4]["branch_1"]["send"]["human"]
RESUMED = STEPS[5]["branch_2"]["resume"]
SECOND_MAIL = ("send_mail", {"to": "boss@example.test"})


class Till:
    """A tool that acts at once, and one that waits for a person."""

    def __init__(self):
        self.charged, self.mails = [], []
        till = self

        @tool
        def charge_card(amount: int) -> str:
            """Charge the card."""
            till.charged.append(amount)
            return CHARGED

        @tool
        def send_mail(to: str) -> str:
            """Send a mail, when a person agrees."""
            answer = interrupt({"ask": "Send this mail?", "to": to})
            till.mails.append((to, answer))
            return f"mail to {to}: {answer}"

        self.tools = [charge_card, send_mail]


def asking(*more):
    return calling(*((call["name"], call["args"]) for call in CALLS), *more)


def flushing(*answers):
    """A model that answers in turn, and keeps what a flush tells it to."""
    left = list(answers)

    def script(messages):
        kind = kind_of(messages)
        if kind == "answer":
            return left.pop(0)
        return "- receipt 881 was issued" if kind == "flush" else "- receipt 881"

    return ScriptedModel(script=script)


def results(messages):
    return [message for message in messages if isinstance(message, ToolMessage)]


def flushed(model):
    return [r[-1].text for r in model.requests if kind_of(r) == "flush"]


@pytest.fixture
def begin(converse):
    """Begin the thread, or go on with it in another process."""

    def begun(till, model):
        return converse(model=model, tools=till.tools, memory={"enabled": True})

    return begun


@pytest.mark.parametrize("restart", [False, True])
async def test_typing_closes_the_question_and_keeps_the_finished_result(begin, restart):
    till = Till()
    model = flushing(asking(), "Your balance is 7.", "Bye.")
    talk = begin(till, model)
    await talk.send({"messages": [{"role": "user", "content": ASKED}]})
    if restart:
        talk = begin(till, model)
    await talk.say(TYPED)
    sent = talk.last_request
    assert [m.type for m in sent if m.name != "__memory__"] == [
        *("system", "human", "ai", "tool", "tool", "human")
    ]
    charged, mail = results(sent)
    assert charged.text == CHARGED
    assert charged.status == "success"
    assert mail.status == "error"
    assert "not answered by the user" in mail.text
    assert sent[-1].text == TYPED
    assert (till.charged, till.mails) == ([20], [])
    (read,) = flushed(model)
    assert read.count("receipt 881") == 1
    await talk.say("bye")
    assert len(results(talk.last_request)) == 2
    assert "receipt 881" not in flushed(model)[-1].partition("<conversation>")[2]


@pytest.mark.parametrize("restart", [False, True])
async def test_an_answer_runs_nothing_twice_and_keeps_the_order_of_the_calls(begin, restart):
    till = Till()
    model = flushing(asking(), "All done.")
    talk = begin(till, model)
    await talk.send({"messages": [{"role": "user", "content": ASKED}]})
    if restart:
        talk = begin(till, model)
    messages = await talk.send(Command(resume=RESUMED))
    assert messages[-1].text == "All done."
    assert till.charged == [20]
    assert till.mails == [("ops@example.test", "yes")]
    assert [m.text for m in results(messages)] == [CHARGED, "mail to ops@example.test: yes"]
    (read,) = flushed(model)
    assert read.count("receipt 881") == 1


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("answered", [0, 1])
async def test_of_two_approvals_the_answered_one_stands_and_the_other_is_closed(
    begin, restart, answered
):
    till = Till()
    model = flushing(asking(SECOND_MAIL), "Your balance is 7.")
    talk = begin(till, model)
    await talk.send({"messages": [{"role": "user", "content": ASKED}]})
    waiting = (await talk.graph.aget_state(talk.config)).interrupts
    assert len(waiting) == 2
    chosen = waiting[answered]
    await talk.send(Command(resume={chosen.id: "yes"}))
    (left,) = (await talk.graph.aget_state(talk.config)).interrupts
    assert left.value == waiting[1 - answered].value
    if restart:
        talk = begin(till, model)
    await talk.say(TYPED)
    charged, *mails = results(talk.last_request)
    assert charged.text == CHARGED
    assert [mail.status for mail in mails] == [
        "success" if mail.text.endswith("yes") else "error" for mail in mails
    ]
    assert mails[answered].text == f"mail to {chosen.value['to']}: yes"
    assert "not answered by the user" in mails[1 - answered].text
    assert till.charged == [20]
    assert till.mails == [(chosen.value["to"], "yes")]
