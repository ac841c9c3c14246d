"""docs/moving.md names settings that there are: ours, langchain's and deepagents'."""

import inspect
import re
from collections.abc import Iterator

from deepagents.middleware.filesystem import FilesystemMiddleware
from deepagents.middleware.summarization import (
    TruncateArgsSettings,
    compute_summarization_defaults,
)
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from pydantic import BaseModel

from everlong.nodes.context import Context
from markdown_blocks import ROOT

TEXT = (ROOT / "docs" / "moving.md").read_text("utf-8")
NAME = re.compile(r"`(?:compaction\.|memory\.|eviction\.)?([a-z]+(?:_[a-z]+)+)(?::[^`]*)?`")
OTHERS = {"open_agent", "read_stored", "session_search", "session_history", "get_text_content"}
"""Names of ours in the tables that are no settings."""


def section(title: str) -> list[list[str]]:
    """Return the cells of the rows below a heading."""
    below = TEXT.partition(f"## {title}\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (.*) \|$", below, re.MULTILINE)
    return [[cell.strip() for cell in row.split(" | ")] for row in rows]


def fields_of(model: type[BaseModel]) -> Iterator[str]:
    for name, field in model.model_fields.items():
        yield name
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from fields_of(field.annotation)


def test_each_of_our_settings_in_the_tables_is_one():
    known = {*fields_of(Context), *OTHERS}
    titles = re.findall(r"^## (From .*)$", TEXT, re.MULTILINE)
    assert len(titles) == 4
    for title in titles:
        rows = section(title)
        assert len(rows) > 5
        for _, here, *_ in rows:
            assert {name for name in NAME.findall(here) if name not in known} == set(), here


def test_each_setting_of_langchains_middleware_has_its_row():
    told = " ".join(there for there, *_ in section("From langchain's SummarizationMiddleware"))
    takes = set(inspect.signature(SummarizationMiddleware).parameters)
    for name in takes - {"deprecated_kwargs"}:
        assert re.search(rf"`{name}\b", told), name
    assert inspect.signature(SummarizationMiddleware).parameters["trigger"].default is None
    trimmed = inspect.signature(SummarizationMiddleware).parameters["trim_tokens_to_summarize"]
    assert f"the last {trimmed.default:,}" in told


def test_what_deepagents_does_by_default_is_as_told():
    told = " ".join(there for there, *_ in section("From deepagents"))
    known = compute_summarization_defaults(
        FakeListChatModel(responses=[], profile={"max_input_tokens": 1_000})
    )
    unknown = compute_summarization_defaults(FakeListChatModel(responses=[]))
    assert (known["trigger"], known["keep"]) == (("fraction", 0.85), ("fraction", 0.1))
    assert (unknown["trigger"], unknown["keep"]) == (("tokens", 170_000), ("messages", 6))
    assert "85% of the window (170,000 tokens" in told
    assert "keep 10% (6 messages)" in told
    truncated = set(TruncateArgsSettings.__annotations__) - {"truncation_text"}
    assert all(f"`{name}`" in told for name in truncated)
    evicted = inspect.signature(FilesystemMiddleware).parameters["tool_token_limit_before_evict"]
    assert f"over {evicted.default:,} tokens" in told
