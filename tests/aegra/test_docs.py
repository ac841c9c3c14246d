"""docs/aegra.md, as a reader would take it, and what compose asks."""

import asyncio
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
import yaml
from langgraph_sdk.errors import NotFoundError

from aegra_server import DEPLOYMENT
from bearer_tokens import SECRET
from langgraph_server import ROOT, _environment

TEXT = (ROOT / "docs" / "aegra.md").read_text("utf-8")
PYTHON = "\n".join(re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL))
DEFAULT = re.compile(r"`([A-Z_]{8,})` \((\d+)\)")


async def test_the_client_of_the_guide_talks_and_deletes(pair, monkeypatch, capsys):
    monkeypatch.setenv("EVERLONG_AUTH__SECRET", SECRET)
    names = {}
    code = PYTHON.replace("http://127.0.0.1:2026", pair.servers[1].url).replace('"kim"', '"dora"')
    exec(code, names)  # noqa: S102 - ours
    await names["talk"]()
    assert "messages [{'content': 'Confirmed.'" in capsys.readouterr().out
    async with names["client_of"]("dora") as client:
        (thread,) = await client.threads.search()
        await names["delete_threads"]("dora")
        with pytest.raises(NotFoundError):
            await client.threads.get(thread["thread_id"])
    await asyncio.to_thread(forget, "dora", pair.dsn)


def forget(user_id, dsn):
    (line,) = re.findall(r"^\.venv-aegra/bin/(everlong forget-user) kim$", TEXT, re.MULTILINE)
    program, command = line.split()
    done = subprocess.run(  # noqa: S603 - our own
        [Path(sys.executable).with_name(program), command, user_id, "--yes"],
        env=_environment() | {"DATABASE_URL": dsn},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"Nothing of {user_id} is left." in done.stdout


def test_what_the_guide_says_of_aegras_defaults_is_so():
    told = {name: value for name, value in DEFAULT.findall(TEXT) if not name.startswith("EVERLONG")}
    assert len(told) == 6
    fields = import_module("aegra_api.settings").WorkerSettings.model_fields
    assert {name: f"{fields[name].default:g}" for name in told} == told


def test_the_guide_starts_a_server_as_the_tests_do(pair):
    program, *given = pair.servers[0].process.command
    options = [word for word in given if word.startswith("--") or word == "serve"]
    (line,) = re.findall(r"^\.venv-aegra/bin/(aegra serve .*)$", TEXT, re.MULTILINE)
    assert [
        word for word in line.split()[1:] if word.startswith("--") or word == "serve"
    ] == options
    assert program.endswith("/aegra")


def test_what_compose_asks_of_a_servers_health_is_answered(pair):
    services = yaml.safe_load((DEPLOYMENT / "compose.aegra.yaml").read_text("utf-8"))["services"]
    check = services["aegra"]["healthcheck"]["test"][-1]
    for url, code in ((pair.servers[0].url, 0), ("http://127.0.0.1:1", 1)):
        asked = check.replace("http://127.0.0.1:2026", url)
        came = subprocess.run([sys.executable, "-c", asked], capture_output=True, check=False)  # noqa: S603
        assert came.returncode == code, came.stderr
