"""Statements of the word index inside Postgres; pure. `stores/word_table.py` runs them.

`store_words` holds, for each block of a namespace's items, the terms that any of them has, as a
`tsvector`. The namespaces that a search may be below are terms, too. Blocks are ranked by how rare
the terms are that they hold; what is in them is ranked when it is read.

A trigger on the store's table notes in `store_words_due` each block that a transaction changes. A
note is gone once the block was indexed after it; so whoever searches knows what is not indexed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from everlong.stores.lexicon import Unit, terms_of, units_of
from everlong.stores.namespaces import ROOT
from everlong.stores.ranking import rarity

KIND_LABELS = 3
"""The labels of `("users", <user>, <kind>)`: no search is above."""
BLOCK_OF = f"""CREATE OR REPLACE FUNCTION store_words_block(prefix text, key text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT CASE
        WHEN split_part(prefix, '.', 1) <> '{ROOT}' THEN NULL
        WHEN split_part(prefix, '.', 3) = 'transcripts' THEN left(key, 7)
        WHEN split_part(prefix, '.', 3) = 'ledger_archive' THEN left(key, 12)
        WHEN split_part(prefix, '.', 3) = 'ledger' AND split_part(prefix, '.', 4) = 'entries'
            THEN left(key, 12) END $$"""
"""Ten messages are a block, or the entries of ten minutes. What has none is not indexed."""
NOTE = """CREATE OR REPLACE FUNCTION store_words_note() RETURNS trigger
    LANGUAGE plpgsql SET search_path FROM CURRENT AS $$ BEGIN
        IF TG_OP = 'DELETE' THEN NEW := OLD; END IF;
        INSERT INTO store_words_due
            VALUES (NEW.prefix, store_words_block(NEW.prefix, NEW.key), pg_current_xact_id())
            ON CONFLICT DO NOTHING;
        RETURN NULL;
    END $$"""
SET_UP = (
    """CREATE TABLE IF NOT EXISTS store_words (
        prefix text NOT NULL, block text NOT NULL, words tsvector NOT NULL,
        PRIMARY KEY (prefix, block))""",
    "CREATE INDEX IF NOT EXISTS store_words_words ON store_words USING gin (words)",
    """CREATE TABLE IF NOT EXISTS store_words_due (
        prefix text NOT NULL, block text NOT NULL, tx xid8 NOT NULL)""",
    """CREATE UNIQUE INDEX IF NOT EXISTS store_words_due_below
        ON store_words_due (prefix text_pattern_ops, block, tx)""",
    BLOCK_OF,
    NOTE,
)
IS_NOTED = """SELECT FROM pg_trigger
    WHERE tgname = 'store_words_removed' AND tgrelid = 'store'::regclass
        AND to_regclass('store_words') IS NOT NULL"""
BEGIN_NOTING = (
    """CREATE OR REPLACE TRIGGER store_words_changed AFTER INSERT OR UPDATE ON store
        FOR EACH ROW WHEN (store_words_block(NEW.prefix, NEW.key) IS NOT NULL)
        EXECUTE FUNCTION store_words_note()""",
    """CREATE OR REPLACE TRIGGER store_words_removed AFTER DELETE ON store
        FOR EACH ROW WHEN (store_words_block(OLD.prefix, OLD.key) IS NOT NULL)
        EXECUTE FUNCTION store_words_note()""",
    """INSERT INTO store_words_due
        SELECT DISTINCT prefix, store_words_block(prefix, key), pg_current_xact_id() FROM store
        WHERE store_words_block(prefix, key) IS NOT NULL ON CONFLICT DO NOTHING""",
)
"""In one transaction: from now on changes are noted, and what was there before is due."""
_BELOW = "(prefix = %(at)s OR prefix ~>=~ %(below)s AND prefix ~<~ %(beyond)s)"
IS_DUE = f"""SELECT pg_snapshot_xmax(pg_current_snapshot())::text AS now,
    EXISTS (SELECT FROM store_words_due WHERE {_BELOW}) AS is_due"""  # noqa: S608 - of ours
DUE = f"""SELECT prefix, block, tx::text AS note FROM store_words_due
    WHERE {_BELOW} AND tx < %(before)s::xid8
    ORDER BY prefix USING ~<~, block LIMIT %(limit)s"""  # noqa: S608 - of ours
ITEMS = """SELECT wanted.prefix, wanted.block, s.key, s.value
    FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[])
        AS wanted (prefix, block, first, beyond)
    CROSS JOIN LATERAL (
        SELECT key, value FROM store
        WHERE prefix = wanted.prefix AND key >= first AND key < beyond ORDER BY key OFFSET 0) AS s
    ORDER BY wanted.prefix, s.key"""
"""One look into the primary key for each block, whatever Postgres knows of the table."""
_NOTES = "unnest(%s::text[], %s::text[], %s::xid8[]) AS seen (prefix, block, tx)"
HELD = f"""SELECT prefix, block, count(*) AS notes FROM (
        SELECT prefix, block FROM {_NOTES} JOIN store_words_due USING (prefix, block, tx)
        ORDER BY prefix, block, tx FOR UPDATE OF store_words_due) AS held
    GROUP BY prefix, block"""  # noqa: S608 - of ours
"""Locks notes. Where one is gone, somebody else has indexed its block meanwhile."""
DONE = f"""DELETE FROM store_words_due AS due USING {_NOTES}
    WHERE due.prefix = seen.prefix AND due.block = seen.block AND due.tx = seen.tx"""  # noqa: S608
WRITE = """INSERT INTO store_words (prefix, block, words)
    SELECT prefix, block, words::tsvector
        FROM unnest(%s::text[], %s::text[], %s::text[]) AS written (prefix, block, words)
    ON CONFLICT (prefix, block) DO UPDATE SET words = excluded.words"""
REMOVE = """DELETE FROM store_words USING unnest(%s::text[], %s::text[]) AS gone (prefix, block)
    WHERE store_words.prefix = gone.prefix AND store_words.block = gone.block"""
COMMON_TERMS = """SELECT c.reltuples AS rows, s.most_common_elems::text::text[] AS terms,
        s.most_common_elem_freqs AS shares
    FROM pg_class c LEFT JOIN pg_stats s
        ON s.tablename = c.relname AND s.attname = 'words' AND s.schemaname = current_schema()
    WHERE c.oid = to_regclass('store_words')"""

CUT = "\x02"
"""Stands among texts of which one is not whole; a block that has it may say what is asked."""
CUT_BLOCKS = "SELECT prefix, block FROM store_words WHERE words @@ %s::text::tsquery LIMIT 100"
MOST_BYTES = 500_000
"""Of one block's terms, in all: a `tsvector` holds a megabyte at most."""
MOST_UNITS = 24
ENOUGH_FOUND = 2_000
"""Blocks from which the best are chosen: so many at least, where rarer words do not find fewer."""
MOST_FOUND = 8_000
"""Of the blocks that hold one word, so many are ranked: what bounds a search's time."""


@dataclass(frozen=True)
class Common:
    """How common terms are in the whole index, as far as Postgres has counted."""

    rows: float = 0.0
    """Blocks in the index."""
    shares: Mapping[str, float] = field(default_factory=dict[str, float])
    """By term the share of blocks that hold it; a term that is missing is rarer than these."""

    def expected(self, unit: Unit, below: Sequence[str]) -> float:
        """Return about how many blocks below a namespace hold a unit."""
        share = sum(self._share(term) for term in unit.spellings)
        return self.rows * share * self._share(_mark(below))

    def blocks(self, below: Sequence[str]) -> float:
        """Return about how many blocks there are below a namespace, or fewer."""
        return self.rows * self.shares.get(_mark(below), 0.0)

    def _share(self, term: str) -> float:
        rarest = min(self.shares.values(), default=0.0)
        return self.shares.get(term, rarest)


def vector_of(namespace: Sequence[str], texts: Sequence[str]) -> str:
    """Return a block's terms as the text of a `tsvector`; `CUT` among them where some are not."""
    ends = range(KIND_LABELS, len(namespace) + 1)
    marks = [_mark(namespace[:end]) for end in ends]
    marks += [CUT] if CUT in texts else []
    terms: list[str] = []
    room = MOST_BYTES
    for term in dict.fromkeys(term for text in texts for term in terms_of(text)):
        room -= len(term.encode()) + 1
        if room < 0:
            marks.append(CUT)
            break
        terms.append(term)
    return " ".join(map(_quoted, dict.fromkeys([*marks, *terms])))


@dataclass(frozen=True)
class Ranking:
    """A statement that ranks blocks, best first."""

    statement: str
    """Its rows: `prefix`, `block`, `counts` by number of the unit, `blocks` at least in all."""
    values: Mapping[str, Any]
    units: Sequence[Unit]
    """Those that choose the blocks."""
    expected: Mapping[Unit, float]
    """About how many blocks hold each unit, the others included."""

    def rarities(self, row: Mapping[str, Any]) -> dict[Unit, float]:
        """Return how rare each unit is among the blocks, given any row; {} where there is none."""
        counts: Mapping[str, int] = row.get("counts") or {}
        blocks = float(row.get("blocks") or self.values["blocks"])
        counted = {unit: float(counts.get(str(at), 0)) for at, unit in enumerate(self.units)}
        return {unit: rarity(n, blocks) for unit, n in {**self.expected, **counted}.items()}


def ranking(namespace: Sequence[str], query: str, *, limit: int, common: Common) -> Ranking | None:
    """Return how to rank the blocks below a namespace; None where the query asks for nothing."""
    units = units_of(query)[:MOST_UNITS]
    if not units:
        return None
    expected = {unit: common.expected(unit, namespace) for unit in units}
    chosen = telling(expected)
    others = [unit for unit in units if unit not in chosen]
    mark, blocks = _quoted(_mark(namespace)), max(common.blocks(namespace), 100.0)
    among = f"{mark} & ({' | '.join(map(_spelled, chosen))})"
    values: dict[str, Any] = {"limit": limit, "blocks": blocks}
    for at, unit in enumerate([*chosen, *others]):
        is_chosen = at < len(chosen)
        says = 1.0 if is_chosen else rarity(expected[unit], blocks)
        values[f"q{at}"] = f"{mark if is_chosen else among} & {_spelled(unit)}"
        values[f"w{at}"] = unit.weight * says
    return Ranking(_statement(len(chosen), len(others)), values, chosen, expected)


def telling(expected: Mapping[Unit, float]) -> list[Unit]:
    """Return the rarest units: as many as together find few enough blocks, and one at least."""
    by_rarity = sorted(expected, key=lambda unit: expected[unit])
    chosen, found = by_rarity[:1], expected[by_rarity[0]]
    for unit in by_rarity[1:]:
        found += expected[unit]
        if found > ENOUGH_FOUND:
            break
        chosen.append(unit)
    return chosen


def cut_below(namespace: Sequence[str]) -> str:
    """Return the query for the blocks below a namespace that are not indexed whole."""
    return f"{_quoted(_mark(namespace))} & {_quoted(CUT)}"


def _statement(choosing: int, others: int) -> str:
    """The first units choose the blocks; what they say is counted, what the others say is known."""
    found = " UNION ALL ".join(
        f"(SELECT {at} AS unit, ctid AS at, %(w{at})s::float8 AS weight FROM store_words"  # noqa: S608
        f" WHERE words @@ %(q{at})s::text::tsquery LIMIT {MOST_FOUND})"
        for at in range(choosing + others)
    )
    return f"""WITH found AS MATERIALIZED ({found}),
        counted AS (SELECT unit, count(*) AS n, max(weight) AS weight FROM found GROUP BY unit),
        known AS (SELECT greatest(max(n), %(blocks)s)::float8 AS t FROM counted),
        scored AS MATERIALIZED (SELECT unit, CASE WHEN unit < {choosing}
            THEN weight * ln(1 + (t - n + 0.5) / (n + 0.5)) ELSE weight END AS score
            FROM counted, known),
        best AS (SELECT at, sum(score) AS score FROM found JOIN scored USING (unit)
            GROUP BY at ORDER BY score DESC, at DESC LIMIT %(limit)s)
        SELECT prefix, block, (SELECT t FROM known) AS blocks,
            (SELECT jsonb_object_agg(unit, n) FROM counted) AS counts
        FROM best JOIN store_words ON store_words.ctid = best.at
        ORDER BY score DESC, block DESC"""  # noqa: S608 - numbers of ours


def _mark(namespace: Sequence[str]) -> str:
    """Return the term that all blocks below a namespace have."""
    return "\x01" + ".".join(namespace)


def _spelled(unit: Unit) -> str:
    ending = ":*" if unit.is_prefix else ""
    return f"({' | '.join(_quoted(term) + ending for term in unit.spellings)})"


def _quoted(term: str) -> str:
    escaped = term.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"
