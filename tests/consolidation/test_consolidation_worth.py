"""Which extracted facts are curated: sure ones, and less sure ones that hold what nobody can work out again."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from ricordo import Entry
from ricordo.curation import ConsolidationConfig
from ricordo.curation.importance import MERGED_FIELD, is_worthwhile
from ricordo.errors import InvalidSetting

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
CONFIG = ConsolidationConfig()


def fact(content: str, confidence: float, kind: str = "fact") -> Entry:
    return Entry(content=content, id=f"{1:026}", kind=kind, by="flush", time=NOW, confidence=confidence)


@pytest.mark.parametrize(
    "exact",
    [
        "The permit says music ends at 23:00 on Saturday.",
        "The key is in the shop's .env as PARCEL_TOKEN.",
        "The deploy script is tools/ship, ask before it runs.",
        "Run `make ship` before the review.",
        "Nate has seen “Little Women” and liked it.",
        "Вера читает «Мастер и Маргарита» с детьми.",
        "娘は「ハイジ」を読む。",
        "крышу будет делать бригада Савельева, начнут весной",
        "वार्षिक परीक्षा होली के बाद होगी",
        "Joanna, asked “Where was that?”: It was at the falls behind the mill.",
    ],
)
def test_a_fact_that_holds_what_nobody_can_work_out_or_answers_somebody_needs_to_be_less_sure(exact: str) -> None:
    assert is_worthwhile(fact(exact, CONFIG.exact_confidence), CONFIG)
    assert not is_worthwhile(fact(exact, CONFIG.exact_confidence - 0.01), CONFIG)


@pytest.mark.parametrize(
    "plain",
    [
        "Hearing that can really make a difference to all of us.",
        "Everybody felt great after the trip (2026-04-09 to 2026-04-12), all of us.",
        "The walk was lovely. [shared a photo: a photo of 3 dogs in front of a house]",
        "The walk was lovely. [shows: chart.png with 20 bars]",
        "今天大家都很开心",
        "Somebody asked why not, and went home.",
    ],
)
def test_a_day_that_was_worked_out_and_what_a_picture_shows_make_no_talk_exact(plain: str) -> None:
    assert not is_worthwhile(fact(plain, CONFIG.fact_confidence - 0.01), CONFIG)
    assert is_worthwhile(fact(plain, CONFIG.fact_confidence), CONFIG)


@pytest.mark.parametrize(
    "dependent",
    [
        "He has a van and it can't stay in front of house 4.",
        "It starts on the second Monday of February and lasts a week.",
        "Er hat am Montag um 9 eine Prüfung.",
        "她每周二去游泳",
        'The playtests, Wanda has just sent this: "Tosia, Thursdays are dead, half of them have choir.',
        "Ya se lo conté a papá, que por él bien.»",
        "Never!",
        "Radek: mnie nie pytaj",
    ],
)
@pytest.mark.parametrize("kind", ["fact", "convention"])
def test_a_statement_that_only_its_conversation_explains_stays_in_the_ledger_until_it_is_repeated(
    dependent: str, kind: str
) -> None:
    entry = fact(dependent, 0.95, kind)
    assert not is_worthwhile(entry, CONFIG)
    assert is_worthwhile(replace(entry, extra=((MERGED_FIELD, f"{2:026}"),)), CONFIG)
    assert is_worthwhile(replace(entry, confirmed=NOW), CONFIG)
    assert is_worthwhile(replace(entry, by="user"), CONFIG)


@pytest.mark.parametrize(
    "explained",
    [
        "It took three goes: for a whole-day entry this calendar wants the following day as the end.",
        "Joanna, asked “Where was that?”: It was at the falls behind the mill.",
        'Jule: und bitte nicht „Sangesfreunde", da kriege ich Ausschlag.',
        'The shelf in the hall is 12" deep.',
        "Radek, asked “What shall we use?”: Kafka",
        "我们周二去游泳",
        "„Er“ steht in jeder Vorlage, nie „sie“.",
    ],
)
def test_a_statement_that_explains_itself_is_curated_whatever_its_first_word_and_its_quotes(explained: str) -> None:
    assert is_worthwhile(fact(explained, CONFIG.fact_confidence), CONFIG)


def test_a_rule_that_names_nothing_has_to_be_as_sure_as_a_plain_fact() -> None:
    plain, specific = "The talks happen in the mornings.", "The talks happen in Graz in the mornings."
    assert not is_worthwhile(fact(plain, CONFIG.fact_confidence - 0.01, "convention"), CONFIG)
    assert is_worthwhile(fact(plain, CONFIG.fact_confidence, "convention"), CONFIG)
    assert is_worthwhile(fact(specific, CONFIG.min_confidence, "convention"), CONFIG)
    assert not is_worthwhile(fact(f"User: {plain}", CONFIG.min_confidence, "convention"), CONFIG)


@pytest.mark.req("HE-C8")
def test_what_is_exact_and_of_these_days_or_secret_stays_in_its_ledger_and_no_other_kind_is_taken_for_less() -> None:
    assert not is_worthwhile(fact("Ines is out of the office today, call 4711.", 0.6), CONFIG)
    assert not is_worthwhile(fact("The token is [secret:token:2727099a] on port 80.", 0.6), CONFIG)
    assert not is_worthwhile(fact("The limit is 20 a minute.", 0.59, "decision"), CONFIG)


@pytest.mark.req("AS-CFG-01")
def test_how_sure_an_exact_fact_has_to_be_is_a_setting_and_never_raises_what_a_plain_one_needs() -> None:
    entry = fact("The limit is 20 a minute.", 0.6)
    assert not is_worthwhile(entry, ConsolidationConfig(exact_confidence=0.61))
    assert is_worthwhile(entry, ConsolidationConfig(exact_confidence=0.9, fact_confidence=0.6))
    with pytest.raises(InvalidSetting, match="exact_confidence"):
        ConsolidationConfig(exact_confidence=1.1)
