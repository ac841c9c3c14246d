"""An MCP server over stdio: what a warehouse has, and reservations, which are for good."""

from mcp.server.fastmcp import FastMCP

app = FastMCP("stock", log_level="WARNING")
HELD = {"pallet": 12, "crate": 3}


@app.tool()
def level(item: str) -> str:
    """Say how many of an item are in stock."""
    if item not in HELD:
        msg = f"there is no {item!r}; there are {sorted(HELD)}"
        raise ValueError(msg)
    return f"{item}: {HELD[item]} in stock"


@app.tool()
def reserve(item: str, count: int) -> str:
    """Reserve items. It cannot be taken back."""
    if HELD.get(item, 0) < count:
        msg = f"only {HELD.get(item, 0)} of {item!r} are left"
        raise ValueError(msg)
    HELD[item] -= count
    return f"{count} of {item} reserved, {HELD[item]} left"


if __name__ == "__main__":
    app.run("stdio")
