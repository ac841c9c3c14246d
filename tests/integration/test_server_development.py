"""A server that knows no users: for development, on its own machine."""

import subprocess
import sys
from uuid import uuid4

import httpx
import pytest
import yaml
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from langgraph_server import ROOT, LangGraphServer


def ask(server: LangGraphServer, method: str, path: str, body=None, **headers: str):
    return httpx.request(method, f"{server.url}{path}", json=body, headers=headers, timeout=30)


def test_it_says_at_its_start_that_it_knows_no_users(langgraph_server):
    said = langgraph_server.log_text()
    assert "No authentication is configured" in said
    assert "EVERLONG_AUTH__SECRET" in said


ELSEWHERE = [
    {"X-Forwarded-For": "203.0.113.7"},
    {"Host": "quick.tunnel.example"},
    {"Origin": "https://evil.example", "Content-Type": "text/plain"},
]


@pytest.mark.parametrize("headers", ELSEWHERE)
def test_who_comes_from_elsewhere_is_refused_and_told_why(langgraph_server, headers):
    for method, path in (
        ("POST", "/threads/search"),
        ("GET", "/memory?user_id=kim"),
        ("POST", "/memory/forget?user_id=kim"),
    ):
        came = ask(langgraph_server, method, path, {}, **headers)
        assert (came.status_code, "no users" in came.json()["detail"]) == (403, True)
    assert ask(langgraph_server, "POST", "/threads/search", {}).status_code == 200


@pytest.mark.parametrize("headers", ELSEWHERE)
def test_what_the_server_has_for_developers_is_not_there_for_who_comes_from_elsewhere(
    langgraph_server, headers
):
    debug = f"/internal/debug/thread/{uuid4()}"
    for method, path in (("GET", debug), ("POST", "/internal/truncate"), ("GET", "/deploy")):
        assert ask(langgraph_server, method, path, **headers).text == '{"detail":"Not Found"}'
    assert ask(langgraph_server, "GET", "/deploy").status_code == 200


def test_a_page_from_elsewhere_gets_no_socket(langgraph_server):
    made = ask(langgraph_server, "POST", "/threads", {}).json()
    url = f"{langgraph_server.url.replace('http', 'ws')}/threads/{made['thread_id']}/stream/events"
    with connect(url):
        pass
    with pytest.raises(InvalidStatus, match="403"), connect(url, origin="https://evil.example"):
        pass


async def test_whose_memory_it_is_the_query_says(begin, langgraph_server):
    thread = await begin("everlong", memory={"consolidate": "on_request"})
    await thread.say("Our customer code is ALPHA-9.")
    named = f"?user_id={thread.context['user_id']}"
    ((path, text),) = ask(langgraph_server, "GET", f"/memory{named}").json()["documents"].items()
    assert path.startswith("memory/")
    assert "ALPHA-9" in text
    for other in ("", "?user_id=", "?user_id=%20"):
        assert ask(langgraph_server, "GET", f"/memory{other}").status_code == 422
    gone = ask(langgraph_server, "DELETE", f"/me{named}").json()
    assert (gone["threads"], gone["left"]) == (1, 0)
    assert ask(langgraph_server, "GET", f"/memory{named}").json() == {"documents": {}}
    assert ask(langgraph_server, "GET", f"/threads/{thread.thread_id}").status_code == 404


def test_what_compose_asks_of_the_servers_health_is_answered(langgraph_server):
    api = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))["services"]["api"]
    check = api["healthcheck"]["test"][-1]
    for url, code in ((langgraph_server.url, 0), ("http://127.0.0.1:1", 1)):
        asked = check.replace("http://127.0.0.1:8000", url)
        came = subprocess.run([sys.executable, "-c", asked], capture_output=True, check=False)  # noqa: S603
        assert came.returncode == code, came.stderr


def test_only_the_pages_that_are_named_may_use_it_from_a_browser(langgraph_server):
    asked = {"Access-Control-Request-Method": "DELETE"}
    asked["Access-Control-Request-Headers"] = "authorization, content-type"
    for origin, allowed in (
        ("https://smith.langchain.com", True),
        ("http://localhost:3000", True),
        ("https://evil.example", False),
        ("http://localhost.evil.example", False),
    ):
        path = f"/threads/{uuid4()}"
        came = ask(langgraph_server, "OPTIONS", path, Origin=origin, **asked)
        assert (came.headers.get("access-control-allow-origin") == origin) == allowed
        assert (came.status_code == 200) == allowed
