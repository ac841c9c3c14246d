"""A03: a call that can't be read gets an error result, and its good sibling runs."""

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool

from given import case, messages_of
from scripted_model import ScriptedModel, calling

GIVEN = case("A03")
ANSWER = GIVEN["agent_model"][0]["text"]


class Notes:
    """Tools that count."""

    def __init__(self):
        self.listed, self.saved = 0, []
        notes = self

        @tool
        def list_notes() -> str:
            """List the notes."""
            notes.listed += 1
            return "1 note: buy tea"

        @tool
        def save_note(text: str) -> str:
            """Save a note."""
            notes.saved.append(text)
            return "saved"

        self.tools = [list_notes, save_note]


def given_messages(*, alone=False, null=False):
    """The case's messages; the bad call without its good sibling, or without an id."""
    asked, asking = messages_of(GIVEN["messages"])
    assert isinstance(asking, AIMessage)
    good, bad = (dict(block) for block in asking.content if isinstance(block, dict))
    broken = asking.invalid_tool_calls[0]
    if null:
        bad, broken = {**bad, "id": None}, {**broken, "id": None}
    changes = {"content": [bad] if alone else [good, bad], "invalid_tool_calls": [broken]}
    if alone:
        changes["tool_calls"] = []
    return [asked, asking.model_copy(update=changes)]


VARIATIONS = pytest.mark.parametrize(
    ("alone", "null"), [(False, False), (True, False), (False, True), (True, True)]
)


def results(messages):
    return [message for message in messages if isinstance(message, ToolMessage)]


def check_request(request, *, alone):
    """Both calls have one result, directly after the message that made them."""
    at = next(i for i, message in enumerate(request) if message.id == "a1")
    asking = request[at]
    ids = [call["id"] for call in asking.tool_calls]
    assert len(set(ids)) == len(ids) == (1 if alone else 2)
    assert [block["id"] for block in asking.content] == ids
    followed = request[at + 1 : at + 1 + len(ids)]
    assert [message.tool_call_id for message in followed] == ids
    assert len(results(request)) == len(ids)
    assert followed[-1].status == "error"
    assert "valid" in followed[-1].text
    assert all(isinstance(call["args"], dict) for call in asking.tool_calls)
    assert "oops" in str(asking.tool_calls[-1]["args"])


@VARIATIONS
@pytest.mark.parametrize("imported", [True, False])
async def test_the_good_call_runs_once_and_the_bad_one_gets_an_error(
    converse, alone, null, imported
):
    """With the call in an imported history, and as the model's own answer."""
    notes = Notes()
    asked, asking = given_messages(alone=alone, null=null)
    script = [ANSWER, "Hello."] if imported else [asking, ANSWER, "Hello."]
    talk = converse(model=ScriptedModel(script=script), tools=notes.tools)
    messages = await talk.send({"messages": [asked, asking] if imported else [asked]})
    assert messages[-1].text == ANSWER
    assert (notes.listed, notes.saved) == (0 if alone else 1, [])
    check_request(talk.last_request, alone=alone)
    # Another process goes on with the thread.
    again = converse(model=talk.context.model, tools=notes.tools)
    await again.say("and now?")
    check_request(again.last_request, alone=alone)
    assert (notes.listed, notes.saved) == (0 if alone else 1, [])


@VARIATIONS
async def test_a_bad_call_that_a_user_walked_away_from_gets_one_result(converse, alone, null):
    notes = Notes()
    asked, asking = given_messages(alone=alone, null=null)
    talk = converse(model=ScriptedModel(script=["Hello.", "Bye."]), tools=notes.tools)
    messages = await talk.send({"messages": [asked, asking, HumanMessage("hello?", id="h2")]})
    assert [m.type for m in messages if m.id == "h2" or m.type == "tool"][-1] == "human"
    check_request(talk.last_request, alone=alone)
    await talk.say("bye")
    check_request(talk.last_request, alone=alone)
    assert (notes.listed, notes.saved) == (0, [])


async def test_a_call_to_a_tool_that_is_not_bound_gets_an_error_in_the_same_way(converse):
    notes = Notes()
    asking = calling(("list_notes", {}), ("fly", {"to": "Oslo"}))
    script = [asking, "I can't fly.", "Hello."]
    talk = converse(model=ScriptedModel(script=script), tools=notes.tools)
    await talk.say("fly", "and now?")
    listed, flown = results(talk.last_request)
    assert notes.listed == 1
    assert listed.status == "success"
    assert flown.status == "error"
    assert "fly" in flown.text
