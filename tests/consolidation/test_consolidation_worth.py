"""Which extracted facts are curated: sure ones, and less sure ones that hold what nobody can work out again."""

from datetime import UTC, datetime

import pytest

from ricordo import Entry
from ricordo.curation import ConsolidationConfig
from ricordo.curation.importance import is_worthwhile
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
        "They felt great after the trip (2026-04-09 to 2026-04-12), all of them.",
        "It was lovely. [shared a photo: a photo of 3 dogs in front of a house]",
        "It was lovely. [shows: chart.png with 20 bars]",
        "今天大家都很开心，天气也好",
        "They asked why not, and went home.",
    ],
)
def test_a_day_that_was_worked_out_and_what_a_picture_shows_make_no_talk_exact(plain: str) -> None:
    assert not is_worthwhile(fact(plain, CONFIG.fact_confidence - 0.01), CONFIG)
    assert is_worthwhile(fact(plain, CONFIG.fact_confidence), CONFIG)


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
