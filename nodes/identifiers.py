"""What a summary must not lose: the exact names, numbers and phrases in a text (R19).

Every quantifier is possessive or bounded, so that a megabyte of anything takes linear time.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping

_NUMBER = r"(?:\d{1,3}(?:[,' ]\d{3}){1,5}(?!\d)(?:[.,]\d{1,4}(?!\d))?|\d++(?:[.,]\d{1,12}+){0,3})"
_CLOCK = r"\d{1,2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?!\d)"
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
_MONTH = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?"
    r"|Sept?(?:ember)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)(?![a-z])\.?"
)
_SIGNS = "$€£¥￥₹₩₽"
_CURRENCY = r"(?:USD|EUR|GBP|CNY|RMB|JPY|CHF|HKD|AUD|CAD|SGD|INR|KRW|BRL)(?![A-Za-z])"
_MONEY_WORD = (
    r"(?:(?:[Ee]uros?|[Dd]ollars?|[Pp]ounds?|[Yy]uan|[Yy]en)(?![A-Za-z])"
    r"|[百千万亿]{0,2}(?:元|块钱|美元|欧元|日元|英镑|港元|港币|人民币))"
)
_ONES = "〇零一二三四五六七八九"
_HAN_NUMBER = f"[{_ONES}两十百千万亿壹贰叁肆伍陆柒捌玖拾佰仟]"
_HAN_MONEY = r"(?:元|圆|块钱|美元|欧元|日元|英镑|港元|港币|人民币)"
_SEGMENT = r"[A-Za-z0-9_.@+%=~-]{1,120}+"
_SUFFIX = (
    r"(?:md|txt|csv|tsv|jsonl?|ya?ml|toml|ini|cfg|conf|env|lock|log|xml|html?|s?css|[jt]sx?|mjs|pyi?"
    r"|ipynb|java|kt|scala|go|rs|rb|php|cs|cc|cpp|hpp|c|h|sh|bat|ps1|sql|db|parquet|proto|pdf"
    r"|docx?|xlsx?|pptx?|png|jpe?g|gif|svg|webp|mp[34]|wav|zip|tar|t?gz|jar|war|whl|exe|bak)"
)
_CODE_CUE = (
    r"(?:[Cc]ode(?:[ -]?(?:word|name))?|[Pp]ass(?:word|code|phrase)|[Ii][Dd]|[Kk]ey(?:word)?"
    r"|[Rr]eference|[Nn]umber)(?: (?:is|was)|[:=])?\s{0,2}"
)
_HAN_CUE = "(?:代码|代号|编号|编码|暗号|口令|密码|单号|工号|型号)"
_WORD = r"[A-Za-z0-9]++(?:[-_]{1,2}[A-Za-z0-9]++)*+"

# Each pattern has one group, the identifier; the first pattern that fits at a place wins.
_PHRASES = {
    "straight": r'(?<![A-Za-z0-9])"(?=\S)([^"\n]{1,60})(?<=\S)"(?![A-Za-z0-9]|\s{0,2}:)',
    "curly": r"“([^“”\n]{1,60})”",
    "corner": r"「([^「」\n]{1,60})」",
    "double_corner": r"『([^『』\n]{1,60})』",
    "title": r"《([^《》\n]{1,60})》",
    "tick": r"`([^`\n]{1,60})`",
}
_TOKENS = {
    "url": r"((?:[a-z][a-z0-9+.-]{1,15}://|www\.)[!#-;=?-Z\[\]_a-z~]{1,2000}+)",
    "mail": r"(?<![.%+_-])([A-Za-z0-9._%+-]{1,64}+@[A-Za-z0-9-]{1,63}"
    r"(?:\.[A-Za-z0-9-]{1,63}){1,6}+)",
    "drive": r"([A-Za-z]:\\[A-Za-z0-9_.@+%=~$\\-]{0,400}+)",
    "instant": rf"(\d{{4}}-\d{{2}}-\d{{2}}(?:[T ]{_CLOCK})?(?:Z|[+-]\d{{2}}:\d{{2}})?(?![\d-]))",
    "digit_date": r"(\d{4}(?:/\d{1,2}/|\.\d{1,2}\.)\d{1,2}(?!\d)"
    r"|\d{1,2}(?:/\d{1,2}/|\.\d{1,2}\.|-\d{1,2}-)\d{4}(?!\d)|\d{1,2}/\d{1,2}/\d{2}(?![\d/]))",
    "han_date": r"((?:\d{2,4}年)?\d{1,2}月\d{1,2}[日号]|\d{4}年(?:\d{1,2}月)?)",
    "spelled_date": rf"((?:[{_ONES}]{{4}}年)?[一二三四五六七八九十]{{1,2}}月"
    rf"[一二三四五六七八九十廿]{{1,3}}[日号]|[{_ONES}]{{4}}年)",
    "spelled_money": rf"(?<!{_HAN_NUMBER})({_HAN_NUMBER}{{2,20}}+{_HAN_MONEY})",
    "share": r"(\d{1,4}(?:[.,]\d{1,4})?\s?[%‰％])",
    "word_date": rf"({_DAY} (?:of )?{_MONTH}(?:,? \d{{4}}(?!\d))?"
    rf"|{_MONTH} (?:{_DAY}(?![\d:])(?:,? \d{{4}}(?!\d))?|\d{{4}}(?!\d)))",
    "money": rf"((?:(?:[A-Z]{{1,2}})?[{_SIGNS}]|{_CURRENCY})\s?{_NUMBER}"
    r"(?: ?(?:[mb]illion|[百千万亿]{1,2}))?"
    rf"|{_NUMBER}\s?(?:[{_SIGNS}]|{_CURRENCY}|{_MONEY_WORD}))",
    "time": rf"({_CLOCK}(?: ?[AaPp]\.?[Mm](?![A-Za-z]))?|\d{{1,2}} ?[ap]m(?![A-Za-z])"
    r"|\d{1,2}点(?:半|\d{1,2}分?|[一三]刻))",
    "version": r"(v\d++(?:\.\d++){0,4}+(?:-[A-Za-z0-9.]{1,20})?(?![A-Za-z])"
    r"|\d{1,5}(?:\.\d{1,9}){2,4}+(?:[-.+][A-Za-z][A-Za-z0-9.]{0,20}+)?"
    r"|[A-Z][A-Za-z]{1,20}+ \d{1,4}\.\d{1,4}(?![.,]?\d|[A-Za-z%]))",
    "root_path": rf"(?<!/)((?:~|\.{{1,2}})?(?:/{_SEGMENT}){{2,40}}+/?"
    rf"|(?<![^\s\"'(（：:，,])/{_SEGMENT})",
    "path": rf"({_SEGMENT}(?:/{_SEGMENT}){{1,40}}+/?)",
    "file": rf"([A-Za-z0-9_][A-Za-z0-9_-]{{0,100}}+(?:\.[A-Za-z0-9_-]{{1,40}}){{0,4}}"
    rf"\.{_SUFFIX}(?![A-Za-z0-9]))",
    "stated": rf"(?:{_CODE_CUE}|(?<={_HAN_CUE})|(?<={_HAN_CUE}[是为:：= ]))"
    r"([A-Z][A-Z0-9]{1,40}+(?![A-Za-z0-9_-]))",
    "tag": r"(?<![A-Za-z0-9#])(#\d{1,12}+)",
    "phone": r"(\+\d{1,4}+(?:[ -]\d{2,5}+){1,5}|1\d\d(?:[ -]\d{4}){2}(?!\d))",
    "long": r"(\d{1,3}(?:,\d{3}){1,6}+(?:\.\d{1,9}+)?(?!\d)"
    r"|\d{4,}+(?:\.\d{1,9}+)?(?![A-Za-z0-9_-]))",
    "word": rf"({_WORD})",
}


def _any_of(patterns: Mapping[str, str]) -> str:
    return "|".join(f"(?P<{name}>{pattern})" for name, pattern in patterns.items())


# A token begins neither inside a Latin word nor in a number; a Han character may stand before it.
_PLACE = re.compile(
    rf"(?=[A-Za-z0-9\"“「『《`/~.#+{_SIGNS}]|{_HAN_NUMBER})"
    rf"(?:{_any_of(_PHRASES)}|(?<![A-Za-z0-9À-ɏ])(?:{_any_of(_TOKENS)}))"
)
_WORD_HERE = re.compile(_WORD)
_QUANTITY = re.compile(r"\d+[A-Za-z]{1,3}")
_LETTER = "[0-9A-Za-zÀ-ɏͰ-ӿ]"
"""Of the scripts that write words apart."""
_THREE = re.compile(r"\d{3}(?!\d)")
_CAMEL = re.compile(r"[a-z0-9][A-Z]|[A-Z]{2}[a-z]{2}")

_WIDE = {wide: wide - 0xFEE0 for wide in (*range(0xFF10, 0xFF1A), *range(0xFF21, 0xFF5B), 0xFF0D)}
"""Full-width letters, digits and hyphen, one for one, so that places in the text stay the same."""


def identifiers(text: str) -> list[str]:
    """Return the identifiers of `text` as they are written, in order of first appearance.

    Codes, amounts, dates, times, paths, addresses, versions, long numbers, class names and quoted
    phrases of up to 60 characters. One that is part of a longer one at its place is not returned.
    """
    narrow = text.translate(_WIDE)
    found: dict[str, None] = {}
    place = 0
    while match := _PLACE.search(narrow, place):
        begin, end = match.span((match.lastindex or 0) + 1)
        place = match.end()
        if not (stop := _stop(str(match.lastgroup), narrow, begin, end)):
            word = _WORD_HERE.match(narrow, begin)
            place = word.end() if word else begin + 1
            stop = place if word and _is_code(word[0]) else 0
        if stop:
            found[text[begin:stop].strip()] = None
    return list(found)


def _stop(kind: str, text: str, begin: int, end: int) -> int:
    """Return where the identifier of this kind ends; 0 where it is none after all."""
    if kind in _PHRASES:
        return end if any(map(str.isalnum, text[begin:end])) else 0
    if kind in ("url", "path", "root_path", "drive", "mail"):
        bare = text[begin:end].rstrip(".,;:!?'=")
        if bare.endswith(")") and "(" not in bare:
            bare = bare.rstrip(").,")
        end = begin + len(bare)
    if kind == "path":
        return end if _is_path(text[begin:end]) else 0
    if kind == "word":
        return end if _is_code(text[begin:end]) else 0
    return end


def _is_path(text: str) -> bool:
    """Tell `src/main/java` and `docs/index.md` from `and/or`, `24/7` and `PX-1/PX-2`."""
    if text.replace("/", "").replace(".", "").isdigit():
        return False
    return text.count("/") > 1 or any(sign in text for sign in "._@")


def _is_code(word: str) -> bool:
    """Tell `PX-4471`, `MSKU1234567`, `cust_nm` and `AgentScope` from words and quantities."""
    letters = sum(map(str.isalpha, word))
    digits = sum(map(str.isdigit, word))
    if not letters:
        return digits >= 6  # noqa: PLR2004 - a telephone number or a month, not a range such as 10-20
    if "_" in word:
        return True
    if not digits:
        return _is_name(word)
    parts = word.split("-")
    if len(parts) > 1:
        led = word[0].isalpha() and any(part[:1].isdigit() for part in parts)
        return led or not word.islower() or len(word) > 20  # noqa: PLR2004 - a long one is a key
    if _QUANTITY.fullmatch(word):
        return False
    return len(word) >= (6 if word.islower() else 4) and digits > 1


def _is_name(word: str) -> bool:
    """Tell a class name or `ALPHA-BETA` from a plain word."""
    if "-" in word:
        return word.isupper() and len(word) > 4 and min(map(len, word.split("-"))) > 1  # noqa: PLR2004 - not `X-Y`
    return len(word) > 4 and bool(_CAMEL.search(word))  # noqa: PLR2004 - not `PhD`, `iOS`


def missing(identifiers: Iterable[str], text: str) -> list[str]:
    """Return those that `text` does not hold as a whole: `PX-44` is not held by `PX-4471`.

    Case counts; compatibility forms such as full-width letters do not.
    """
    whole = unicodedata.normalize("NFKC", text)
    return [name for name in identifiers if not _holds(whole, unicodedata.normalize("NFKC", name))]


def _holds(text: str, name: str) -> bool:
    return name != "" and name in text and bool(_whole(name).search(text))


def _whole(name: str) -> re.Pattern[str]:
    """Compile a name so that it fits only where its token neither begins before it nor goes on.

    A hyphen, a point and, in a path, a slash join a token's parts; a comma joins thousands.
    """
    joint = "[-_./]" if "/" in name else "[-_.]"
    before = rf"(?<!{_LETTER})(?<!{_LETTER}{joint})" + (r"(?<!\d,)" if _THREE.match(name) else "")
    after = rf"(?!{joint}?{_LETTER})" + (rf"(?!,{_THREE.pattern})" if name[-1].isdigit() else "")
    if re.match(_HAN_NUMBER, name):
        return re.compile(f"(?<!{_HAN_NUMBER}){re.escape(name)}")
    return re.compile(
        (before if re.match(_LETTER, name) else "")
        + re.escape(name)
        + (after if re.match(_LETTER, name[-1]) else "")
    )
