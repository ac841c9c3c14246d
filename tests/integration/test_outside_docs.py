"""docs/tools.md and docs/retention.md are tried: snippets run, limits are those in force."""

import ast
import inspect
import json
import re
from pathlib import Path
from typing import Any

import pytest

from everlong.nodes.context import Context
from everlong.nodes.mcp_config import servers_in
from everlong.stores import record_retention, retention
from everlong.stores.checkpoint_pruning import LEAST_STEPS
from everlong.stores.settings import Settings, settings

ROOT = Path(__file__).parents[2]
TOOLS, RETENTION = (
    (ROOT / "docs" / name).read_text("utf-8") for name in ("tools.md", "retention.md")
)


def snippets(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", TOOLS, re.DOTALL | re.MULTILINE)


@pytest.fixture
def here(dsn, monkeypatch):
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("DATABASE_URL", dsn)
    settings.cache_clear()
    yield
    settings.cache_clear()


async def test_the_snippets_of_the_page_run_one_after_the_other(here):
    names: dict[str, Any] = {}
    for source in snippets("python"):
        compiled = compile(source, "tools.md", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        running = eval(compiled, names)  # noqa: S307 - our own page
        if inspect.iscoroutine(running):
            await running
    assert "done" in names


def test_the_pages_servers_are_read(monkeypatch):
    monkeypatch.setenv("CRM_TOKEN", "t")
    (given,) = snippets("json")
    files, crm = servers_in(json.loads(given), "mcp")
    assert (files.transport, crm.transport) == ("stdio", "streamable_http")


def test_each_setting_that_the_pages_name_is_there():
    of_process = {f"EVERLONG_{name.upper()}" for name in Settings.model_fields}
    of_run = {"EVERLONG_TRANSCRIPT_DAYS", "EVERLONG_MEMORY__LEDGER_DAYS"}
    of_run.add("EVERLONG_EVICTION__TOOL_CHARS")
    assert set(re.findall(r"EVERLONG_[A-Z_]+[A-Z]", TOOLS + RETENTION)) <= of_process | of_run
    for section, name in re.findall(r"`(memory|eviction)\.(\w+)`", TOOLS + RETENTION):
        assert name in Context.model_fields[section].annotation.model_fields


def test_the_limits_that_the_page_says_are_the_ones_in_force():
    context, process = Context(), Settings()
    for count, said in (
        (process.checkpoints_kept, "the newest {} of each namespace"),
        (LEAST_STEPS, "and {} steps more"),
        (process.checkpoint_days, "the newest one after {} days"),
        (context.transcript_days, "messages of a transcript | {} days"),
        (record_retention.KEPT_RECEIPTS, "at most {} of a thread"),
        (context.memory.ledger_days, "{} days, then in the archive"),
        (f"{retention.KEPT_ENTRIES:,}", "of more than {} of a user the oldest"),
        (record_retention.KEPT_VERSIONS, "the newest {} |"),
    ):
        assert said.format(count) in RETENTION
    assert process.tool_seconds == {"*": 300.0}
    assert (context.memory.archive_days, context.memory.archive_entries) == (0, 0)
