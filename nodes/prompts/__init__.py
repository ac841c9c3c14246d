"""Prompts: one Markdown file per task, filled in by `render`."""

from functools import cache
from importlib.resources import files
from string import Template


@cache
def text_of(name: str) -> str:
    """Return the prompt `name` as it stands in its file."""
    return files("everlong.nodes.prompts").joinpath(f"{name}.md").read_text("utf-8").strip()


def render(name: str, **values: str) -> str:
    """Fill in the prompt `name`.

    Raises:
        ValueError: the prompt takes other values than those given.
    """
    template = Template(text_of(name))
    wanted = sorted(template.get_identifiers())
    if wanted != sorted(values):
        msg = f"prompt {name!r} takes {wanted}; got {sorted(values)}"
        raise ValueError(msg)
    return template.substitute(values)
