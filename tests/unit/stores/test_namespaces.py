from typing import Any

import pytest
from langgraph.store.base import BaseStore

from everlong.stores.namespaces import key, label, raw, space

IDS = [
    "kim",
    "kimo",
    "kim_1",
    "kimx1",
    "%",
    "*",
    "a.b@x.example",
    "a\\b",
    "../kim",
    "langgraph",
    "K\u00efm",
    "Ki\u0308m",
    "用户",
    "x\x00y",
    "~2e",
    "\ud83d",
    " kim ",
    "u" * 600,
    "用" * 200,
]


@pytest.mark.parametrize("user_id", IDS)
def test_an_id_comes_back_from_its_label(user_id: str) -> None:
    assert raw(label(user_id)) == user_id


@pytest.mark.parametrize("user_id", ["kim", "kim_1", "a-b@c+d", "用户", "K\u00efm", "u" * 600])
def test_an_ordinary_id_stays_readable(user_id: str) -> None:
    assert label(user_id) == user_id


def test_what_namespaces_refuse_or_match_with_is_escaped() -> None:
    assert label("a.b/c*\\%~ \x00") == "a~2eb~2fc~2a~5c~25~7e~20~00"


def test_two_unicode_spellings_are_two_users() -> None:
    assert label("K\u00efm") != label("Ki\u0308m")


async def test_each_of_the_ids_sees_only_its_own_records(store: BaseStore) -> None:
    for user_id in IDS:
        await store.aput(space(user_id, "notes"), "mine", {"of": label(user_id)})
    for user_id in IDS:
        below = space(user_id, "notes")[:2]
        assert [item.value["of"] for item in await store.asearch(below)] == [label(user_id)]
        assert await store.alist_namespaces(prefix=below) == [space(user_id, "notes")]


@pytest.mark.parametrize("user_id", ["", "   ", "\t\n"])
def test_a_blank_user_has_no_namespace(user_id: str) -> None:
    with pytest.raises(ValueError, match="`user_id`: expected who the records belong to"):
        space(user_id, "notes")


@pytest.mark.parametrize("user_id", [42, None])
def test_a_user_id_that_is_no_text_is_refused(user_id: Any) -> None:
    with pytest.raises((TypeError, AttributeError)):
        space(user_id, "notes")


def test_a_too_long_id_is_refused_with_its_length_and_the_limit() -> None:
    with pytest.raises(ValueError, match="at most 800 bytes; got 801 "):
        label("u" * 801)


def test_an_empty_part_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one character"):
        space("kim", "notes", "")


@pytest.mark.parametrize("spelled", ["", "a.b", "~2E", "~", "~zz", "~ff", "~61", "~7"])
def test_what_no_id_is_spelled_as_has_no_id(spelled: str) -> None:
    with pytest.raises(ValueError, match=r"expected a label|codec"):
        raw(spelled)


def test_a_namespace_begins_with_the_user_and_spells_every_id() -> None:
    assert space("a.b", "notes", "t.1") == ("users", "a~2eb", "notes", "t~2e1")


def test_a_short_key_is_readable_and_a_long_one_bounded() -> None:
    assert key("call_1") == "call_1"
    assert len(key("call_1__thought__" + "Qx/" * 500)) == 34
    assert key("") != ""
    assert key("x" * 65) != key("x" * 66)
