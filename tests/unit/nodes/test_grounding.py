"""R44: what was said in any spelling is no invention, and what was not said is one."""

from datetime import datetime

import pytest

from everlong.nodes.claims import claims
from everlong.nodes.grounding import said_in, ungrounded

MONDAY = datetime(2026, 3, 9, 12)  # noqa: DTZ001 - on the user's own clock
SAID = [
    (
        "our exports go through Shanghai port only, customer code ALPHA",
        "Exports go through Shanghai port only; customer code ALPHA.",
    ),
    ("I signed on 30 October", "Signed on 2026-10-30"),
    ("十月三十日签约", "Signed 2026-10-30"),
    ("2026-10-30 签约", "十月三十日签约"),
    ("let's meet tomorrow at 3pm", "Meeting 2026-03-10 at 15:00"),
    ("budget is 1.2k USD", "Budget: $1,200"),
    ("预算一千二百元", "预算1200元"),
    ("预算3万元", "Budget is 30,000 CNY"),
    ("five percent", "5%"),
    ("百分之五的折扣", "5% discount"),
    ("for the next two weeks no mails", "No mails until 2026-03-23"),
    ("for two weeks", "valid 14 days"),
    ("my phone is 555 0142", "phone is 555-0142"),
    ("order px 4471", "Order PX-4471"),
    ("I use github and java 17", "Uses GitHub, Java 17"),
    ("next Monday", "2026-03-16"),
    ("on Friday", "2026-03-13"),
    ("下周三开会", "2026-03-18 开会"),
    ("the 15th", "2026-03-15"),
    ("15号", "3月15日"),
    ("at half past three", "15:30"),
    ("下午三点半", "15:30"),
    ("third quarter", "Q3"),
    ("二十箱", "20 boxes"),
    ("twenty-four containers", "24 containers"),
    ("in May next year", "May 2027"),
    ("last year", "2025"),
    ("明年三月", "2027-03"),
    ("my badge number is 5512", "Badge 5512"),
    (
        "Spring Boot 4.1.0 and start class AgentScopeJavaApplication",
        "Spring Boot 4.1.0; start class `AgentScopeJavaApplication`",
    ),
    ("src/main/java is the folder", "Source folder src/main/java"),
    ("mail me at a.b@x.example", "Mail: a.b@x.example"),
    ("暗号“夜莺”", 'Code word "夜莺"'),
    ("https://example.com/a", "See https://example.com/a/"),
    ("three hundred employees", "300 employees"),
    ("between 10-20 people", "10-20 people"),
    ("I'm 36", "36 years old"),
    ("Christmas", "2026-12-25"),
    ("end of the month", "2026-03-31"),
    ("我三月三号生日", "Birthday: March 3"),
    ("a dozen eggs", "12 eggs"),
    ("half of it", "50%"),
    ("+86 138 0013 8000", "13800138000"),
    ("30/10/2026", "30 October 2026"),
    ("Version two", "v2"),
    ("room 3F-07", "desk is 3F-07"),
    ("two kids, Ann and Bo", "two children"),
    ("I prefer green tea", "The user prefers green tea"),
    ("100万", "1 million"),
    ("一万两千", "12,000"),
    ("两点五公斤", "2.5 kg"),
    ("十二月二十五号", "12月25日"),
    ("1.5 million dollars", "$1.5 million"),
    ("$1,500.00", "1500 dollars"),
    ("QQ群 12345", "QQ 12345"),
    ("周五下午五点前", "周五17:00前"),
    ("2026年10月30日", "30 Oct 2026"),
    ("万一下雨就改期", "万一下雨就改期"),
    ("千万别忘", "千万别忘了"),
    ("I get up at six", "gets up at 6:00"),
    ("三个孩子", "有三个孩子"),
    ("合同三年", "合同期3年"),
    ("CTX-009", "ctx 009"),
    ("ten past nine", "9:10"),
    ("the deadline is the first of June", "2026-06-01"),
    ("1st June", "June 1"),
    ("every other day", "every other day"),
    ("we ship on day 1 and day 15", "ships on the 1st and 15th"),
    ("our VAT id is DE 123 456 789", "VAT ID: DE123456789"),
    ("我的工号是5512", "工号 5512"),
    ("出口只走上海港，客户代码ALPHA", "出口只走上海港；客户代码 ALPHA"),
    ("报价以后一律含税13%", "报价一律含税（13%）"),
    ("会议改到后天上午十点", "会议改到2026-03-11 10:00"),
    ("我去年十月搬到卑尔根", "2025年10月搬到卑尔根"),
    ("合同到二〇二七年底", "合同到2027年底"),
    ("see you on the thirtieth of October", "2026-10-30"),
    ("pay within thirty days", "payment within 30 days"),
    ("the deposit is two hundred and fifty euros", "deposit: 250 EUR"),
    ("每周三例会", "例会：每周三"),
    ("我们九月一号开学", "开学日期：2026-09-01"),
    ("call me at 9.30 pm", "call at 21:30"),
    ("下个月十五号交房租", "2026-04-15 交房租"),
    ("between 8 and 9 o'clock", "8:00-9:00"),
    ("use port 9580", "端口 9580"),
    ("两百箱", "200箱"),
    ("the Boeing 737-800", "Boeing 737-800"),
    ("三分之一", "1/3"),
    ("Q3 sales rose 4%", "Q3 sales +4%"),
    ("my kids are 7 and nine", "children aged 7 and 9"),
    ("rent is €1.200", "rent €1200"),
    ("die Miete ist 1.200,50 Euro", "rent is 1200.50 EUR"),
    ("it costs 12,5 %", "12.5%"),
    ("the rent is 1200 euros", "rent: €1,200"),
    ("my number is 0049 30 901820", "phone: +49 30 901820"),
    ("the table is 2 metres long", "table: 2 m"),
    ("node 20 LTS", "Node.js 20"),
    ("half an hour", "30 minutes"),
    ("一个半小时", "90分钟"),
    ("a year and a half", "18 months"),
    ("半年", "6 months"),
    ("a month", "one month"),
    ("every fortnight", "every 2 weeks"),
    ("48 hours", "2 days"),
    ("two dozen", "24"),
    ("three quarters of it", "75%"),
    ("四分之三", "75%"),
    ("打八折", "20% off"),
    ("from 1st to 5th April", "April 1-5"),
    ("on holiday 1–5 April 2026", "2026-04-01 to 2026-04-05"),
    ("7月1日至15日", "2026-07-15"),
    ("due 3-15", "15 March"),
    ("the project ends in Q4", "ends by 2026-12-31"),
    ("until the end of 2027", "until 2027-12-31"),
    ("last summer", "summer of 2025"),
    ("last Fri", "2026-03-06"),
    ("tomorrow", "Tuesday"),
    ("每周二、四", "every Tuesday and Thursday"),
    ("weekdays only", "Monday to Friday"),
    ("see you on 2026-05-02", "Saturday, Q2"),
    ("budget 5000", "Budget: 5000 USD"),
    ("they paid $500", "500 dollars"),
    ("meet at 9 or half past two", "9:00, 2:30"),
    (
        'a quote: "Turn on the light - it hides in the dark," he said',
        '"Turn on the light - it hides in the dark,"',
    ),
    ("path <users>/x and `{a}`", "path <users>/x and `{a}`"),
]
INVENTED = [
    ("our exports go through Shanghai", "Since 2026-02-13 exports go through Shanghai"),
    ("I live in Oslo", "Lives in Oslo since 2019"),
    ("order PX-4471", "Order PX-4472"),
    ("PX-4471", "PX-44"),
    ("budget is fine", "Budget 1200 USD"),
    ("meet tomorrow", "meet on 2026-03-15"),
    ("meet at 3", "meet at 16:30"),
    ("十月三十日", "十月三十一日"),
    ("预算一千元", "预算两千元"),
    ("code word", 'code word "heron"'),
    ("customer code", "customer code ALPHA"),
    ("no mails", "No mails for 14 days"),
    ("two weeks", "three weeks"),
    ("两周", "三周"),
    ("signed the lease yesterday", "Signed the lease on 2026-03-19"),
    ("likes tea", "likes tea 20%"),
    ("mail me", "mail x@evil.test"),
    ("一次", "二十次"),
    ("forty goats", "forty-one goats"),
    ("I use Java", "Java 17"),
    ("meet on Monday", "meet on 2026-04-20"),
    ("October", "30 October"),
    ("my phone", "phone 555-0142"),
    ("百分之五", "百分之六"),
    ("room 3", "room 12"),
    ("5512", "55123"),
    ("10 boxes", "10,000 boxes"),
    ("会议改到后天", "会议改到2026-03-15"),
    ("出口走上海港", "出口走上海港，客户代码ALPHA"),
    ("我搬到卑尔根", "2025年搬到卑尔根，电话 555-0142"),
    ("on 2026-10-30 we ship", "we ship 30 boxes"),
    ("deposit 250", "deposit 2500"),
    ("三十箱", "三百箱"),
    ("十月", "十一月"),
    ("call at 9", "call at 10:45"),
    ("customer ALPHA-1", "customer ALPHA-2"),
    ("file a.txt", "file b.txt"),
    ("v1.2", "v1.3.0"),
    ("Shanghai", "Order no. 77 goes to Shanghai"),
    ("I moved last year", "moved on 2025-07-13"),
    ("I moved last year", "moved in July 2025"),
    ("we meet next week", "meets on 2026-03-18"),
    ("the fair is in Q3", "the fair is in Q4"),
    ("第三季度", "第四季度"),
    ("exports via Shanghai", "exports via Shanghai every Wednesday"),
    ("出口走上海港", "出口走上海港，每周三出货"),
    ("出口走上海港", "出口走上海港，有效期两年"),
    ("budget 5000 EUR", "budget 5000 USD"),
    ("预算5000元", "预算5000美元"),
    ("5 boxes", "5 dozen boxes"),
    ("seat 12A", "seat 12B"),
    ("两点半", "14:00"),
    ("half past two", "2:00"),
    ("half an hour", "45 minutes"),
    ("半年", "8个月"),
    ("三分之一", "50%"),
    ("call +49 30 901820", "call +49 30 901821"),
    ("April 1-5", "April 1-15"),
    ("打八折", "30% off"),
]


@pytest.mark.parametrize(("said", "fact"), SAID)
def test_what_was_said_in_any_spelling_is_no_false_alarm(said: str, fact: str) -> None:
    assert ungrounded(fact, said_in([(said, MONDAY)])) == []


@pytest.mark.parametrize(("said", "fact"), INVENTED)
def test_what_was_not_said_is_told(said: str, fact: str) -> None:
    assert ungrounded(fact, said_in([(said, MONDAY)]))


def test_the_words_for_days_count_from_the_day_of_their_message() -> None:
    then = datetime(2026, 3, 2, 12)  # noqa: DTZ001 - on the user's own clock
    said = said_in([("I signed the lease yesterday.", then), ("hello", MONDAY)])
    assert ungrounded("Signed the lease on 2026-03-01", said) == []
    assert ungrounded("Signed the lease on 2026-03-08", said) == ["2026-03-08"]


def test_the_invented_date_of_the_experiment_is_found() -> None:
    said = said_in([("our exports go through Shanghai port only, customer code ALPHA", MONDAY)])
    fact = "Exports go through Shanghai port only; customer code ALPHA (as of 2026-02-13)"
    assert ungrounded(fact, said) == ["2026-02-13"]


def test_claims_come_in_reading_order_each_once() -> None:
    found = claims("PX-4471 on 30 October at 15:00: 40 boxes, PX-4471 again, 百分之五")
    assert [one.written for one in found] == ["PX-4471", "30 October", "15:00", "40", "百分之五"]


@pytest.mark.parametrize("text", ["", "likes tea", "万一下雨就改期", "---", "## Facts", "一些人"])
def test_a_text_without_figures_claims_nothing(text: str) -> None:
    assert claims(text) == []


def test_a_megabyte_is_read_in_linear_time() -> None:
    said = said_in([("order PX-4471 of 30 October 2026, 十月三十日 " * 3_000, MONDAY)])
    assert ungrounded("PX-4471, 2026-10-30", said) == []
