"""What a server offers beside its own routes: each user's memory, and an end to it.

Whose it is follows from the token, as in `graph/auth.py`; where no users are known, from `user_id`
in the query, as a run's from its context.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable
from contextlib import suppress
from typing import Any
from uuid import UUID

from langgraph_sdk import get_client
from langgraph_sdk.errors import NotFoundError
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from everlong.graph.agent import utc_now
from everlong.graph.auth import HEALTH
from everlong.graph.inputs import storable
from everlong.graph.this_machine import is_of_this_machine
from everlong.nodes.errors import InvalidInputError
from everlong.stores import erasure, forgetting, pages
from everlong.stores.matters import Matter
from everlong.stores.namespaces import OWNER
from everlong.stores.postgres import PostgresStore
from everlong.stores.server import opened_saver, opened_store
from everlong.stores.settings import settings
from everlong.stores.tombstones import UserForgottenError

log = logging.getLogger("everlong.http")

HEALTH_SECONDS = 3.0
ROWS_AT_ONCE = 100
MOST_BYTES = 16_000
DEVELOPERS = ("/internal/", "/deploy")
"""Routes of `langgraph dev` that ask nobody who they are: they show threads, empty the tables, and
start a deployment."""


async def health(_: Request) -> Response:
    """Say whether the database answers."""
    try:
        async with asyncio.timeout(HEALTH_SECONDS):
            await _store().aget(("health",), "none")
    except Exception:
        log.warning("The database does not answer", exc_info=True)
        return JSONResponse({"ok": False}, 503)
    return JSONResponse({"ok": True})


async def memory(request: Request) -> Response:
    """Return MEMORY.md and each day of the ledger."""
    found = await pages.read_all(_store(), _user_of(request))
    return JSONResponse({"documents": found})


async def forget(request: Request) -> Response:
    """Erase one thing that is known of the user; where it is not certain which, nothing."""
    user_id, what = _user_of(request), await _what(request)
    try:
        done = await forgetting.forget(_store(), user_id, what, at=_now(), saver=opened_saver())
    except UserForgottenError as error:
        raise HTTPException(410, "the user was forgotten") from error
    if done.is_done:
        return JSONResponse({"forgotten": _told(done.matters), "stays": _told(done.also)})
    said = "expected what names one thing; got what may mean any of these, or nothing"
    return JSONResponse(
        {"detail": said, "meant": _told(done.matters)}, 409 if done.matters else 404
    )


async def forget_user(request: Request) -> Response:
    """Erase everything of the user, here and in the server's own tables; the id is refused then."""
    user_id = _user_of(request)
    done = await erasure.forget_user(_store(), user_id, saver=opened_saver(), at=_now())
    await _delete_rows(user_id, done.threads)
    return JSONResponse({"records": done.records, "threads": len(done.threads), "left": done.left})


def _user_of(request: Request) -> str:
    user = request.scope.get("user")
    if user is not None and user.is_authenticated and user.identity:
        return str(user.identity)
    named = request.query_params.get("user_id", "")
    if settings().auth.is_configured or not settings().trust_context_user:
        raise HTTPException(401, "expected an authenticated user; got nobody")
    if not named.strip():
        raise HTTPException(422, "`user_id`: expected whose memory it is, in the query; got none")
    try:
        return storable("user_id", named)
    except InvalidInputError as error:
        raise HTTPException(422, str(error)) from error


async def _what(request: Request) -> str:
    try:
        given: Any = json.loads(await _body(request))
    except (ValueError, RecursionError):
        given = None
    what: Any = given.get("what") if isinstance(given, dict) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType] - JSON
    if not isinstance(what, str) or not what.strip():
        raise HTTPException(
            422, '`what`: expected words or a source, as {"what": "my phone number"}'
        )
    return what


async def _body(request: Request) -> bytes:
    """Return the body of a request that names one thing; more would keep the others waiting."""
    read = bytearray()
    async for part in request.stream():
        read += part
        if len(read) > MOST_BYTES:
            raise HTTPException(413, f"expected at most {MOST_BYTES:,} bytes; got more")
    return bytes(read)


def _store() -> PostgresStore:
    found = opened_store()
    if found is None:
        raise HTTPException(503, "the store is not open: `langgraph.json` must name it")
    return found


def _told(matters: tuple[Matter, ...]) -> list[dict[str, str]]:
    return [{"source": one.source, "text": one.text} for one in matters]


def _now() -> str:
    return utc_now().isoformat(timespec="milliseconds").replace("+00:00", "Z")


async def _delete_rows(user_id: str, thread_ids: tuple[str, ...]) -> None:
    """Delete what the server's own tables hold of the user: crons, assistants, threads and runs.

    One after the other: the development server drops the wrong row where two go at a time.
    """
    client: Any = get_client()  # inside this process, past the rules for users
    mark = {OWNER: user_id}
    for kind, key in (
        (client.crons, "cron_id"),
        (client.assistants, "assistant_id"),
        (client.threads, "thread_id"),
    ):
        tried = set[str]()
        while ids := await _ids_of(kind, key, mark) - tried:
            tried |= ids
            for one in ids:
                await _gone(kind.delete(one))
    for thread_id in filter(_is_uuid, thread_ids):
        await _gone(_delete_unmarked(client, thread_id))


async def _ids_of(kind: Any, key: str, mark: dict[str, str]) -> set[str]:
    return {row[key] for row in await kind.search(metadata=mark, limit=ROWS_AT_ONCE)}


async def _delete_unmarked(client: Any, thread_id: str) -> None:
    """Delete the row of a thread of the user's that was made when no users were known."""
    row = await client.threads.get(thread_id)
    if OWNER not in (row["metadata"] or {}):
        await client.threads.delete(thread_id)


async def _gone(deletion: Awaitable[Any]) -> None:
    with suppress(NotFoundError):
        await deletion


def _is_uuid(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True


def hide_developers_routes(inner: ASGIApp) -> ASGIApp:
    """Answer 404 on what `langgraph dev` serves to anybody, but to programs on its own machine.

    Where users are known, to these, too.
    """

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        path = str(scope.get("path", "")).removeprefix(scope.get("root_path", ""))
        if path.startswith(DEVELOPERS) and not _is_a_developers(scope):
            await JSONResponse({"detail": "Not Found"}, 404)(scope, receive, send)
        else:
            await inner(scope, receive, send)

    return app


def _is_a_developers(scope: Scope) -> bool:
    is_known = settings().auth.is_configured
    return not is_known and is_of_this_machine(scope, Headers(scope=scope))


app = Starlette(
    routes=[
        Route(HEALTH, health),
        Route("/memory", memory),
        Route("/memory/forget", forget, methods=["POST"]),
        Route("/me", forget_user, methods=["DELETE"]),
    ],
    middleware=[Middleware(hide_developers_routes)],
)
