"""Print rows, names with what they stand for, and data: the same way in every command."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rich.cells import cell_len

from everlong.graph.cli_receipts import GAP, table
from everlong.graph.terminal import out, put


def put_rows(rows: Sequence[Mapping[str, str]]) -> None:
    """Print a table where it fits or no terminal is; else each row in a few lines.

    The first two columns, an id and when it was, are the heading of the lines.
    """
    lines = table(rows)
    if not out.is_terminal or max(map(cell_len, lines)) <= out.width:
        for number, line in enumerate(lines):
            put(line, style="" if number else "bold")
        return
    for row in rows:
        (_, ident), (_, when), *rest = row.items()
        put(f"{GAP}{when}", lead=ident, lead_style="bold cyan", indent=GAP)
        put_fields(dict(rest))


def put_fields(fields: Mapping[str, str]) -> None:
    """Print names and what they stand for, in two columns."""
    cells = max(map(len, fields)) + len(GAP)
    for name, text in fields.items():
        put(text, lead=f"{GAP}{name:<{cells}}", lead_style="cyan", indent=GAP + " " * cells)


def put_json(value: Any) -> None:
    """Print data, indented."""
    out.file.write(json.dumps(value, ensure_ascii=False, indent=2) + "\n")
