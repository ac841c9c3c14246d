"""Whether a request comes from a program on this machine, and from no page of elsewhere."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from everlong.stores.settings import LOOPBACK

STUDIO = "https://smith.langchain.com"
"""The one page from elsewhere that may have a person's browser ask."""


def is_of_this_machine(scope: Mapping[str, Any] | None, headers: Mapping[str, str]) -> bool:
    """Tell who is on this machine and says so; `headers` by their names in lower case.

    Through a tunnel the host has another name. A browser says which page asks; those that ask
    without reading the answer, and those on a socket, it does not hold back by itself.
    """
    client = (scope or {}).get("client") or ("",)
    page = headers.get("origin", STUDIO)
    names = {client[0], _name_in(f"//{headers.get('host', '')}")}
    return names | ({_name_in(page)} if page != STUDIO else set()) <= LOOPBACK


def _name_in(address: str) -> str | None:
    try:
        return urlsplit(address).hostname
    except ValueError:
        return None
