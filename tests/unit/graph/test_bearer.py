"""Which tokens speak for whom, with each kind of key."""

import base64
import hashlib
import hmac
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.hazmat.primitives.serialization import PublicFormat as Public
from pydantic import ValidationError

from bearer_tokens import AUDIENCE, SECRET, token
from everlong.graph.bearer import (
    KeysUnavailableError,
    TokenRefusedError,
    identity_in,
    keys_of,
)
from everlong.stores.settings import AuthSettings

RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
EC = ec.generate_private_key(ec.SECP256R1())
ED = ed25519.Ed25519PrivateKey.generate()
SIGNERS = {"RS256": RSA, "ES256": EC, "EdDSA": ED}


def pem(key) -> str:
    return key.public_key().public_bytes(Encoding.PEM, Public.SubjectPublicKeyInfo).decode()


def settings(**given) -> AuthSettings:
    return AuthSettings.model_validate({"audience": AUDIENCE} | given)


async def who(given: str, **more) -> str:
    chosen = settings(**({"secret": SECRET} if not more.keys() & {"public_key"} else {}) | more)
    return await identity_in(given, keys_of(chosen), chosen)


async def test_a_token_speaks_for_its_subject():
    assert await who(token("kim@example.com")) == "kim@example.com"
    assert await who(token(iss="https://id.example"), issuer="https://id.example") == "kim"


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"exp": time.time() - 31}, "expired"),
        ({"exp": None}, "no `exp`"),
        ({"nbf": time.time() + 86_400}, "not valid yet"),
        ({"iat": time.time() + 86_400}, "not valid yet"),
        ({"aud": "another service"}, "another audience"),
        ({"aud": None}, "no `aud`"),
        ({"iss": "https://evil.example"}, "another issuer"),
        ({"key": "another secret of more than 32 bytes"}, "signature"),
        ({"user_id": None}, "no `sub`"),
        ({"user_id": ""}, "`sub` cannot be"),
        ({"user_id": "  "}, "`sub` cannot be"),
        ({"user_id": "x\0y"}, "`sub` cannot be"),
        ({"user_id": "u" * 801}, "`sub` cannot be"),
        ({"user_id": 42}, "cannot be read"),
        ({"key": SECRET * 2, "algorithm": "HS384"}, "algorithm"),
        ({"key": None, "algorithm": "none"}, "algorithm"),
        ({"key": RSA, "algorithm": "RS256"}, "algorithm"),
    ],
)
async def test_a_token_that_is_not_right_speaks_for_nobody(given, why):
    more = {"issuer": "https://id.example"} if "iss" in given else {}
    with pytest.raises(TokenRefusedError, match=why):
        await who(token(**given), **more)


@pytest.mark.parametrize("given", ["", "x", "a.b.c", "é.é.é", token() + "x", token()[:-1]])
async def test_what_is_no_token_is_refused(given):
    with pytest.raises(TokenRefusedError):
        await who(given)


async def test_a_token_just_expired_is_within_the_leeway():
    assert await who(token(exp=time.time() - 20)) == "kim"
    with pytest.raises(TokenRefusedError, match="expired"):
        await who(token(exp=time.time() - 20), leeway_seconds=0)


@pytest.mark.parametrize("algorithm", SIGNERS)
async def test_a_public_key_accepts_its_own_algorithm_alone(algorithm):
    key = SIGNERS[algorithm]
    assert await who(token(key=key, algorithm=algorithm), public_key=pem(key)) == "kim"
    for other, signer in SIGNERS.items():
        if other != algorithm:
            with pytest.raises(TokenRefusedError, match="algorithm"):
                await who(token(key=signer, algorithm=other), public_key=pem(key))


@pytest.mark.parametrize("algorithm", SIGNERS)
async def test_a_token_signed_with_the_public_key_as_a_secret_is_refused(algorithm):
    public = pem(SIGNERS[algorithm])
    head, body, _ = token().split(".")
    signed = hmac.digest(public.encode(), f"{head}.{body}".encode(), hashlib.sha256)
    forged = f"{head}.{body}.{base64.urlsafe_b64encode(signed).decode().rstrip('=')}"
    with pytest.raises(TokenRefusedError, match="algorithm"):
        await who(forged, public_key=public)


async def test_a_public_key_may_be_a_file_or_one_line(tmp_path: Path):
    place = tmp_path / "key.pem"
    place.write_text(pem(EC), "utf-8")
    given = token(key=EC, algorithm="ES256")
    assert await who(given, public_key=str(place)) == "kim"
    assert await who(given, public_key=pem(EC).replace("\n", "\\n")) == "kim"


def test_a_public_key_that_is_no_file_is_named_with_its_setting(tmp_path: Path):
    with pytest.raises(ValueError, match=r"`auth.public_key`: expected PEM.*none\.pem"):
        keys_of(settings(public_key=str(tmp_path / "none.pem")))


PRIVATE = EC.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
WEAK = rsa.generate_private_key(public_exponent=65537, key_size=1024)  # noqa: S505 - the point


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"public_key": PRIVATE}, "expected a public key in PEM"),
        ({"public_key": "-----BEGIN nothing"}, "expected a public key in PEM"),
        ({"public_key": pem(ec.generate_private_key(ec.SECP256K1()))}, "expected RSA, P-256"),
        ({"public_key": pem(EC), "algorithms": ["RS256"]}, "fit the key; got 'RS256'"),
        ({"public_key": pem(WEAK)}, "too short.*2048"),
        ({"secret": SECRET, "algorithms": ["HS512"]}, "too short.*64 bytes"),
    ],
)
def test_a_key_that_cannot_be_used_is_named_before_any_token_comes(given, said):
    with pytest.raises(ValueError, match=said):
        keys_of(settings(**given))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"secret": SECRET, "public_key": "x"}, "expected one of secret, public_key, jwks_url"),
        ({"issuer": "x"}, "got none of them"),
        ({"secret": SECRET, "audience": " "}, "`audience`"),
        ({"secret": "short"}, "at least 32"),
        ({"secret": SECRET, "algorithms": ["RS256"]}, "expected some of"),
        ({"secret": SECRET, "algorithms": ["none"]}, "expected some of"),
        ({"public_key": "x", "algorithms": ["HS256"]}, "expected some of"),
        ({"jwks_url": "http://id.example/keys"}, "expected https"),
        ({"jwks_url": "file:///etc/passwd"}, "expected https"),
        ({"secret": SECRET, "leeway_seconds": 301}, "leeway_seconds"),
        ({"secrets": SECRET}, "secrets"),
    ],
)
def test_settings_that_would_accept_too_much_are_refused_and_no_secret_is_told(given, said):
    with pytest.raises(ValidationError, match=said) as refused:
        settings(**given)
    assert SECRET not in str(refused.value)
    assert SECRET not in repr(refused.value)


class Published:
    """A server of public keys on 127.0.0.1."""

    def __init__(self) -> None:
        self.asked = 0
        self.keys: dict[str, ec.EllipticCurvePrivateKey] = {}
        self.said: bytes | None = None
        """What it says instead."""
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked += 1
                self.send_response(200)
                self.end_headers()
                self.wfile.write(outer.said or json.dumps({"keys": outer.shown()}).encode())

            def log_message(self, *_: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/jwks"

    def shown(self) -> list[dict[str, str]]:
        oct_key = {"kty": "oct", "kid": "shared", "k": base64.urlsafe_b64encode(b"x" * 32).decode()}
        to_jwk = jwt.algorithms.ECAlgorithm.to_jwk
        return [
            oct_key,
            *(
                json.loads(to_jwk(key.public_key())) | {"kid": kid}
                for kid, key in self.keys.items()
            ),
        ]


@pytest.fixture
def published():
    found = Published()
    found.keys["one"] = EC
    yield found
    found.server.shutdown()
    found.server.server_close()


async def test_published_keys_are_read_once_and_only_they_sign(published):
    chosen = settings(jwks_url=published.url)
    keys = keys_of(chosen)
    good = token(key=EC, algorithm="ES256", kid="one")
    for _ in range(3):
        assert await identity_in(good, keys, chosen) == "kim"
    assert published.asked == 1
    bad = [
        (token(key=EC, algorithm="ES256"), "not known"),
        (token(key=EC, algorithm="ES256", kid="two"), "not known"),
        (token(key=ED, algorithm="EdDSA", kid="one"), "algorithm"),
        (token(key="x" * 32, kid="shared"), "algorithm"),
    ]
    for given, why in bad * 3:
        with pytest.raises(TokenRefusedError, match=why):
            await identity_in(given, keys, chosen)
    assert published.asked == 1, "tokens of strangers must not have the keys read again and again"


async def test_a_new_key_counts_when_it_is_published_and_an_old_one_no_longer(
    published, monkeypatch
):
    monkeypatch.setattr("everlong.graph.bearer.AGAIN_SECONDS", 0.0)
    chosen = settings(jwks_url=published.url)
    keys, other = keys_of(chosen), ec.generate_private_key(ec.SECP256R1())
    old, new = (
        token(key=key, algorithm="ES256", kid=kid) for key, kid in ((EC, "one"), (other, "two"))
    )
    assert await identity_in(old, keys, chosen) == "kim"
    with pytest.raises(TokenRefusedError, match="not known"):
        await identity_in(new, keys, chosen)
    published.keys = {"two": other}
    assert await identity_in(new, keys, chosen) == "kim"
    with pytest.raises(TokenRefusedError, match="not known"):
        await identity_in(old, keys, chosen)


@pytest.mark.parametrize("said", [None, b"<html>", b"\xff", b'{"keys": []}', b"{}"])
async def test_where_the_keys_cannot_be_read_nobody_is_let_in_nor_called_a_liar(published, said):
    published.said = said
    if said is None:
        published.server.shutdown()
        published.server.server_close()
    chosen = settings(jwks_url=published.url)
    with pytest.raises(KeysUnavailableError):
        await identity_in(token(key=EC, algorithm="ES256", kid="one"), keys_of(chosen), chosen)
