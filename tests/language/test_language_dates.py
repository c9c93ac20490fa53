"""Dates in text, seen from a reference day (a Monday)."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ricordo.language import annotate_dates, find_dates, find_validity
from ricordo.language.packs import TableKind, pack_table

MONDAY = date(2023, 5, 8)


@pytest.mark.parametrize(
    ("said", "annotated"),
    [
        ("It goes out a fortnight from today.", "It goes out a fortnight from today (2023-05-22)."),
        ("We sing a fortnight tomorrow.", "We sing a fortnight tomorrow (2023-05-23)."),
        ("She lands on Thursday week.", "She lands on Thursday week (2023-05-18)."),
        ("The theme comes a week on Friday.", "The theme comes a week on Friday (2023-05-19)."),
        ("Friday the 26th at five", "Friday the 26th (2023-05-26) at five"),
        ("Friday the 5th was loud", "Friday the 5th (2023-05-05) was loud"),
        ("la verifica è mercoledì 17", "la verifica è mercoledì 17 (2023-05-17)"),
        ("llega de hoy en ocho", "llega de hoy en ocho (2023-05-15)"),
        ("Dienstag in einer Woche", "Dienstag in einer Woche (2023-05-16)"),
        ("lundi en huit", "lundi en huit (2023-05-22)"),
        ("wracam jutro", "wracam jutro (2023-05-09)"),
        ("завтра уезжаю", "завтра (2023-05-09) уезжаю"),
        ("明天出发", "明天 (2023-05-09)出发"),
        ("明日から東京です", "明日 (2023-05-09)から東京です"),
        ("today's soup and this year's budget", "today's (2023-05-08) soup and this year's (2023) budget"),
        ("tomorrow, and tomorrow again", "tomorrow (2023-05-09), and tomorrow again"),
    ],
)
def test_the_day_stands_behind_its_words_once(said: str, annotated: str) -> None:
    assert annotate_dates(said, MONDAY) == annotated


@pytest.mark.parametrize(
    "text",
    [
        "we go in the last week of February",
        "the next day he left",
        "twice a week on Friday",
        "on Friday 5 pm we stop",
        "Friday 5 people came",
        "My birthday is on 11 November.",
        "The 11th of November is mum's day, every year.",
        "Mein Geburtstag ist am 3. Mai.",
        "我的生日是5月3日。",
        "The song “Yesterday” is old, see `today`.",
        "We work with Tomorrow Labs and Next Week Inc.",
        "hoy en día nadie lo usa",
        "von heute auf morgen ist alles anders",
        "dall'oggi al domani",
        "hoje em dia",
        "au jour d'aujourd'hui",
        "corro por la mañana",
        "from Monday to Friday",
        "Tomorrow is another day.",
    ],
)
def test_what_is_no_day_seen_from_today_gets_no_note(text: str) -> None:
    assert annotate_dates(text, MONDAY) == text


@pytest.mark.parametrize(
    ("text", "iso"),
    [
        ("yesterday", "2023-05-07"),
        ("the day before yesterday", "2023-05-06"),
        ("tomorrow", "2023-05-09"),
        ("last night", "2023-05-07"),
        ("last Friday", "2023-05-05"),
        ("last Monday", "2023-05-01"),
        ("next Monday", "2023-05-15"),
        ("this Friday", "2023-05-12"),
        ("next Tuesday", "2023-05-16"),
        ("coming Tuesday", "2023-05-09"),
        ("nächsten Dienstag", "2023-05-16"),
        ("kommenden Dienstag", "2023-05-09"),
        ("two weeks ago", "2023-04-24 to 2023-04-30"),
        ("a couple of days ago", "2023-05-06"),
        ("last week", "2023-05-01 to 2023-05-07"),
        ("last weekend", "2023-05-06 to 2023-05-07"),
        ("next month", "2023-06"),
        ("last month", "2023-04"),
        ("last year", "2022"),
        ("3 years ago", "2020"),
        ("in ten days", "2023-05-18"),
        ("it is due in ten days", "2023-05-18"),
        ("three weeks from today", "2023-05-29"),
        ("two days from tomorrow", "2023-05-11"),
        ("three months from now", "2023-08"),
        ("tomorrow night", "2023-05-09"),
        ("yesterday evening", "2023-05-07"),
        ("May 7", "2023-05-07"),
        ("December 30", "2022-12-30"),
        ("7 May 2021", "2021-05-07"),
        ("March 2022", "2022-03"),
        ("in 2019", "2019"),
        ("2024-02-29", "2024-02-29"),
        ("gestern", "2023-05-07"),
        ("vor drei Tagen", "2023-05-05"),
        ("letzte Woche", "2023-05-01 to 2023-05-07"),
        ("il y a 3 jours", "2023-05-05"),
        ("el mes pasado", "2023-04"),
        ("ieri", "2023-05-07"),
        ("ontem", "2023-05-07"),
        ("三天前", "2023-05-05"),
        ("去年", "2022"),
        ("来週", "2023-05-15 to 2023-05-21"),
        ("next Monday morning", "2023-05-15"),
        ("next week Friday", "2023-05-19"),
        ("gestern Abend", "2023-05-07"),
        ("nächste Woche am Montag", "2023-05-15"),
        ("hier soir", "2023-05-07"),
        ("la semaine prochaine, lundi", "2023-05-15"),
        ("ayer por la noche", "2023-05-07"),
        ("la próxima semana el martes", "2023-05-16"),
        ("domani mattina", "2023-05-09"),
        ("ontem à noite", "2023-05-07"),
        ("下周一", "2023-05-15"),
        ("上星期天晚上", "2023-05-07"),
        ("下周末", "2023-05-20 to 2023-05-21"),
        ("明天下午三点半", "2023-05-09"),
        ("下个月15号", "2023-06"),
        ("去年夏天", "2022"),
        ("来週月曜", "2023-05-15"),
        ("先週の金曜日", "2023-05-05"),
        ("明日の午後3時", "2023-05-09"),
        ("来年の3月", "2024"),
    ],
)
def test_a_date_phrase_means_the_day_it_was_said_for(text: str, iso: str) -> None:
    [mention] = find_dates(f"x {text} y", MONDAY)
    assert mention.iso == iso
    assert text.endswith(mention.text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("秘密计划蓝鲸在下周一启动。", "秘密计划蓝鲸在下周一 (2023-05-15)启动。"),
        ("下周一起去。", "下周 (2023-05-15 to 2023-05-21)一起去。"),
        ("下周日本队比赛。", "下周 (2023-05-15 to 2023-05-21)日本队比赛。"),
        ("来週月曜に出発。", "来週月曜 (2023-05-15)に出発。"),
        ("We ship next Friday night.", "We ship next Friday night (2023-05-12)."),
    ],
)
def test_the_day_is_put_behind_the_whole_expression(text: str, shown: str) -> None:
    assert annotate_dates(text, MONDAY) == shown


@pytest.mark.parametrize(
    "text", ["2023-13-45", "February 30", "a few days ago", "the 7th", "may I", "in 3000", "mayor 12"]
)
def test_what_the_calendar_does_not_have_gives_nothing(text: str) -> None:
    assert find_dates(text, MONDAY) == ()


@pytest.mark.parametrize("kind", ["day", "period"])
def test_each_phrase_of_the_calendar_is_found_in_capitals_among_other_words(kind: TableKind) -> None:
    texts = [f"Not {phrase.upper()}, she said." for phrase in pack_table(kind)]
    assert [text for text in texts if not find_dates(text, MONDAY)] == []


def test_only_full_dates_need_no_reference() -> None:
    assert [mention.relative for mention in find_dates("yesterday, 7 May 2021, May 7, in 2019", MONDAY)] == [
        True, False, True, False,
    ]  # fmt: skip


@given(st.text(), st.dates())
def test_any_text_on_any_day_is_read_without_an_error(text: str, day: date) -> None:
    end = 0
    for mention in find_dates(text, day):
        assert end <= mention.start
        assert mention.first <= mention.last
        assert text[mention.start : mention.end] == mention.text
        end = mention.end


@given(st.sampled_from(["9 years ago", "last year", "next year", "in 12 months", "yesterday"]), st.dates())
def test_the_ends_of_the_calendar_are_no_trap(phrase: str, day: date) -> None:
    find_dates(phrase, day)


@pytest.mark.parametrize(
    "text",
    [
        "one page in seven days",
        "We lost two disks in three weeks.",
        "It has grown a lot in two years.",
        "the Tuesday after that",
        "Tuesday",
        "by Thursday 16:00",
    ],
)
def test_how_long_something_took_and_a_bare_weekday_are_no_dates(text: str) -> None:
    assert find_dates(text, MONDAY) == ()


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("From Monday we use pnpm.", "2023-05-15", None),
        ("The port was 8080 until March.", None, "2023-03-01"),
        ("The freeze holds until 3 June.", None, "2023-06-03"),
        ("From May on it is 9090.", "2023-05-01", None),
        ("Ana works at Bosch since February.", "2023-02-01", None),
        ("Starting tomorrow we deploy daily.", "2023-05-09", None),
        ("Starting with June it is 9090.", "2023-06-01", None),
        ("Beginning in June we deploy daily.", "2023-06-01", None),
        ("Ab Juni zahlen wir 12 Euro.", "2023-06-01", None),
        ("À partir de juin, le loyer est de 900 euros.", "2023-06-01", None),
        ("À compter de juin, le loyer est de 900 euros.", "2023-06-01", None),
        ("A partir de junio el alquiler es 900 euros.", "2023-06-01", None),
        ("Da giugno le prove sono il giovedì.", "2023-06-01", None),
        ("明天起用新接口。", "2023-05-09", None),
        ("Ab Montag nutzen wir pnpm.", "2023-05-15", None),
        ("Der Port war bis März 8080.", None, "2023-03-01"),
        ("Seit Februar arbeitet Ana bei Bosch.", "2023-02-01", None),
        ("Le port était 8080 jusqu'en mars.", None, "2023-03-01"),
        ("El puerto era 8080 hasta marzo.", None, "2023-03-01"),
        ("La porta era 8080 fino a marzo.", None, "2023-03-01"),
        ("A partir de segunda usamos pnpm.", "2023-05-15", None),
        ("A partir de junho a renda é 900 euros.", "2023-06-01", None),
        ("O porto era 8080 até março.", None, "2023-03-01"),
        ("С понедельника мы используем pnpm.", "2023-05-15", None),
        ("До марта порт был 8080.", None, "2023-03-01"),
        ("6月から家賃は9万円です。", "2023-06-01", None),
        ("3月までポートは8080でした。", None, "2023-03-01"),
        ("从6月起房租900。", "2023-06-01", None),
        ("端口8080用到3月为止。", None, "2023-03-01"),
        ("6월부터 월세는 90만 원입니다.", "2023-06-01", None),
        ("3월까지 포트는 8080이었습니다.", None, "2023-03-01"),
        ("我们周一一起吃饭。", None, None),
        ("周一起床很难。", None, None),
        ("Wir arbeiten von Montag bis Freitag.", None, None),
        ("De lunes a viernes abrimos.", None, None),
        ("We meet from Monday to Friday.", None, None),
        ("The port is 8080.", None, None),
    ],
)
def test_a_statement_says_from_when_and_until_when_it_holds(text: str, start: str | None, end: str | None) -> None:
    found = find_validity(text, MONDAY)
    assert (found.start and found.start.isoformat(), found.end and found.end.isoformat()) == (start, end)
