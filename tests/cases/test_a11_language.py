"""A11: a summary is in the user's language, and nothing makes the assistant change its own."""

import re

import pytest

from everlong.nodes.prompts import text_of
from everlong.nodes.transcript import is_summary
from given import case, messages_of
from scripted_model import ScriptedModel, asks_for_summary

GIVEN = case("A11")
MESSAGES = messages_of(GIVEN["messages"])
SUMMARY = GIVEN["summary_model"][0]["text"]
ANSWER = GIVEN["agent_model"][0]["text"]
COPIED = ["2231", "Rua das Flores 18", "89,90"]
FRAMES = re.compile(r"\b(english|answer in|reply in|respond in|language)\b", re.IGNORECASE)


@pytest.fixture(params=["same model", "own model"])
async def talk(request, converse):
    def script(messages):
        return SUMMARY if asks_for_summary(messages) else ANSWER

    own = {"summary_model": ScriptedModel(script=[SUMMARY])}
    settings = GIVEN["settings"] | {"flush_before": False}
    begun = converse(
        model=ScriptedModel(script=script),
        compaction=settings,
        **(own if request.param == "own model" else {}),
    )
    await begun.seed(MESSAGES[:-1])
    await begun.send({"messages": [MESSAGES[-1]]})
    return begun


def summary_prompt(talk):
    model = talk.context.summary_model or talk.context.model
    (request,) = [r for r in model.requests if asks_for_summary(r)]
    return request[-1].text


async def test_the_summariser_is_told_to_write_in_the_users_language(talk):
    told = summary_prompt(talk)
    assert "in the language the user writes in" in told
    assert "whatever language tools and these lines use" in told
    assert "the same in every language; what stands under them is in the user's" in told
    assert not re.search(r"\b(in|to|into) English\b", told)


async def test_names_and_numbers_are_to_be_copied_as_they_are(talk):
    told = summary_prompt(talk)
    for what in ("names", "numbers", "dates", "amounts", "codes", "paths", "addresses"):
        assert what in told.partition("exactly as they are written")[0]
    assert "translate, round and shorten none" in told
    (summary,) = [m for m in await talk.messages() if is_summary(m)]
    assert all(name in summary.text for name in COPIED)


async def test_what_surrounds_the_summary_asks_for_no_language(talk):
    system, summary, *tail = talk.last_request
    assert SUMMARY in summary.text
    assert not FRAMES.search(summary.text.replace(SUMMARY, ""))
    assert not FRAMES.search(system.text)
    assert tail[-1].content == MESSAGES[-1].content
    assert (await talk.messages())[-1].text == ANSWER


def test_an_empty_section_needs_no_english_word():
    assert 'Write "-" under one that has nothing' in text_of("compact")
    assert '"None"' not in text_of("compact")
