"""Who may do what on a server: each user, known by a bearer token, and only with what is theirs.

A thread, a run, a cron and an assistant are marked with whose they are, and sought with that mark,
so what is another's is not found (404). Of the store, a user reads what lies under the own id; the
routes write nothing, since a record that no code of ours wrote could forge a memory, undo what was
forgotten, or have a worker do what nobody said.

Without settings for it nobody is known. Then `langgraph dev` serves programs on its own machine, as
a development server does, and any other server refuses everything.
"""

import logging
from collections.abc import Mapping
from functools import cache
from typing import Any, cast

from langgraph_sdk import Auth

try:
    from starlette.exceptions import HTTPException

    from everlong.graph.bearer import (
        Keys,
        KeysUnavailableError,
        TokenRefusedError,
        identity_in,
        keys_of,
    )
except ModuleNotFoundError as error:
    msg = "a server's users need an extra: pip install 'everlong[server]'"
    raise ModuleNotFoundError(msg) from error
from everlong.graph.this_machine import is_of_this_machine
from everlong.nodes.forgetting import forgotten_user
from everlong.stores.namespaces import OWNER, asking, user_space
from everlong.stores.server import opened_saver, opened_store
from everlong.stores.settings import settings
from everlong.stores.tombstones import user_is_marked

log = logging.getLogger("everlong.auth")

HEALTH = "/health"
"""The one route of ours that asks nobody who they are."""
NOBODY = {"identity": "", "display_name": "", "is_authenticated": False}
SYSTEM = {"created_by": "system"}
"""In the metadata of the assistants that a server makes, one for each graph."""
NAMESPACE = "namespace"
PLACES = ("namespace_prefix", "prefix", NAMESPACE)
"""Where a request says what of the store it wants: the first two on aegra, which takes what a rule
returns, and puts it below the id as it is, `*` and all."""
MARKED = frozenset({"create", "create_run", "update"})
UNKNOWN_USERS = (
    "this server knows no users: it serves development on its own machine, and nothing else. "
    "Set EVERLONG_AUTH__SECRET, __PUBLIC_KEY or __JWKS_URL, and EVERLONG_AUTH__AUDIENCE."
)
NOBODY_KNOWN = "expected a header `Authorization: Bearer <token>`; got none"
HOW = {"WWW-Authenticate": "Bearer"}
READ_ONLY = (
    "expected a read; got a write. What is remembered changes by what is said in conversations; "
    "POST /memory/forget and DELETE /me erase."
)

auth = Auth()


@cache
def keys() -> Keys | None:
    """Return what tokens are checked with; None where no users are known."""
    return keys_of(settings().auth) if settings().auth.is_configured else None


if keys() is None:
    log.warning("No authentication is configured: %s", UNKNOWN_USERS)


@auth.authenticate
async def authenticate(
    headers: Mapping[Any, Any], scope: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return whose request it is; `scope` is there where the server gives it by its name.

    Raises:
        HTTPException: 401 without a valid token, 403 where no users are known, 503 where tokens
            cannot be checked now.
    """
    given = {_text(name).lower(): _text(value) for name, value in headers.items()}
    if scope is not None and scope.get("path") == HEALTH:
        return NOBODY
    known = keys()
    if known is None:
        if settings().is_development and is_of_this_machine(scope, given):
            return NOBODY
        raise Auth.exceptions.HTTPException(403, UNKNOWN_USERS)
    identity = await _identity(given.get("authorization", ""), known)
    return {"identity": identity, "display_name": identity, "is_authenticated": True}


async def _identity(authorization: str, known: Keys) -> str:
    scheme, _, token = authorization.partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise Auth.exceptions.HTTPException(401, NOBODY_KNOWN, HOW)
    try:
        return await identity_in(token.strip(), known, settings().auth)
    except TokenRefusedError as error:
        msg = f"expected a valid token; got one that is not: {error}"
        raise Auth.exceptions.HTTPException(401, msg, HOW) from error
    except KeysUnavailableError as error:
        log.exception("The keys at %s cannot be read", settings().auth.jwks_url)
        raise HTTPException(503, "tokens cannot be checked now; try again later") from error


@auth.on
async def others(ctx: Auth.types.AuthContext, value: Any) -> bool:  # noqa: ARG001 - as called
    """Refuse what none of the rules below is for."""
    return user_in(ctx) is None


@auth.on.threads
async def threads(ctx: Auth.types.AuthContext, value: Any) -> dict[str, str] | None:
    """Give each user their own threads, and the runs on them."""
    user_id = user_in(ctx)
    if user_id is None:
        return None
    if ctx.action == "create" or value.get("if_not_exists") == "create":
        await _refuse_taken(value, user_id, ctx.action)
    if ctx.action == "create_run":
        _refuse_other_user(value.get("kwargs"), user_id)
    if ctx.action == "delete" and value.get("run_id"):
        await _refuse_run_elsewhere(value)
    return await _owned(ctx, value, user_id)


@auth.on.crons
async def crons(ctx: Auth.types.AuthContext, value: Any) -> dict[str, str] | None:
    """Give each user their own crons; their runs are the user's."""
    user_id = user_in(ctx)
    if user_id is None:
        return None
    _refuse_other_user(value.get("payload"), user_id)
    return await _owned(ctx, value, user_id)


@auth.on.assistants
async def assistants(ctx: Auth.types.AuthContext, value: Any) -> Any:
    """Give each user the server's assistants to use, and their own to change."""
    user_id = user_in(ctx)
    if user_id is None:
        return None
    _refuse_other_user(value, user_id)
    owned = await _owned(ctx, value, user_id)
    if ctx.action in MARKED:
        value["metadata"]["created_by"] = "user"
    return {"$or": [owned, SYSTEM]} if ctx.action in ("read", "search") else owned


@auth.on.store
async def store(ctx: Auth.types.AuthContext, value: Any) -> Any:
    """Let each user read what lies under the own id."""
    user_id = user_in(ctx)
    if user_id is None:
        return None
    if ctx.action in ("put", "delete"):
        raise Auth.exceptions.HTTPException(403, READ_ONLY)
    own = user_space(user_id)
    place = next((one for one in PLACES if one in value), NAMESPACE)
    asked = tuple(value.get(place) or ())
    if own[: len(asked)] == asked:
        asked = own
    if asked[: len(own)] != own:
        msg = f"expected a namespace that begins with {list(own)}; got {list(asked)}"
        raise Auth.exceptions.HTTPException(404, msg)
    value[place] = asked
    return None if place == NAMESPACE else {place: list(asked)}


def user_in(ctx: Any) -> str | None:
    """Return whose request it is; None where no users are known.

    Raises:
        HTTPException: users are known, and this is none of them.
    """
    if keys() is None:
        return None
    if not ctx.user.is_authenticated or not ctx.user.identity:
        raise Auth.exceptions.HTTPException(401, NOBODY_KNOWN, HOW)
    asking.set(str(ctx.user.identity))
    return str(ctx.user.identity)


async def _owned(ctx: Auth.types.AuthContext, value: Any, user_id: str) -> dict[str, str]:
    """Mark what is written as the user's, whatever the client says, and return the mark."""
    if ctx.action in MARKED:
        await _refuse_forgotten(user_id)
        value["metadata"] = metadata = _mapping(value.get("metadata"))
        metadata[OWNER] = user_id
    return {OWNER: user_id}


async def _refuse_forgotten(user_id: str) -> None:
    """Refuse to write for a user who was forgotten; the server's tables would hold it."""
    opened = opened_store()
    if opened is not None and await user_is_marked(opened, user_id):
        raise Auth.exceptions.HTTPException(403, forgotten_user(user_id))


async def _refuse_taken(value: Any, user_id: str, action: str) -> None:
    """Refuse to make a thread of an id under which another's checkpoints are.

    The server's list may not know it: it is of another program on this database, or was lost.
    """
    thread_id, saver = value.get("thread_id"), opened_saver()
    if not thread_id or saver is None:
        return
    if await saver.is_of_others(str(thread_id), user_id):
        said = "is taken" if action == "create" else "not found"
        code = 409 if action == "create" else 404
        raise Auth.exceptions.HTTPException(code, f"thread {thread_id} {said}")


async def _refuse_run_elsewhere(value: Any) -> None:
    """Refuse to delete another thread's run; its checkpoints would go, whatever the server says."""
    saver = opened_saver()
    if saver is None:
        return
    if set(await saver.threads_of_run(str(value["run_id"]))) - {str(value.get("thread_id"))}:
        raise Auth.exceptions.HTTPException(404, "Not Found")


def _refuse_other_user(given: Any, user_id: str) -> None:
    """Refuse settings for another user: who sends them takes them for what they are not."""
    fields = _mapping(given)
    for place in (fields.get("context"), _mapping(fields.get("config")).get("configurable")):
        named = _mapping(place).get("user_id")
        if named not in (None, user_id):
            msg = f"`user_id`: expected none, or that of the token; got {named!r}"
            raise Auth.exceptions.HTTPException(403, msg)


def _mapping(given: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", given) if isinstance(given, dict) else {}


def _text(given: Any) -> str:
    return given.decode("latin-1") if isinstance(given, bytes) else str(given)
