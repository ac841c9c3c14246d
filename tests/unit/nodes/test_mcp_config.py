"""MCP servers in settings: the usual form, and what is said where it is not that."""

import json

import pytest

from everlong.nodes import mcp_config
from everlong.nodes.errors import ToolsError
from everlong.nodes.mcp_config import servers_in

SECRET = "sk-7d1f-very-secret"  # noqa: S105 - of a test
FULL = {
    "mcpServers": {
        "files": {"command": "npx", "args": ["-y", "${PACKAGE}"], "env": {"KEY": "${KEY:-none}"}},
        "crm": {
            "type": "http",
            "url": "https://crm.example.test/mcp?key=s3cret",
            "headers": {"Authorization": "Bearer ${TOKEN}"},
            "alwaysAllow": ["search"],
        },
        "old": {"type": "sse", "url": "http://127.0.0.1:1/sse"},
        "off": {"command": "nothing", "disabled": True},
    }
}


@pytest.fixture(autouse=True)
def variables(monkeypatch):
    monkeypatch.setenv("PACKAGE", "server-files")
    monkeypatch.setenv("TOKEN", SECRET)


@pytest.fixture
def config_file(tmp_path):
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps(FULL), "utf-8")
    return path


def test_json_a_file_and_a_mapping_say_the_same(config_file):
    given = (json.dumps(FULL), str(config_file), config_file, FULL, FULL["mcpServers"])
    found = [servers_in(one, "EVERLONG_MCP") for one in given]
    assert all(one == found[0] for one in found)
    files, crm, old = found[0]
    assert (files.name, files.transport, files.args) == ("files", "stdio", ("-y", "server-files"))
    assert files.env == {"KEY": "none"}
    assert (crm.transport, crm.headers) == (
        "streamable_http",
        {"Authorization": f"Bearer {SECRET}"},
    )
    assert old.transport == "sse"


def test_no_secret_is_shown_and_none_stays_in_a_text():
    _, crm, _ = servers_in(FULL, "EVERLONG_MCP")
    assert SECRET not in repr(crm)
    assert "s3cret" not in repr(crm)
    said = crm.without_secrets(f"401 for https://crm.example.test/mcp?key=s3cret with {SECRET}")
    assert said == "401 for https://crm.example.test/mcp*** with ***"
    given = {"url": "https://kim:pass-word@shop.test/mcp"}, {"command": "x", "args": ["${TOKEN}"]}
    by_url, by_argument = servers_in({str(at): one for at, one in enumerate(given)}, "mcp")
    assert SECRET not in repr(by_argument)
    assert by_url.without_secrets(f"404 for {by_url.url}") == "404 for https://***@shop.test/mcp"


def of(**entry):
    return {"shop": entry}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("nowhere.json", "nowhere.json cannot be read"),
        ('{"shop": ', "JSON; Expecting value: line 1"),
        ("[1]", "an object of servers by name; got list"),
        ({"mcpServers": []}, "an object of servers by name; got list"),
        ({"shop": "npx"}, "shop.*valid dictionary"),
        (of(), "shop.*`command` and no `url`"),
        (of(command="x", url="http://127.0.0.1/mcp"), "shop.*`url` and no `command`"),
        (of(command=["x"]), "shop.*`command`.*valid string"),
        (of(command="x", env={"KEY": 7}), r"shop.*`env.KEY`.*valid string"),
        (of(type="telepathy", url="x"), "shop.*`type` to be one of .*telepathy"),
        (of(url="example"), "shop.*`url` to be one"),
        (of(command="x", sendUser="yes"), "shop.*`sendUser`.*valid boolean"),
        (of(command="x", args=["${NOT_SET}"]), "shop.*the variable NOT_SET"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(given, said):
    with pytest.raises(ToolsError, match=f"(?s)^`EVERLONG_MCP.*{said}"):
        servers_in(given, "EVERLONG_MCP")


@pytest.mark.parametrize(
    "given",
    [
        '{"shop": {"command": 1, "env": {"KEY": "%s"}}}',
        '[{"env": {"KEY": "%s"}}',
        '{"shop": {"command": "x", "env": {"KEY": "%s", "N": 1}}}',
        '{"shop": {"url": "%s"}}',
    ],
)
def test_no_error_repeats_what_the_settings_hold(given):
    with pytest.raises(ToolsError) as refused:
        servers_in(given % SECRET, "EVERLONG_MCP")
    assert SECRET not in str(refused.value)


def test_without_the_extra_it_is_named_and_nothing_configured_needs_none(monkeypatch):
    monkeypatch.setattr(mcp_config, "find_spec", lambda _: None)
    assert servers_in({}, "EVERLONG_MCP") == []
    with pytest.raises(ToolsError, match=r"^`EVERLONG_MCP`.*pip install 'everlong\[mcp\]'"):
        servers_in(FULL, "EVERLONG_MCP")
