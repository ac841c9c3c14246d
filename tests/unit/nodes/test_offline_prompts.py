"""Prompts that no careful caller sends, and texts made to be slow."""

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from everlong.nodes.offline import OfflineModel

MODEL = OfflineModel()


@pytest.mark.parametrize(
    "prompt",
    [
        [],
        [SystemMessage("Be kind.")],
        [HumanMessage("")],
        [HumanMessage([{"type": "image", "base64": "AAAA", "mime_type": "image/png"}])],
        [AIMessage("Hello.")],
        [ToolMessage("late", tool_call_id="gone")],
        [HumanMessage("a\x00b \ud83d c?")],
        [HumanMessage("<conversation>\n</conversation>")],
        [HumanMessage("<conversation>\nNO_REPLY\n</conversation>\nNO_REPLY")],
        [HumanMessage("<document>\n</document>\n<ledger>\n</ledger>")],
    ],
)
def test_an_odd_prompt_gets_an_answer(prompt: list[BaseMessage]) -> None:
    assert isinstance(MODEL._generate(prompt).generations[0].message, AIMessage)


@pytest.mark.parametrize(
    "piece",
    ["still are ", "is ", "现在还", "just say with by ", "请", "x", "and ", "，", "- ", "1.2."],
)
def test_a_repeated_piece_is_read_in_linear_time(piece: str) -> None:
    # Quadratic time would be minutes here.
    text = piece * (60_000 // len(piece))
    said = [HumanMessage("The port is 9580."), HumanMessage(f"{text}\n\nWhat is the port?")]
    assert MODEL.invoke(said).text
