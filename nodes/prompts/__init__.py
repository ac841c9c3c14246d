"""Prompts: one Markdown file per task, filled in by `render`."""

from importlib.resources import files
from string import Template

# Read with the module: a node that reads files would hold up every other run.
_TEXTS = {
    file.name.removesuffix(".md"): file.read_text("utf-8").strip()
    for file in files("everlong.nodes.prompts").iterdir()
    if file.name.endswith(".md")
}


def text_of(name: str) -> str:
    """Return the prompt `name` as it stands in its file."""
    return _TEXTS[name]


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
