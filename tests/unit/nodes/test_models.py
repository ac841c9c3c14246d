"""Models by name, their windows, and what is said when one fails."""

import subprocess
import sys
import time
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.fake_chat_models import FakeListChatModel

from everlong.nodes.context import Context
from everlong.nodes.errors import InvalidInputError, ModelUnavailableError
from everlong.nodes.models import chat_model, explain, load, load_all, window
from everlong.nodes.windows import Limits, known_limits, limits_of, name_of, window_of


@pytest.fixture(autouse=True)
def _variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_BASE", "OPENAI_BASE_URL", "OPENAI_ADMIN_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "test-key")


class Other(FakeListChatModel):
    """A model that has a name, and perhaps a profile."""

    responses: list[str] = ["Hello."]  # noqa: RUF012 - a field
    model: str = "other"


def test_an_object_is_returned_as_it_is() -> None:
    model = Other()
    assert chat_model(model) is model


def test_offline_is_a_model() -> None:
    assert isinstance(chat_model("offline"), BaseChatModel)


@pytest.mark.parametrize(
    "name", ["", "gpt-4o", "openai:", "openai: ", "anthropic:claude", "Offline"]
)
def test_an_unknown_name_is_refused_with_what_is_allowed(name: str) -> None:
    with pytest.raises(
        ModelUnavailableError, match="expected `offline`, `openai:<name>`"
    ) as caught:
        chat_model(name)
    assert repr(name) in str(caught.value)


@pytest.mark.parametrize("key", [None, "", "  "])
def test_a_missing_key_is_refused_at_once_with_the_variables_name(
    monkeypatch: pytest.MonkeyPatch, key: str | None
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    if key is not None:
        monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(ModelUnavailableError, match="set OPENAI_API_KEY") as caught:
        chat_model("openai:gpt-4o")
    assert "`openai:gpt-4o`" in str(caught.value)
    assert "such as `none`" in str(caught.value)


@pytest.mark.parametrize("key", ["密钥", "key\n"])
def test_a_key_that_no_header_can_carry_is_refused_without_showing_it(
    monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(ModelUnavailableError, match="OPENAI_API_KEY: expected") as caught:
        chat_model("openai:gpt-4o")
    assert key not in str(caught.value)


@pytest.mark.parametrize("url", ["", "127.0.0.1:8000/v1", "localhost", "ftp://host/v1", "http://"])
def test_an_address_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", url)
    with pytest.raises(ModelUnavailableError, match="OPENAI_BASE_URL: expected an address"):
        chat_model("openai:gpt-4o")


def test_variables_are_read_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    first: Any = chat_model("openai:gpt-4o")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:2/v1")
    second: Any = chat_model("openai:gpt-4o")
    assert [m.root_async_client.base_url.port for m in (first, second)] == [1, 2]


def test_waits_and_retries_are_bounded_and_usage_is_streamed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    model: Any = chat_model("openai:deepseek-flash")
    for client in (model.root_async_client, model.root_client):
        assert (client.timeout.read, client.timeout.connect, client.max_retries) == (120, 10, 2)
    assert model.stream_chunk_timeout == 120
    assert model.stream_usage is True


@pytest.mark.parametrize(
    ("url", "responses"),
    [
        ("https://api.openai.com/v1", True),
        ("https://eu.api.openai.com/v1", True),
        ("https://api.deepseek.com", False),
        ("https://api.openai.com.example.test/v1", False),
    ],
)
def test_only_openai_itself_may_be_asked_for_responses(
    monkeypatch: pytest.MonkeyPatch, url: str, responses: bool
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", url)
    model: Any = chat_model("openai:gpt-5-pro")
    assert model.use_responses_api is responses
    plain: Any = chat_model("openai:gpt-4o")
    assert not plain.use_responses_api


def test_nothing_of_openai_is_imported_before_it_is_used() -> None:
    code = (
        "import sys, everlong.nodes.models\n"
        "sys.exit(any(name in sys.modules for name in ('openai', 'langchain_openai')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0  # noqa: S603 - our own code


@pytest.mark.parametrize(
    ("name", "window"),
    [
        ("openai:deepseek-flash", 1_000_000),
        ("DeepSeek-V4-Pro", 1_000_000),
        ("deepseek-chat", 128_000),
        ("deepseek/deepseek-reasoner", 128_000),
        ("deepseek:deepseek-flash", 1_000_000),
        ("gpt-4o-2099-01-01", 128_000),
        ("gpt-4.1-mini", 1_047_576),
        ("gpt-4-0613", 8_192),
        ("gpt-5-2025-08-07", 272_000),
        ("o3-mini", 200_000),
        ("Qwen/Qwen3-235B-A22B", 131_072),
        ("qwen3-0.6b", 32_768),
        ("qwen-long-latest", 10_000_000),
        ("us.anthropic.claude-sonnet-4-20250514-v1:0", 200_000),
        ("models/gemini-2.5-pro", 1_048_576),
        ("glm-5.2-air", 1_000_000),
        ("kimi-k2.5-preview", 262_144),
        ("MiniMax-M2.1", 204_800),
        ("llama3.1:8b", 131_072),
        ("meta-llama/Llama-3.3-70B-Instruct", 131_072),
    ],
)
def test_the_table_knows_the_window(name: str, window: int) -> None:
    limits = known_limits(name)
    assert limits
    assert limits.window == window


def test_the_table_knows_deepseek_flashs_longest_answer() -> None:
    assert known_limits("deepseek-flash") == Limits(1_000_000, 384_000)


def test_a_window_that_nobody_knows_is_none() -> None:
    assert window_of(Other(model="my-gateway-model")) is None
    assert known_limits("") is None


def test_the_profile_goes_before_the_table() -> None:
    profile: Any = {"max_input_tokens": 64_000, "max_output_tokens": 4_000}
    assert limits_of(Other(model="gpt-4o", profile=profile)) == Limits(64_000, 4_000)
    empty: Any = {"max_input_tokens": 0}
    assert window_of(Other(model="gpt-4o", profile=empty)) == 128_000
    assert window_of(chat_model("openai:gpt-4o")) == 128_000
    assert window_of(chat_model("openai:deepseek-flash")) == 1_000_000


def test_a_names_window_is_looked_up_once() -> None:
    began = time.perf_counter()
    assert {window("openai:deepseek-flash") for _ in range(10_000)} == {1_000_000}
    assert time.perf_counter() - began < 1
    assert window(Other(model="glm-5")) == 200_000


async def test_a_model_is_loaded_like_it_is_named() -> None:
    model = Other()
    assert await load(model) is model
    assert [name_of(await load("openai:gpt-4o")) for _ in range(2)] == ["gpt-4o"] * 2
    with pytest.raises(ModelUnavailableError):
        await load("gpt-4o")


def test_a_model_without_a_name_has_its_classs() -> None:
    assert name_of(FakeListChatModel(responses=[])) == "FakeListChatModel"
    assert name_of(chat_model("openai:gpt-4o")) == "gpt-4o"


class StatusError(Exception):
    """An error that came over HTTP."""

    def __init__(self, status: int, text: str = "x", url: str = "") -> None:
        super().__init__(text)
        self.status_code = status
        self.request = type("Request", (), {"url": url})()


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (StatusError(401), "gpt-4o: the key was refused. Check OPENAI_API_KEY. (HTTP 401)"),
        (StatusError(400, "Invalid\n  value"), "gpt-4o: HTTP 400: Invalid value"),
        (ValueError("odd"), "gpt-4o: ValueError: odd"),
        (ValueError(), "gpt-4o: ValueError: ValueError"),
        (
            TimeoutError(),
            "gpt-4o: no answer in time. Try again, or check that the server is well.",
        ),
        (
            StatusError(413, "limit is 8192 tokens"),
            (
                "gpt-4o: the conversation is too long for the model (its limit is 8,192 tokens). "
                "Compact it, or set the window."
            ),
        ),
        (
            StatusError(500, "down", "http://kim:secret@host:8/v1/chat/completions?key=secret"),
            "gpt-4o at http://host:8/v1: HTTP 500: down",
        ),
        (InvalidInputError("`user_id`: expected one"), "`user_id`: expected one"),
    ],
)
def test_a_failure_is_explained_in_one_line(error: Exception, line: str) -> None:
    assert explain(error, "gpt-4o") == line


def test_an_explanation_is_never_a_page() -> None:
    assert len(explain(StatusError(500, "x" * 9_000), "gpt-4o")) == 300


@pytest.mark.parametrize("field", ["model", "summary_model", "memory_model"])
async def test_every_model_of_the_settings_is_checked_and_its_field_named(field: str) -> None:
    await load_all(Context(model="offline", summary_model=Other(), memory_model="offline"))
    with pytest.raises(ModelUnavailableError, match=f"^`{field}`: model 'gpt-9': expected"):
        await load_all(Context.model_validate({field: "gpt-9"}))
