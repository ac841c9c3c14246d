"""Numbers in a text, however written: `1,200`, `1.2k`, `twelve hundred`, `一千二百`. Pure."""

# ruff: noqa: SIM905 - a text of words is easier to read

import re
from collections.abc import Iterator
from decimal import Decimal

_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
    " sixteen seventeen eighteen nineteen"
).split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
ORDINALS = (
    "zeroth first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth"
    " thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth"
).split()
_SCALES = {"dozen": 12, "hundred": 100, "thousand": 1_000, "million": 10**6, "billion": 10**9}
_WORDS: dict[str, int] = {
    **{word: value for value, word in enumerate(_ONES)},
    **{word: value for value, word in enumerate(ORDINALS)},
    **{word: 10 * place for place, word in enumerate(_TENS, 2)},
    **{f"{word[:-1]}ieth": 10 * place for place, word in enumerate(_TENS, 2)},
}
_LOOSE = {
    "dozen": 12,
    "couple": 2,
    "pair": 2,
    "both": 2,
    "twice": 2,
    "double": 2,
    "once": 1,
    "single": 1,
    "fortnight": 14,
    "half": Decimal("0.5"),
    "半": Decimal("0.5"),
    "双": 2,
    "俩": 2,
    "仨": 3,
    "noon": 12,
    "midnight": 12,
}
"""Words that say a number by the way."""
_MULTIPLIERS = {
    **_SCALES,
    "k": 10**3,
    "m": 10**6,
    "mn": 10**6,
    "bn": 10**9,
    "百": 10**2,
    "千": 10**3,
    "万": 10**4,
    "萬": 10**4,
    "百万": 10**6,
    "千万": 10**7,
    "亿": 10**8,
    "億": 10**8,
}
_MULTIPLIER = "|".join(sorted(_MULTIPLIERS, key=len, reverse=True))
DIGITS = re.compile(
    r"(?P<number>\d{1,3}(?:[,' \u00a0\u202f]\d{3}){1,5}(?!\d)(?:\.\d{1,9})?|\d{1,30}(?:\.\d{1,9})?)"
    rf"(?:(?:[ -](?!m(?![a-z])))?(?P<times>{_MULTIPLIER})(?![A-Za-z]))?",  # `5 m` are metres
    re.IGNORECASE,
)
_CONTINENTAL = re.compile(
    r"(?<![\d.,])(?:\d{1,3}(?:\.\d{3})+(?:,\d{1,2})?|\d{1,9},\d{1,2})(?![.,]?\d)"
)
_WORD = "|".join(sorted(_WORDS, key=len, reverse=True))
_SCALE = "|".join(_SCALES)
WORDS = re.compile(
    rf"\b(?:(?:an? )(?:{_SCALE})|(?:{_WORD}))s?\b"
    rf"(?:(?:[ -]|,? and )(?:{_WORD}|{_SCALE})\b){{0,8}}",
    re.IGNORECASE,
)
_HAN_ONES = dict(zip("〇零一二三四五六七八九", (0, 0, *range(1, 10)), strict=True)) | dict(
    zip("两兩壹贰叁肆伍陆柒捌玖", (2, 2, *range(1, 10)), strict=True)
)
_HAN_TENS = {"十": 10, "拾": 10, "百": 100, "佰": 100, "千": 1_000, "仟": 1_000}
_HAN_MYRIADS = {"万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8}
HAN = "".join([*_HAN_ONES, *_HAN_TENS, *_HAN_MYRIADS])
HAN_NUMBER = re.compile(rf"廿|卅|[{HAN}]{{1,20}}(?:点[{HAN}]{{1,9}})?")
_JOINED = re.compile(r"\s|-|,|\band\b", re.IGNORECASE)
_PARTS = {"third": 3, "quarter": 4, "fifth": 5}
_SHARE = re.compile(
    rf"\b(?P<many>an?|one|two|three|four)[ -](?P<part>{'|'.join(_PARTS)})s?\b"
    rf"|(?P<of>[{HAN}]{{1,6}})分之(?P<han>[{HAN}]{{1,6}})"
    rf"|(?P<price>[1-9]{{1,2}}|[{HAN}]{{1,2}})折",
    re.IGNORECASE,
)


def numbers(text: str) -> set[Decimal]:
    """Return all numbers that a text says, and those that parts of them may mean."""
    found: set[Decimal] = set()
    for match in DIGITS.finditer(text):
        found.update((value_of(match["number"]), digits_value(match)))
    for match in WORDS.finditer(text):
        words = _JOINED.sub(" ", match[0].lower()).split()
        found.update(Decimal(_WORDS[word]) for word in words if word in _WORDS)
        found.add(_of_words(words))
    for match in HAN_NUMBER.finditer(text):
        found.update(Decimal(_HAN_ONES[sign]) for sign in match[0] if sign in _HAN_ONES)
        found.add(han_value(match[0]))
    lowered = text.lower()
    found.update(Decimal(value) for word, value in _LOOSE.items() if word in lowered)
    if "half" in lowered or "半" in lowered:
        found.add(Decimal(50).normalize())
    return found | continental(text) | set(_percents(text))


def continental(text: str) -> set[Decimal]:
    """Return numbers that a text writes as in `1.200,50` and `12,5`."""
    written = (match[0].replace(".", "") for match in _CONTINENTAL.finditer(text))
    return {Decimal(one.replace(",", ".")).normalize() for one in written}


def value_of(digits: str) -> Decimal:
    """Return the value of a number in digits, its thousands parted or not."""
    return Decimal(re.sub(r"[,' \u00a0\u202f]", "", digits)).normalize()


def digits_value(found: re.Match[str]) -> Decimal:
    """Return the value of what `DIGITS` found: `1.2k` is 1200."""
    times = _MULTIPLIERS[found["times"].lower()] if found["times"] else 1
    return (value_of(found["number"]) * times).normalize()


def words_value(written: str) -> Decimal:
    """Return the value of what `WORDS` found."""
    return _of_words(_JOINED.sub(" ", written.lower()).split())


def han_value(written: str) -> Decimal:
    """Return the value of Han numerals: `二〇二六`, `一千二百`, `三点五`, `廿`."""
    if written in "廿卅":
        return Decimal(20 if written == "廿" else 30)
    whole, _, part = written.partition("点")
    if all(sign in _HAN_ONES for sign in whole):
        value = Decimal("".join(str(_HAN_ONES[sign]) for sign in whole))
    else:
        value = Decimal(_han_whole(whole))
    if part and all(sign in _HAN_ONES for sign in part):
        value += Decimal("0." + "".join(str(_HAN_ONES[sign]) for sign in part))
    return value.normalize()


def _han_whole(written: str) -> int:
    total = section = last = 0
    unit = 1
    for sign in written:
        if sign in _HAN_ONES:
            last = _HAN_ONES[sign]
        elif sign in _HAN_TENS:
            unit = _HAN_TENS[sign]
            section += (last or 1) * unit
            last = 0
        else:
            unit = _HAN_MYRIADS[sign]
            total = (total + section + last or 1) * unit
            section = last = 0
    bare = last * unit // 10 if last and unit > 10 and "零" not in written else last  # noqa: PLR2004 - 一千二 is 1200
    return total + section + bare


def _of_words(words: list[str]) -> Decimal:
    total = part = 0
    for word in words:
        if word in _SCALES:
            part = (part or 1) * _SCALES[word]
            if _SCALES[word] > 100:  # noqa: PLR2004 - a hundred is part of what follows
                total, part = total + part, 0
        elif word in _WORDS:
            part += _WORDS[word]
    return Decimal(total + part).normalize()


def _percents(text: str) -> Iterator[Decimal]:
    """Return shares in per cent: `three quarters`, `四分之三`; `八折` is 80, and 20 less."""
    for match in _SHARE.finditer(text):
        if match["part"]:
            many = _WORDS.get(match["many"].lower(), 1)
            yield Decimal(round(100 * many / _PARTS[match["part"].lower()])).normalize()
        elif match["of"] and (of := han_value(match["of"])):
            yield Decimal(round(100 * han_value(match["han"]) / of)).normalize()
        elif written := match["price"]:
            price = Decimal(written) if written.isascii() else han_value(written)
            price = price * 10 if price < 10 else price  # noqa: PLR2004 - of ten, or of a hundred
            yield from (price.normalize(), (100 - price).normalize())
