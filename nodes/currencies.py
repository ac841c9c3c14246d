"""Currencies of amounts: `$5`, `5000 EUR`, `两百美元`. Pure."""

import re
from dataclasses import dataclass

from everlong.nodes.numerals import HAN

_SIGNS = {
    "USD": r"US\$|USD\b|美[元金]",
    "EUR": r"€|EUR\b|euros?\b|欧元",
    "GBP": r"£|GBP\b|quid\b|英镑",
    "CNY": rf"CN¥|CNY\b|RMB\b|yuan\b|kuai\b|人民币|(?<=[\d{HAN}])(?:元|块钱)",
    "JPY": r"JPY\b|yen\b|日元|円",
    "HKD": r"HK\$|HKD\b|港[币元]",
    "AUD": r"A\$|AUD\b|澳元",
    "CAD": r"CA?\$|CAD\b|加元",
    "SGD": r"S\$|SGD\b|新币",
    "CHF": r"CHF\b|francs?\b|瑞郎",
    "INR": r"₹|INR\b|rupees?\b|卢比",
    "KRW": r"₩|KRW\b|韩元",
    "RUB": r"₽|RUB\b|rou?bles?\b|卢布",
    "BRL": r"R\$|BRL\b|reais\b",
    "USD HKD AUD CAD SGD": r"\$|dollars?\b|bucks\b",
    "CNY JPY": "¥",
}
"""By the codes that they may stand for; the first that fits."""
_SIGN = "|".join(f"(?P<_{n}>{sign})" for n, sign in enumerate(_SIGNS.values()))
_ANY = re.compile(rf"(?<![A-Za-z])(?:{_SIGN})", re.IGNORECASE)
_AMOUNT_BEFORE = re.compile(
    rf"[\d{HAN}](?: ?(?:k|mn?|bn|[mb]illion|thousand|hundred))? ?$", re.IGNORECASE
)


@dataclass(frozen=True)
class Currency:
    """The codes that a sign or a name may stand for."""

    codes: frozenset[str]


def currencies(text: str) -> list[tuple[int, str, Currency]]:
    """Return the currencies of a text's amounts: place, as written, which."""
    return [
        (match.start(), match[0], _meant(match))
        for match in _ANY.finditer(text)
        if _AMOUNT_BEFORE.search(text[max(match.start() - 12, 0) : match.start()])
        or re.match(r" ?\d", text[match.end() :])
    ]


def codes_said(text: str) -> set[str]:
    """Return the codes of every currency that a text names."""
    return {code for match in _ANY.finditer(text) for code in _meant(match).codes}


def _meant(match: re.Match[str]) -> Currency:
    names = list(_SIGNS)
    return Currency(frozenset(names[int(str(match.lastgroup)[1:])].split()))
