"""The README says the same in both languages."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ENGLISH, CHINESE = "README.md", "README.zh-CN.md"
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!\w+:|#)([^)#]+)")


def read(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def prose(name: str) -> str:
    return FENCE.sub("", read(name))


def levels(name: str) -> list[int]:
    return [len(marks) for marks in re.findall(r"^(#+) ", prose(name), re.MULTILINE)]


def links(name: str) -> list[str]:
    return LINK.findall(prose(name))


def test_both_readmes_show_the_same_code():
    assert len(FENCE.findall(read(ENGLISH))) > 3
    assert FENCE.findall(read(CHINESE)) == FENCE.findall(read(ENGLISH))


def test_both_readmes_have_the_same_headings():
    assert levels(ENGLISH).count(2) > 3
    assert levels(CHINESE) == levels(ENGLISH)


def test_both_readmes_lead_to_the_same_pages_and_to_each_other():
    assert CHINESE in read(ENGLISH).splitlines()[0]
    assert ENGLISH in read(CHINESE).splitlines()[0]
    assert set(links(CHINESE)) - {ENGLISH} == set(links(ENGLISH)) - {CHINESE}


@pytest.mark.parametrize("name", [ENGLISH, CHINESE])
def test_what_a_readme_links_to_is_there(name):
    assert len(links(name)) > 5
    assert [link for link in links(name) if not (ROOT / link).exists()] == []


def test_both_readmes_name_the_same_settings_and_commands():
    named = [set(re.findall(r"`([^`\n]+)`", prose(name))) for name in (ENGLISH, CHINESE)]
    assert named[0] ^ named[1] == set()
