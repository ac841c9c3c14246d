"""An OpenAI-compatible server for tests: real HTTP on 127.0.0.1, scripted answers.

    with OpenAIServer(window=8_000) as server:
        server.script(["Hello.", {"tool_calls": [{"name": "add", "args": {"a": 1}}]}])
        server.fail_next(429, times=2)

An answer is a text; or a mapping with `content`, `reasoning_content`, `tool_calls` (`name`, `args`
as a mapping or as raw text, `id`), `finish_reason`, `status` and `error` (refuse with them),
`error_after` (the stream says `content`, then the error) or `cut` (the connection breaks after
`content`); or a function of the request's body that returns one of these.
"""

import json
import socket
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from openai_answers import NO_RETRY, Answer, Body, completion, events, resolved
from openai_rules import (
    PrefixCache,
    RefusedError,
    as_bytes,
    check_messages,
    check_reasoning,
    check_window,
    tokens,
)


@dataclass
class Received:
    """One request, and what became of it."""

    body: Body
    headers: dict[str, str]
    status: int = 0
    """0 until it is answered."""
    usage: dict[str, Any] = field(default_factory=dict[str, Any])


class OpenAIServer:
    """`/v1/chat/completions` in a background thread; a context manager.

    An error of a scripted function is raised when the server closes.
    """

    def __init__(
        self, *, window: int = 128_000, key: str = "test-key", block_tokens: int = 64
    ) -> None:
        self.window = window
        self.key = key
        self.usage_shape: str = "openai"
        """`openai`, `deepseek` (its own names for cached tokens) or `none`."""
        self.wants_reasoning = False
        """Like DeepSeek: an assistant message with calls must bring its `reasoning_content`."""
        self.responder: Answer | None = None
        """What answers when the script has ended; none: status 500."""
        self.requests: list[Received] = []
        self.errors: list[BaseException] = []
        self.cache = PrefixCache(block_tokens)
        self.live: set[socket.socket] = set()
        self.connections = 0
        """How many were opened so far."""
        self._script: list[Answer] = []
        self._failures: list[RefusedError] = []
        self._lock = threading.Lock()
        self._http = _Http(("127.0.0.1", 0), _Handler)
        self._http.owner = self
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        """The base URL that a client is given."""
        return f"http://127.0.0.1:{self._http.server_port}/v1"

    def script(self, answers: Sequence[Answer]) -> None:
        """Answer the next requests with these, in order."""
        self._script.extend(answers)

    def fail_next(
        self,
        status: int,
        times: int = 1,
        *,
        message: str = "scripted failure",
        code: str | None = None,
        retry: bool = True,
    ) -> None:
        """Refuse the next `times` requests; the client may try again after a millisecond."""
        headers = {"retry-after-ms": "1"} if retry else NO_RETRY
        for _ in range(times):
            failure = RefusedError(message, status=status, code=code, headers=headers)
            self._failures.append(failure)

    def answer(self, path: str, received: Received) -> dict[str, Any]:
        """Check the request like the provider, and return its answer with `usage`.

        Raises:
            RefusedError: it gets an error instead.
        """
        body = received.body
        with self._lock:
            self.requests.append(received)
            if path != "/v1/chat/completions":
                msg = f"Invalid URL (POST {path})"
                raise RefusedError(msg, status=404)
            if received.headers.get("authorization") != f"Bearer {self.key}":
                msg = "Incorrect API key provided."
                raise RefusedError(msg, status=401, code="invalid_api_key")
            if self._failures:
                raise self._failures.pop(0)
            check_messages(body.get("messages"))
            if self.wants_reasoning:
                check_reasoning(body["messages"])
            prompt, cached, chain = self.cache.count(body)
            room = body.get("max_completion_tokens") or body.get("max_tokens") or 0
            check_window(prompt, room, self.window)
            scripted = self._script.pop(0) if self._script else self.responder
        answer = resolved(scripted, body)
        received.usage = self._usage(prompt, cached, answer)
        with self._lock:
            self.cache.keep(chain)
        return answer | {"usage": received.usage}

    def _usage(self, prompt: int, cached: int, answer: Mapping[str, Any]) -> dict[str, Any]:
        if self.usage_shape == "none":
            return {}
        output = tokens(as_bytes(answer.get("content"), answer.get("tool_calls")))
        usage: dict[str, Any] = {
            "prompt_tokens": prompt,
            "completion_tokens": output,
            "total_tokens": prompt + output,
        }
        if self.usage_shape == "deepseek":
            hits = {"prompt_cache_hit_tokens": cached, "prompt_cache_miss_tokens": prompt - cached}
            return usage | hits
        return usage | {"prompt_tokens_details": {"cached_tokens": cached}}

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._http.shutdown()
        for connection in list(self.live):
            _hang_up(connection)
        until = time.monotonic() + 2
        while self.live and time.monotonic() < until:
            time.sleep(0.005)
        self._http.server_close()
        self._thread.join()
        if self.errors and error is None:
            raise self.errors[0]


def _hang_up(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # the other side was faster


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    owner: OpenAIServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Do not print: a client that goes away is no error, and others are kept in `errors`."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server: _Http  # pyright: ignore[reportIncompatibleVariableOverride] - it serves no other

    def setup(self) -> None:
        super().setup()
        self.server.owner.live.add(self.connection)
        self.server.owner.connections += 1

    def finish(self) -> None:
        try:
            super().finish()
        finally:
            self.server.owner.live.discard(self.connection)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base's name
        """Keep the test's output clean."""

    def do_POST(self) -> None:
        owner = self.server.owner
        raw = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        received = Received(json.loads(raw or b"{}"), headers)
        try:
            answer = owner.answer(self.path, received)
        except RefusedError as refusal:
            received.status = refusal.status
            self._send_json(refusal.status, {"error": refusal.error}, refusal.headers)
            return
        except BaseException as error:  # noqa: BLE001 - the test hears of it when the server closes
            owner.errors.append(error)
            self._send_json(500, {"error": {"message": repr(error)}}, NO_RETRY)
            return
        received.status = 200
        if received.body.get("stream"):
            self._send_events(events(received.body, answer, len(owner.requests)), answer)
        else:
            self._send_json(200, completion(received.body, answer, len(owner.requests)), {})

    def _send_json(self, status: int, document: Any, headers: Mapping[str, str]) -> None:
        data = json.dumps(document).encode()
        self.send_response(status)
        sent = {"Content-Type": "application/json", "Content-Length": str(len(data))}
        for name, value in (sent | dict(headers)).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)
        self.wfile.flush()

    def _send_events(self, events: Iterator[Any], answer: Mapping[str, Any]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in events:
            text = event if isinstance(event, str) else json.dumps(event)
            data = f"data: {text}\n\n".encode()
            self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
            self.wfile.flush()
        if answer.get("cut"):
            self.close_connection = True
            _hang_up(self.connection)
            return
        self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()
