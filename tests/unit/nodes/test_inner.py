"""Requests of our own: out of sight, bounded in time, tried again only where that may help."""

import time

import pytest
from langchain_core.messages import HumanMessage

from everlong.nodes import inner
from everlong.nodes.inner import ask
from provider_errors import ProviderError
from scripted_model import ScriptedModel

ASKED = [HumanMessage("Sum it up.")]


class Retrying(ScriptedModel):
    """A model whose client tries again by itself."""

    max_retries: int | None = 2


async def answer(model, seconds=10.0):
    return (await ask(model, ASKED, kind="summary", seconds=seconds)).text


@pytest.mark.parametrize(
    "error",
    [
        ProviderError("rate limited", 429),
        ProviderError("overloaded", 529),
        ConnectionError("closed"),
        RuntimeError("429 rate limit reached"),
    ],
    ids=str,
)
async def test_a_failure_that_may_pass_is_tried_again_twice(error):
    model = ScriptedModel(script=[error, error, "They spoke."])
    assert await answer(model) == "They spoke."
    for_ever = ScriptedModel(script=lambda _: error)
    with pytest.raises(type(error)):
        await answer(for_ever)
    assert len(for_ever.requests) == 3


@pytest.mark.parametrize(
    "error",
    [
        ProviderError("bad key", 401),
        ProviderError("no such model", 404),
        ProviderError("prompt is too long: 9000 tokens > 8000 maximum", 400),
        ProviderError("no credit", 429, "insufficient_quota"),
        ValueError("a bug"),
    ],
    ids=str,
)
async def test_a_failure_that_comes_again_is_not_tried_again(error):
    model = ScriptedModel(script=[error, "They spoke."])
    with pytest.raises(type(error)):
        await answer(model)
    assert len(model.requests) == 1


@pytest.mark.parametrize(("retries", "requests"), [(2, 1), (None, 1), (0, 3)])
async def test_a_client_that_tries_again_by_itself_is_left_to_it(retries, requests):
    error = ProviderError("rate limited", 429)
    model = Retrying(script=lambda _: error, max_retries=retries)
    for one in (model, model.bind_tools([])):
        model.requests.clear()
        with pytest.raises(ProviderError):
            await answer(one)
        assert len(model.requests) == requests


async def test_all_tries_together_have_the_time_of_one_request():
    model = ScriptedModel(script=lambda _: ProviderError("rate limited", 429))
    began = time.monotonic()
    with pytest.raises(TimeoutError):
        await answer(model, seconds=0.1)
    assert time.monotonic() - began < sum(inner.PAUSES_SECONDS)
    assert len(model.requests) == 1
