"""Whom a bearer token speaks for: a JWT, held against the keys that the settings name."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from everlong.stores.namespaces import label
from everlong.stores.settings import AuthSettings
from everlong.stores.text import clean_text

PUBLISHED = ("ES256", "EdDSA", "RS256")
BY_CURVE = {"secp256r1": "ES256", "secp384r1": "ES384", "secp521r1": "ES512"}
KEYS_SECONDS = 5.0
"""How long the published keys may take to come; a request waits twice as long for its turn."""
AGAIN_SECONDS = 30.0
"""Between two readings of them for the sake of a key that they lack."""
UNREADABLE = (TimeoutError, ValueError, jwt.PyJWKClientConnectionError, jwt.PyJWKSetError)
"""No answer from where the keys are published, or one that is no set of keys."""
REASONS: Sequence[tuple[type[Exception], str]] = (
    (jwt.ExpiredSignatureError, "it has expired"),
    (jwt.ImmatureSignatureError, "it is not valid yet"),
    (jwt.InvalidIssuedAtError, "it is not valid yet"),
    (jwt.InvalidSignatureError, "its signature is not by the key of this server's users"),
    (jwt.InvalidAlgorithmError, "its algorithm is not accepted"),
    (jwt.InvalidAudienceError, "it is for another audience"),
    (jwt.InvalidIssuerError, "it is by another issuer"),
    (jwt.PyJWKClientError, "its key is not known"),
)
"""What is said of a token that is refused; of any other, that it cannot be read."""


class TokenRefusedError(Exception):
    """The token speaks for nobody; the text says why."""


class KeysUnavailableError(Exception):
    """The published keys cannot be read now, so no token can be checked."""


@dataclass(frozen=True, kw_only=True)
class Keys:
    """What tokens are checked with."""

    algorithms: Sequence[str]
    find: Callable[[str], Awaitable[Any]]
    """Return the key for a token."""


def keys_of(settings: AuthSettings) -> Keys:
    """Return the keys that the settings name.

    Raises:
        ValueError: the public key cannot be read, or not used.
    """
    if secret := settings.secret.get_secret_value():
        return _fixed(secret, settings.algorithms or {"HS256"})
    if settings.public_key:
        key = _public_key(settings.public_key)
        return _fixed(key, settings.algorithms or {_algorithm_of(key)})
    algorithms = sorted(settings.algorithms or PUBLISHED)
    return Keys(algorithms=algorithms, find=_published(settings.jwks_url))


async def identity_in(token: str, keys: Keys, settings: AuthSettings) -> str:
    """Return whom the token speaks for: its `sub`, once all else about it is right.

    Raises:
        TokenRefusedError: it is no token for this server, or no longer.
        KeysUnavailableError: the published keys cannot be read now.
    """
    try:
        claims = jwt.decode(
            token,
            await _found(keys, token),
            algorithms=list(keys.algorithms),
            audience=settings.audience,
            issuer=settings.issuer or None,
            leeway=settings.leeway_seconds,
            options={"require": ["exp", "sub"], "enforce_minimum_key_length": True},
        )
    except jwt.MissingRequiredClaimError as error:
        msg = f"it has no `{error.claim}`"
        raise TokenRefusedError(msg) from error
    except jwt.PyJWTError as error:
        said = [reason for kind, reason in REASONS if isinstance(error, kind)]
        raise TokenRefusedError(said[0] if said else "it cannot be read") from error
    return _id_of(claims["sub"])


async def _found(keys: Keys, token: str) -> Any:
    try:
        return await keys.find(token)
    except UNREADABLE as error:
        raise KeysUnavailableError from error


def _id_of(subject: str) -> str:
    try:
        usable = bool(subject.strip()) and subject == clean_text(subject) and bool(label(subject))
    except ValueError:
        usable = False
    if not usable:
        msg = "its `sub` cannot be a user's id: it is blank, too long, or holds what none may"
        raise TokenRefusedError(msg)
    return subject


def _public_key(given: str) -> Any:
    is_text = given.startswith("-----BEGIN")
    try:
        pem = given.replace("\\n", "\n") if is_text else Path(given).read_text("utf-8")
        return load_pem_public_key(pem.encode())
    except OSError as error:
        msg = f"`auth.public_key`: expected PEM, or the path of a file with it; got {error}"
        raise ValueError(msg) from error
    except ValueError as error:
        msg = "`auth.public_key`: expected a public key in PEM; got something else"
        raise ValueError(msg) from error


def _algorithm_of(key: Any) -> str:
    if isinstance(key, RSAPublicKey):
        return "RS256"
    if isinstance(key, Ed25519PublicKey):
        return "EdDSA"
    curve = key.curve.name if isinstance(key, EllipticCurvePublicKey) else ""
    if curve not in BY_CURVE:
        msg = f"`auth.public_key`: expected RSA, P-256, P-384, P-521 or Ed25519; got {key!r}"
        raise ValueError(msg)
    return BY_CURVE[curve]


def _fixed(key: Any, algorithms: Sequence[str] | frozenset[str] | set[str]) -> Keys:
    for name in algorithms:
        algorithm = jwt.get_algorithm_by_name(name)
        try:
            weakness = algorithm.check_key_length(algorithm.prepare_key(key))
        except (jwt.InvalidKeyError, TypeError, ValueError) as error:
            msg = f"`auth.algorithms`: expected some that fit the key; got {name!r}"
            raise ValueError(msg) from error
        if weakness:
            msg = f"`auth`: expected a longer key for {name}; got one that is too short: {weakness}"
            raise ValueError(msg)

    async def find(_: str) -> Any:
        return key

    return Keys(algorithms=sorted(algorithms), find=find)


def _published(url: str) -> Callable[[str], Awaitable[Any]]:
    """Return a search in the keys at `url`, read again after five minutes, or for a new key.

    One thread at a time: a place that does not answer must not hold all of them.
    """
    client = jwt.PyJWKClient(url, timeout=KEYS_SECONDS, cooldown_duration=AGAIN_SECONDS)
    turn = asyncio.Lock()

    async def find(token: str) -> Any:
        async with asyncio.timeout(2 * KEYS_SECONDS), turn:
            return await asyncio.to_thread(client.get_signing_key_from_jwt, token)

    return find
