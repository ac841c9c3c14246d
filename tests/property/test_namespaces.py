from hypothesis import given, settings
from hypothesis import strategies as st

from everlong.stores.namespaces import LABEL_BYTES, key, label, raw, space

ANY_CHARACTER = st.characters(codec=None, exclude_categories=())
IDS = st.text(ANY_CHARACTER, min_size=1, max_size=60)
USERS = IDS.filter(lambda one: bool(one.strip()))


@given(IDS)
@settings(deadline=None)
def test_a_label_is_reversible_and_fit_for_a_namespace(user_id: str) -> None:
    spelled = label(user_id)
    assert raw(spelled) == user_id
    assert spelled
    assert not set(spelled) & set(".*%/\\ \x00")
    assert 0 < len(spelled.encode("utf-8")) <= LABEL_BYTES


@given(IDS, IDS)
@settings(deadline=None)
def test_different_ids_have_different_labels_and_keys(one: str, other: str) -> None:
    assert (label(one) == label(other)) == (one == other)
    assert (key(one) == key(other)) == (one == other)


@given(USERS, IDS)
@settings(deadline=None)
def test_no_user_is_below_another(user_id: str, more: str) -> None:
    short, long = space(user_id, "notes"), space(user_id + more, "notes")
    assert short[:2] != long[:2]
    assert not ".".join(long).startswith(".".join(short[:2]) + ".")


@given(st.text(ANY_CHARACTER, max_size=20))
@settings(deadline=None)
def test_whatever_has_an_id_is_its_label(spelled: str) -> None:
    try:
        user_id = raw(spelled)
    except ValueError:
        return
    assert label(user_id) == spelled
