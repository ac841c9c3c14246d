import pytest

from everlong.nodes.identifiers import identifiers, missing


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("订单PX-4471已确认", ["PX-4471"]),
        ("Container MSKU1234567 and CTX-009.", ["MSKU1234567", "CTX-009"]),
        ("FACT-0001, ALPHA-7 and 3F-07", ["FACT-0001", "ALPHA-7", "3F-07"]),
        ("customer code ALPHA, 客户代码 BETA", ["ALPHA", "BETA"]),
        ("badge 5512, invoice 12,500.75", ["5512", "12,500.75"]),
        ("issue #4421 of a1b2c3d4", ["#4421", "a1b2c3d4"]),
        ("rename cust_nm in AgentScopeJavaApplication", ["cust_nm", "AgentScopeJavaApplication"]),
        ("call +47 555 01 42 or 555-0142", ["+47 555 01 42", "555-0142"]),
        ("PX-4471/PX-4472", ["PX-4471", "PX-4472"]),
        ("单号ＰＸ－４４７１", ["ＰＸ－４４７１"]),
    ],
)
def test_codes_and_numbers_are_found(text: str, found: list[str]) -> None:
    assert identifiers(text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("$1,250.00 or 89,90 euros", ["$1,250.00", "89,90 euros"]),
        ("¥300，也就是300元", ["¥300", "300元"]),
        ("12.40 EUR, USD 7 and 5万元", ["12.40 EUR", "USD 7", "5万元"]),
        ("2026-03-05T10:00:00Z, 2026-11-05", ["2026-03-05T10:00:00Z", "2026-11-05"]),
        ("截止2026年3月5日，会议3月6日", ["2026年3月5日", "3月6日"]),
        ("共三千五百元，二〇二六年三月五日付", ["三千五百元", "二〇二六年三月五日"]),
        ("押金叁万圆，十二月三十一日前退", ["叁万圆", "十二月三十一日"]),
        ("the rate is 12.5% or 7 %, 税率１３％", ["12.5%", "7 %", "１３％"]),
        ("5 March 2026, March 5th, 3/5/2026", ["5 March 2026", "March 5th", "3/5/2026"]),
        ("at 8:30 am or 17:05:09, 下午3点半", ["8:30 am", "17:05:09", "3点半"]),
        ("Spring Boot 4.1.0 on Python 3.12, v2.1-rc1", ["4.1.0", "Python 3.12", "v2.1-rc1"]),
    ],
)
def test_amounts_dates_times_and_versions_are_found(text: str, found: list[str]) -> None:
    assert identifiers(text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("源码目录 src/main/java。", ["src/main/java"]),
        (
            "/srv/in/ledger_07.csv, ./run.sh and /data",
            ["/srv/in/ledger_07.csv", "./run.sh", "/data"],
        ),
        ("C:\\x and C:\\Users\\kim.", ["C:\\x", "C:\\Users\\kim"]),
        ("schema.sql, then README.md.", ["schema.sql", "README.md"]),
        ("see https://a.example/x?id=123456#4).", ["https://a.example/x?id=123456#4"]),
        ("请看https://a.example/b，谢谢", ["https://a.example/b"]),
        ("mail ops@example.test.", ["ops@example.test"]),
        ("“夜莺”和「云雀」，《论语》", ["夜莺", "云雀", "论语"]),
        ('he said "come back" and `make test`', ["come back", "make test"]),
    ],
)
def test_paths_addresses_and_quoted_phrases_are_found(text: str, found: list[str]) -> None:
    assert identifiers(text) == found


@pytest.mark.parametrize(
    "text",
    [
        "Either and/or, 24/7, km/h, a 10-year plan and 16GB.",
        "I am here. It is e.g. a plain sentence, isn't it?",
        "今天下雨，我们三点再说。",
        "二元一次方程，千万不要一月再来，第三十二页。",
        '{"city": 1, "n": 2}',
        "“一句\n跨行的引文”",
        "“——” and `...`",
        f'"{"long " * 13}"',
        "",
    ],
)
def test_plain_words_are_no_identifiers(text: str) -> None:
    assert identifiers(text) == []


def test_nothing_inside_a_bigger_one_is_returned_and_nothing_twice() -> None:
    text = "https://a.example/PX-4471/2026-03-05 “order PX-1 of $300” PX-9 PX-9"
    assert identifiers(text) == [
        "https://a.example/PX-4471/2026-03-05",
        "order PX-1 of $300",
        "PX-9",
    ]


@pytest.mark.parametrize(
    "piece",
    [
        "a",
        "1",
        "1,",
        "a.",
        "a/",
        "a@",
        "a-",
        "1.1.",
        "1 ",
        '"a ',
        "“",
        "/a",
        "x://",
        "code ",
        "订单",
    ],
)
def test_a_repeated_piece_takes_linear_time(piece: str) -> None:
    # Quadratic time would be hours here; no clock is needed to notice it.
    assert len(identifiers(piece * (100_000 // len(piece)))) <= 3


def test_missing_wants_the_whole_token() -> None:
    text = "PX-4471 and 4.1.0, $1,250.00, src/main/java"
    assert missing(["PX-44", "X-4471", "4.1", "250.00", "1,250", "src/main"], text) == [
        "PX-44",
        "X-4471",
        "4.1",
        "250.00",
        "1,250",
        "src/main",
    ]
    assert missing(["PX-4471", "4.1.0", "$1,250.00", "src/main/java"], text) == []


def test_missing_takes_chinese_as_it_runs() -> None:
    assert missing(["夜莺", "PX-4471", "300元"], "暗号是夜莺，订单PX-4471共300元。") == []
    assert missing(["300元"], "共1300元") == ["300元"]
    assert missing(["三千五百元"], "共二万三千五百元") == ["三千五百元"]
    assert missing(["三千五百元"], "共三千五百元整") == []
    assert missing(["4471", "4472"], "4471,4472") == []


def test_missing_minds_case_but_not_width() -> None:
    assert missing(["px-4471", "PX-4471"], "ＰＸ－４４７１") == ["px-4471"]


def test_missing_separates_codes_at_a_slash_and_at_the_end_of_a_sentence() -> None:
    assert missing(["PX-1", "PX-2", "README.md"], "PX-1/PX-2. See README.md.") == []
