"""Calls that wait for a person: who says which, what the person is asked, what the answer means.

The question and the answer have the form of LangChain's human-in-the-loop middleware, which its
user interfaces know; a person at a terminal may say the same in a word. These interfaces answer
without saying which question, so one call of a message is asked about at a time.
"""

import json
import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any, Literal, cast

from langchain_core.messages import ToolCall, ToolMessage
from langgraph.errors import GraphInterrupt, is_invalid_resume
from langgraph.types import interrupt
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from everlong.nodes.context import Context
from everlong.stores.settings import settings

REFUSED = "Not run: a person refused this call. Make it again only where you are asked to.{reason}"
EDITED = "[A person changed the arguments before this call ran: {args}]\n\n"
EXPECTED = (
    'expected {"decisions": [{"type": "approve"}]}, or in the place of "approve" a "reject" with a '
    '"message", a "respond" with the "message" that stands for the result, or an "edit" with an '
    '"edited_action" of the same "name" and other "args"; or in a word: yes, no, no: why not'
)
_SIGNS = r"[\s.,;:!。，、；：！]"
_YES = re.compile(rf"(?:yes|y|ok|approved?|是|好|好的|同意|可以){_SIGNS}*", re.IGNORECASE)
_NO = re.compile(
    rf"(?:no|n|reject(?:ed)?|否|不|不行|不同意|不可以|拒绝)(?:{_SIGNS}+(.*))?",
    re.IGNORECASE | re.DOTALL,
)


class EditedAction(BaseModel):
    """What runs in the place of the call."""

    model_config = ConfigDict(extra="ignore")

    name: str = ""
    args: dict[str, Any]


class Decision(BaseModel):
    """What a person decided of one call."""

    model_config = ConfigDict(extra="ignore")

    type: Literal["approve", "edit", "reject", "respond"]
    message: str = ""
    edited_action: EditedAction | None = None

    @model_validator(mode="after")
    def _says_what(self) -> "Decision":
        is_empty = self.type == "respond" and not self.message.strip()
        if is_empty or (self.type == "edit" and self.edited_action is None):
            raise ValueError(EXPECTED)
        return self


class Answer(BaseModel):
    """The answer to one call that waits."""

    model_config = ConfigDict(extra="ignore")

    decisions: list[Decision] = Field(min_length=1, max_length=1)

    @model_validator(mode="before")
    @classmethod
    def _in_a_word(cls, given: Any) -> Any:
        """Take one decision without its list, or a word, for the same."""
        if isinstance(given, bool | str):
            given = _decision_in(given)
        found = cast("dict[str, Any]", given) if isinstance(given, dict) else dict[str, Any]()
        if "type" in found:
            found = {"decisions": [found]}
        if "decisions" not in found:
            raise ValueError(EXPECTED)
        return found


def approvals(context: Context) -> list[str]:
    """Return which calls wait for a person: what the process says, and what the run adds to it."""
    return list(dict.fromkeys((*settings().approve_tools, *context.approve_tools)))


def needs_approval(name: str, context: Context, state: dict[str, Any]) -> bool:
    """Tell a call that waits, by the settings of now or of when the call of the agent began.

    So a person's answer is heard also where the run that brings it, or a restarted process, asks
    for none.
    """
    begun: Sequence[str] = state["call"].get("approve_tools", ())
    return any(fnmatchcase(name, one) for one in (*approvals(context), *begun))


def approved(call: ToolCall, asked: list[ToolCall]) -> ToolCall | ToolMessage:
    """Ask a person about a call; return what to run, or the result that takes its place.

    `asked` are the calls of the same message that wait for an answer: where there is one, this one
    is asked about after it.

    Raises:
        GraphInterrupt: nobody has answered yet.
        ValidationError: the answer is none; it can be given again.
    """
    if asked:
        raise GraphInterrupt(())
    try:
        (decision,) = interrupt(_question(call), response_schema=Answer).decisions
    except (GraphInterrupt, ValidationError):
        asked.append(call)
        raise
    if decision.type == "reject":
        return _refusal(call, decision.message)
    if decision.type == "respond":
        return ToolMessage(decision.message, tool_call_id=str(call["id"]), name=call["name"])
    if decision.type == "approve" or decision.edited_action is None:
        return call
    if decision.edited_action.name not in ("", call["name"]):
        return _refusal(call, f"the call was changed to one of {decision.edited_action.name!r}")
    return {**call, "args": decision.edited_action.args}


def noted(call: ToolCall, asked: ToolCall, message: ToolMessage) -> ToolMessage:
    """Say in a result that a person changed the arguments that the model had asked for."""
    if call["args"] == asked["args"]:
        return message
    said = EDITED.format(args=json.dumps(call["args"], ensure_ascii=False, default=str))
    content: Any = message.content
    if isinstance(content, str):
        return message.model_copy(update={"content": said + content})
    return message.model_copy(update={"content": [{"type": "text", "text": said}, *content]})


def question_in(value: Any) -> str:
    """Return what a person reads of a question that `approved` asks; empty for another one."""
    requests: Any = (
        cast("dict[str, Any]", value).get("action_requests") if isinstance(value, dict) else ()
    )
    return "; ".join(str(one.get("description", "")) for one in requests or ())


def refused_answer(error: BaseException) -> str:
    """Return what is wrong with a person's answer that was refused; empty for another error."""
    if not (isinstance(error, ValidationError) and is_invalid_resume(error)):
        return ""
    return str(error.errors(include_url=False)[0]["msg"]).removeprefix("Value error, ")


def _question(call: ToolCall) -> dict[str, Any]:
    given = json.dumps(call["args"], ensure_ascii=False, default=str)
    return {
        "action_requests": [
            {
                "name": call["name"],
                "args": call["args"],
                "description": f"The call {call['name']}({given}) waits for a person.",
            }
        ],
        "review_configs": [
            {
                "action_name": call["name"],
                "allowed_decisions": ["approve", "edit", "reject", "respond"],
            }
        ],
    }


def _refusal(call: ToolCall, reason: str) -> ToolMessage:
    said = f" The reason given: {reason.strip()}" if reason.strip() else ""
    return ToolMessage(
        REFUSED.format(reason=said),
        tool_call_id=str(call["id"]),
        name=call["name"],
        status="error",
    )


def _decision_in(given: bool | str) -> Any:
    """Return what a word says; what says neither yes nor no stays as it is."""
    text = ("yes" if given else "no") if isinstance(given, bool) else given.strip()
    if _YES.fullmatch(text):
        return {"type": "approve"}
    if found := _NO.fullmatch(text):
        return {"type": "reject", "message": found[1] or ""}
    return given
