"""Identifiers are found whole, once and in order, in any mix of scripts."""

from hypothesis import given
from hypothesis import strategies as st

from everlong.nodes.identifiers import identifiers, missing
from strategies import QUICK

CODES = st.from_regex(r"\A[A-Z]{2,4}-[0-9]{3,5}\Z")
HAN = st.text(alphabet=st.characters(min_codepoint=0x4E00, max_codepoint=0x9FA5), max_size=8)
TEXTS = st.text(
    alphabet=st.sampled_from("aZ09 .,-_/:\\\"'“”「」`@#$年月日元\n是PXhtps"), max_size=80
)


@QUICK
@given(TEXTS)
def test_what_is_found_stands_in_the_text_and_is_not_missing_from_it(text: str) -> None:
    found = identifiers(text)
    assert len(set(found)) == len(found)
    assert all(name in text and name.strip() for name in found)


@QUICK
@given(HAN, CODES, HAN)
def test_a_code_is_found_between_chinese_characters(before: str, code: str, after: str) -> None:
    assert code in identifiers(f"{before}{code}{after}")
    assert missing([code], f"{before}{code}{after}") == []


@QUICK
@given(st.lists(CODES, unique=True, max_size=6), st.sampled_from([" ", ", ", "，", "；", "\n"]))
def test_codes_come_in_order_and_once(codes: list[str], joint: str) -> None:
    assert identifiers(joint.join([*codes, *codes])) == codes


@QUICK
@given(CODES, st.sampled_from("0123456789AZaz"))
def test_a_longer_code_does_not_hold_a_shorter_one(code: str, more: str) -> None:
    assert missing([code], f"see {code}{more} here") == [code]
    assert missing([f"{code}{more}"], f"see {code}{more} here") == []


@QUICK
@given(st.text(max_size=60))
def test_any_text_is_read_the_same_way_twice(text: str) -> None:
    assert identifiers(text) == identifiers(text)
    assert missing(identifiers(text), "") == identifiers(text)
