"""Where each user's records are: the only place that spells an id into a namespace.

Ids are compared code point by code point: `Kïm` in its two Unicode spellings is two users, and
`42` is a text; a number is refused. An id becomes one label, and back: letters and digits of any
script and `- _ @ +` stay, all else is `~` and two hexadecimal digits for each UTF-8 byte. So no
label holds a `.`, which parts labels, or a `*`, which matches any.
"""

import hashlib
import re
from contextvars import ContextVar

ROOT = "users"
OWNER = "everlong_owner"
"""In the metadata of a checkpoint, or of a server's thread: whose it is, from its first step on."""
asking: ContextVar[str] = ContextVar("everlong_asking", default="")
"""Whose request a server works on; empty, where it has not found out."""
LABEL_BYTES = 800
"""Longest label: three of them and a key fit in the 2,700 bytes of a Postgres index row."""
KEY_BYTES = 64
_ESCAPED = re.compile(r"[^\w@+-]")
_ESCAPES = re.compile(r"(?:~[0-9a-f]{2})+")


def label(raw: str) -> str:
    """Spell an id as one label of a namespace.

    Raises:
        ValueError: the id is empty, or its label longer than 800 bytes.
    """
    if not raw:
        msg = "expected an id of at least one character; got ''"
        raise ValueError(msg)
    spelled = _spelled(raw)
    size = len(spelled.encode())
    if size > LABEL_BYTES:
        msg = (
            f"expected an id of at most {LABEL_BYTES} bytes; got {size} ({len(raw)} characters, "
            f"beginning {raw[:20]!r}). Choose a shorter id."
        )
        raise ValueError(msg)
    return spelled


def raw(label: str) -> str:
    """Return the id that a label spells.

    Raises:
        ValueError: no id is spelled so.
    """
    found = _ESCAPES.sub(_unescaped, label)
    if not found or _spelled(found) != label:
        msg = f"expected a label as `label` spells it; got {label!r}"
        raise ValueError(msg)
    return found


def key(raw: str) -> str:
    """Spell an id that others choose as a key: readable where it is short, else its hash.

    Never too long, and different for different ids; not to be spelled back.
    """
    spelled = _spelled(raw)
    if raw and len(spelled.encode()) <= KEY_BYTES:
        return spelled
    return f"~~{hashlib.sha256(raw.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


def user_space(user_id: str) -> tuple[str, str]:
    """Return the namespace of all of a user's records.

    Raises:
        ValueError: the user id is blank, or too long.
    """
    if not user_id.strip():
        msg = f"`user_id`: expected who the records belong to; got {user_id!r}"
        raise ValueError(msg)
    return (ROOT, label(user_id))


def space(user_id: str, kind: str, *rest: str) -> tuple[str, ...]:
    """Return the namespace of a user's records of one kind.

    Raises:
        ValueError: the user id is blank, or an id is too long.
    """
    return (*user_space(user_id), kind, *(label(one) for one in rest))


def _spelled(raw: str) -> str:
    return _ESCAPED.sub(_escaped, raw)


def _escaped(found: re.Match[str]) -> str:
    return "".join(f"~{byte:02x}" for byte in found[0].encode("utf-8", "surrogatepass"))


def _unescaped(found: re.Match[str]) -> str:
    return bytes.fromhex(found[0].replace("~", "")).decode("utf-8", "surrogatepass")
