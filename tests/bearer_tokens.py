"""Bearer tokens for tests, signed as a team's own application would sign them."""

import time
from typing import Any

import jwt

SECRET = "a shared secret of more than 32 bytes"  # noqa: S105 - of tests
AUDIENCE = "everlong"


def token(
    user_id: Any = "kim", *, key: Any = SECRET, algorithm: str = "HS256", **claims: Any
) -> str:
    """Return a token of a user; a claim that is None is left out."""
    given = {"sub": user_id, "aud": AUDIENCE, "exp": int(time.time()) + 600} | claims
    headers = {"kid": given.pop("kid")} if "kid" in given else None
    left = {name: value for name, value in given.items() if value is not None}
    return jwt.encode(left, key, algorithm, headers=headers)


def bearer(user_id: str = "kim") -> dict[str, str]:
    """Return the header of a user's requests."""
    return {"Authorization": f"Bearer {token(user_id)}"}
