"""Who is let in, and what the rules make of a request, in the shapes that servers give them."""

from types import SimpleNamespace
from typing import Any

import pytest
from langgraph.runtime import Runtime, ServerInfo
from langgraph_sdk import Auth
from starlette.exceptions import HTTPException

from bearer_tokens import AUDIENCE, SECRET, bearer, token
from everlong.graph import auth
from everlong.nodes.context import Context, user_of
from everlong.nodes.errors import InvalidInputError, MissingUserError
from everlong.stores.settings import environment, settings

REFUSED = Auth.exceptions.HTTPException
LOCAL = {"client": ("127.0.0.1", 5), "path": "/threads"}
HOST = {b"host": b"localhost:2024"}


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch):
    """Set the process's environment, and let the next reader see it."""

    def give(**variables: str) -> None:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        _forget_settings()

    yield give
    _forget_settings()


def _forget_settings() -> None:
    for known in (settings, environment, auth.keys):
        known.cache_clear()


@pytest.fixture
def users(given):
    given(EVERLONG_AUTH__SECRET=SECRET, EVERLONG_AUTH__AUDIENCE=AUDIENCE)


def asked(resource: str, action: str, identity: str = "kim", *, known: bool = True) -> Any:
    user: Any = SimpleNamespace(identity=identity, is_authenticated=known)
    return Auth.types.AuthContext(
        user=user,
        permissions=[],
        resource=resource,  # pyright: ignore[reportArgumentType]
        action=action,  # pyright: ignore[reportArgumentType]
    )


@pytest.mark.parametrize("client", ["127.0.0.1", "::1"])
@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:2024", "[::1]:2024"])
async def test_without_users_the_development_server_serves_its_own_machine(given, client, host):
    given(LANGSMITH_LANGGRAPH_API_VARIANT="local_dev")
    for page in (None, "http://localhost:3000", "http://[::1]:3000", "https://smith.langchain.com"):
        headers = {b"Host": host.encode()} | ({b"Origin": page.encode()} if page else {})
        came = await auth.authenticate(headers, LOCAL | {"client": (client, 5)})
        assert (came["identity"], came["is_authenticated"]) == ("", False)


@pytest.mark.parametrize(
    ("variant", "headers", "scope"),
    [
        ("", HOST, LOCAL),
        ("licensed", HOST, LOCAL),
        ("local_dev", HOST, LOCAL | {"client": ("192.168.1.9", 5)}),
        ("local_dev", HOST, LOCAL | {"client": None}),
        ("local_dev", HOST, None),
        ("local_dev", {b"host": b"quick.tunnel.example"}, LOCAL),
        ("local_dev", {b"host": b"localhost.evil.example"}, LOCAL),
        ("local_dev", {b"host": b"[::1"}, LOCAL),
        ("local_dev", HOST | {b"origin": b"https://evil.example"}, LOCAL),
        ("local_dev", HOST | {b"origin": b"https://smith.langchain.com.evil.example"}, LOCAL),
        ("local_dev", HOST | {b"origin": b"null"}, LOCAL),
        ("local_dev", {}, LOCAL),
    ],
)
async def test_without_users_nobody_else_is_served_and_is_told_why(given, variant, headers, scope):
    given(LANGSMITH_LANGGRAPH_API_VARIANT=variant)
    with pytest.raises(REFUSED, match="EVERLONG_AUTH__SECRET") as refused:
        await auth.authenticate(headers, scope)
    assert refused.value.status_code == 403


@pytest.mark.usefixtures("users")
@pytest.mark.parametrize(
    "headers",
    [
        {b"authorization": b"Bearer " + token().encode()},
        {"Authorization": f"bearer  {token()} "},
        {"AUTHORIZATION": f"BEARER {token()}"},
    ],
)
async def test_a_token_is_found_in_the_headers_of_either_server(headers):
    came = await auth.authenticate(headers)
    assert (came["identity"], came["is_authenticated"]) == ("kim", True)


@pytest.mark.usefixtures("users")
@pytest.mark.parametrize(
    ("headers", "why"),
    [
        ({}, "got none"),
        ({"authorization": ""}, "got none"),
        ({"authorization": "Bearer"}, "got none"),
        ({"authorization": f"Basic {token()}"}, "got none"),
        ({"authorization": token()}, "got none"),
        ({"authorization": f"Bearer {token(exp=1)}"}, "has expired"),
        ({"authorization": f"Bearer {token()} {token()}"}, "cannot be read"),
        ({"x-auth-scheme": "langsmith", "x-user-id": "kim", "host": "localhost"}, "got none"),
    ],
)
async def test_nobody_is_let_in_without_a_valid_token_from_wherever(headers, why):
    with pytest.raises(REFUSED, match=why) as refused:
        await auth.authenticate(headers, LOCAL)
    assert refused.value.status_code == 401


async def test_keys_that_cannot_be_read_are_the_servers_trouble(given):
    given(EVERLONG_AUTH__JWKS_URL="http://127.0.0.1:1/jwks", EVERLONG_AUTH__AUDIENCE=AUDIENCE)
    with pytest.raises(HTTPException, match="try again later") as refused:
        await auth.authenticate(bearer())
    assert refused.value.status_code == 503


@pytest.mark.usefixtures("users")
@pytest.mark.parametrize("metadata", [None, {}, {"everlong_owner": "bob", "note": 1}])
async def test_what_is_written_is_marked_whatever_the_client_says(metadata):
    for resource, action in (("threads", "create"), ("threads", "update"), ("crons", "update")):
        value: dict[str, Any] = {"metadata": dict(metadata) if metadata is not None else None}
        rule = getattr(auth, resource)
        assert await rule(asked(resource, action), value) == {"everlong_owner": "kim"}
        assert value["metadata"]["everlong_owner"] == "kim"


@pytest.mark.usefixtures("users")
@pytest.mark.parametrize("known", [{"identity": ""}, {"known": False}])
@pytest.mark.parametrize("rule", ["threads", "crons", "assistants", "store", "others"])
async def test_where_users_are_known_nobody_else_reaches_anything(rule, known):
    with pytest.raises(REFUSED) as refused:
        await getattr(auth, rule)(asked("threads", "read", **known), {})
    assert refused.value.status_code == 401


@pytest.mark.usefixtures("users")
async def test_what_has_no_rule_is_refused():
    assert await auth.others(asked("threads", "read"), {}) is False


@pytest.mark.parametrize("rule", ["threads", "crons", "assistants", "store"])
async def test_without_users_no_rule_holds_anything_back(rule):
    value = {"namespace": ("users", "bob"), "context": {"user_id": "bob"}}
    assert await getattr(auth, rule)(asked(rule, "create", known=False), value) is None
    assert value["namespace"] == ("users", "bob")


def runtime(user_id: str | None, identity: str | None = None, graph_id: str = "everlong") -> Any:
    user: Any = SimpleNamespace(identity=identity, is_authenticated=True)
    info = ServerInfo(assistant_id="", graph_id=graph_id, user=None if identity is None else user)
    return Runtime(context=Context(user_id=user_id), server_info=info)


def test_whose_run_it_is_follows_from_whom_the_server_has_authenticated():
    assert user_of(runtime(None, "kim")) == "kim"
    assert user_of(runtime("kim", "kim")) == "kim"
    with pytest.raises(
        InvalidInputError, match="expected none, or who is authenticated; got 'bob'"
    ):
        user_of(runtime("bob", "kim"))


def test_a_cron_that_nobody_made_is_whose_its_context_says():
    assert user_of(runtime("kim", "")) == "kim"
    with pytest.raises(MissingUserError):
        user_of(runtime(None, ""))


@pytest.mark.usefixtures("users")
def test_in_a_server_that_knows_its_users_the_context_names_nobody():
    with pytest.raises(MissingUserError, match="got None"):
        user_of(runtime("kim"))
    assert user_of(Runtime(context=Context(user_id="kim"))) == "kim", "a program's own call"
