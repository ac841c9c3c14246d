"""A real MCP server for tests, over stdio or HTTP: it answers, fails, hangs and dies as told."""

import asyncio
import base64
import os
import sys
import time
from typing import Any

from mcp.server.fastmcp import Context, FastMCP, Image
from mcp.types import (
    AudioContent,
    BlobResourceContents,
    EmbeddedResource,
    ResourceLink,
    TextResourceContents,
)

app = FastMCP("trial", port=int(sys.argv[2]) if len(sys.argv) > 2 else 0, log_level="ERROR")
GIVEN_UP: list[float] = []
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@app.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@app.tool()
def whoami() -> str:
    """Say which process this is."""
    return str(os.getpid())


@app.tool()
def secret() -> str:
    """Say what is in the environment."""
    return f"{os.environ.get('TRIAL_KEY')} {os.environ.get('DATABASE_URL')}"  # noqa: TID251 - a process of its own


@app.tool()
def die(when: str = "now") -> str:
    """End in the middle of a call, or a moment after it."""
    if when == "now":
        os._exit(3)
    asyncio.get_running_loop().call_later(0.05, os._exit, 3)
    return "soon"


@app.tool()
async def hang(seconds: float = 600) -> str:
    """Wait, and answer other calls meanwhile."""
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        GIVEN_UP.append(seconds)
        raise
    return "at last"


@app.tool()
def given_up() -> str:
    """Say which calls of `hang` nobody waited for."""
    return str(GIVEN_UP)


@app.tool()
async def learn(name: str, context: Context[Any, Any, Any]) -> str:
    """Offer one tool more, and say so."""
    app.add_tool(lambda: f"I am {name}", name=name, description="Something that was learnt.")
    await context.session.send_tool_list_changed()
    return "learnt"


@app.tool()
async def learn_badly(context: Context[Any, Any, Any]) -> str:
    """Offer a tool whose schema refers to what is not there."""
    app.add_tool(lambda: "", name="broken", description="Nobody can call it.")
    broken: Any = app._tool_manager.get_tool("broken")
    broken.parameters = {"type": "object", "properties": {"a": {"$ref": "#/$defs/Nope"}}}
    await context.session.send_tool_list_changed()
    return "learnt"


@app.tool()
def for_whom(context: Context[Any, Any, Any]) -> str:
    """Say whose call this is."""
    meta = context.request_context.meta
    return str((meta.model_extra or {}).get("everlong/user_id") if meta else None)


@app.tool()
def block() -> str:
    """Wait, and answer nobody meanwhile."""
    time.sleep(600)
    return "at last"


@app.tool()
def boom(order: str) -> str:
    """Fail."""
    msg = f"there is no order {order}"
    raise ValueError(msg)


@app.tool()
def odd() -> str:
    """Return what no database holds."""
    return "a\x00b\u2028 夜莺 🦉"


@app.tool()
def huge(characters: int) -> str:
    """Return a long text."""
    return "heron " * (characters // 6)


@app.tool(structured_output=False)
def picture() -> list[object]:
    """Return a text and a picture."""
    return ["a pixel", Image(data=PIXEL, format="png")]


@app.tool(structured_output=False)
def sound() -> AudioContent:
    """Return a sound."""
    return AudioContent(type="audio", data="AAAA", mimeType="audio/wav")


@app.tool(structured_output=False)
def files() -> list[object]:
    """Return files: a link, a text, and one with its content."""
    text = TextResourceContents(uri="file:///srv/a.txt", mimeType="text/plain", text="the text")
    blob = BlobResourceContents(uri="file:///srv/a.pdf", mimeType="application/pdf", blob="AAAA")
    return [
        ResourceLink(
            type="resource_link", uri="https://example.test/a.png", name="a", mimeType="image/png"
        ),
        EmbeddedResource(type="resource", resource=text),
        EmbeddedResource(type="resource", resource=blob),
    ]


@app.tool()
def takes(config: str, runtime: str, callbacks: str) -> str:
    """Return arguments whose names mean something elsewhere."""
    return f"{config} {runtime} {callbacks}"


@app.tool(name="strange.name/here")
def strange() -> str:
    """Return something under a name that no provider takes."""
    return "strange"


if __name__ == "__main__":
    app.run("streamable-http" if sys.argv[1:2] == ["http"] else "stdio")
