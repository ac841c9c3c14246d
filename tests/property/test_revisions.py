"""Whatever a consolidation answers, MEMORY.md keeps its limit, and nobody's words get into it."""

from hypothesis import given
from hypothesis import strategies as st

from everlong.nodes.revision import revised
from everlong.nodes.tokens import estimate_text
from everlong.stores.entries import Entry, Fact

WORDS = [
    "tea",
    "coffee",
    "Bergen",
    "上海港",
    "ALPHA-7",
    "2026-03-09",
    "12.40",
    "on Fridays",
    "never",
]
facts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=30).map(" ".join)
lines = st.builds(
    lambda mark, text: f"{mark}{text}", st.sampled_from(["- ", "## ", "", "1. "]), facts
)


def entry(number: int, text: str, kind: str) -> Entry:
    key = f"20260309T12{number:04d}Z-x"
    return Entry(
        key=key,
        kind="save" if kind == "save" else "flush",
        day="2026-03-09",
        at="2026-03-09T12:00:00Z",
        zone="UTC",
        facts=(Fact(text, (f"m{number}",), key=f"{key}#0"),),
        sources=(),
        thread_id="t",
        promoted=kind == "save",
    )


@given(
    old=st.lists(facts, max_size=8),
    new=st.lists(st.tuples(facts, st.sampled_from(["save", "flush"])), min_size=1, max_size=8),
    answer=st.lists(lines, max_size=20),
    keeps=st.booleans(),
    limit=st.integers(min_value=100, max_value=300),
)
def test_the_limit_holds_and_a_document_with_facts_is_never_emptied(
    old, new, answer, keeps, limit
) -> None:
    document = [(f"- {text}", (f"old{n}#0",)) for n, text in enumerate(old)]
    fresh = [entry(n, *one) for n, one in enumerate(new)]
    told = [*(line for line, _ in document), *(f"- {text}" for text, _ in new)] if keeps else []
    revision = revised("\n".join([*answer, *told]), document, fresh, limit=limit)
    if revision.objection:
        return
    assert estimate_text(revision.text) <= limit
    assert not old or any(map(str.isalnum, revision.text))
