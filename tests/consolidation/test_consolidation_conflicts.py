"""Which memory takes another's place, and which says the same: decided by subject and attribute, or not at all."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ricordo import Entry
from ricordo.curation.conflicts import replaces, says_the_same, share_subject
from ricordo.scope import Scope
from ricordo.workspace import Source

pytestmark = pytest.mark.req("FC-CONFLICT")

REPLACED = [
    (
        "We'll use MySQL 8 for the orders database.",
        "We had the review on Tuesday, and we are moving the orders database from MySQL to PostgreSQL 16.",
    ),
    ("use Postgres", "we migrated to MongoDB"),
    ("We use jQuery.", "We migrated to React."),
    ("We use npm.", "Use pnpm, not npm."),
    ("Always indent with tabs.", "We indent with spaces from now on."),
    (
        "Deploying on a Friday is fine with us, nobody likes saving things up for Monday.",
        "From now on we don't deploy on Fridays: the last deploy goes out on Thursday 16:00.",
    ),
    ("We deploy on Fridays.", "We don't deploy on Fridays."),
    ("The orders service listens on 8080.", "The orders service listens on 8443; 8080 is taken by the sidecar."),
    ("The deadline is 19 November.", "The deadline is 25 November."),
    ("The refund window is 30 days.", "The refund window is 45 days."),
    ("Our database is MySQL.", "Our database is PostgreSQL."),
    ("We use MySQL for the orders.", "We switched the orders from MySQL to PostgreSQL."),
    ("Ana lives in Porto.", "Ana moved to Lisbon last week (2026-11-02)."),
    ("Ana works at Siemens.", "Ana joined Bosch in March."),
    ("Ana's favourite colour is Blue.", "Ana's favourite colour is Green."),
    ("Unsere Datenbank ist MySQL.", "Unsere Datenbank ist jetzt PostgreSQL."),
    ("Ana wohnt in Berlin.", "Ana wohnt jetzt in Hamburg."),
    ("データベースはMySQLです。", "データベースはPostgreSQLです。"),
    ("I'm flying to Oslo on 3 December.", "Actually no, the flight is on 5 December, not the 3rd."),
    ("Ana is flying to Oslo on 3 December (2026-12-03).", "Sorry, the flight to Oslo is on the 5th, not the 3rd."),
    ("The release branch is called harvest.", "From now on the release branch is called orchard."),
    ("Wir nutzen Jenkins für die Builds.", "Wir haben die Builds von Jenkins auf Drone umgestellt."),
    ("User's dentist is Dr. Wieland.", "User's dentist is now Dr. Castellane."),
    ("The gateway of staging answers on 8080.", "Correction: the gateway answers on 8443, not 8080."),
]
SIDE_BY_SIDE = [
    ("The monolith is on MySQL too.", "We are moving the orders database from MySQL to PostgreSQL 16."),
    ("mysql://app@db-staging.example:3306/orders", "We are moving the orders database from MySQL to PostgreSQL 16."),
    ("We use MySQL 8 for the orders database.", "We moved the billing database from MySQL to PostgreSQL."),
    ("We use PostgreSQL for the orders.", "We use MongoDB for the events."),
    ("We use Redis.", "We use Kafka."),
    ("Install the dependencies of the monolith with npm.", "Use pnpm, not npm."),
    ("Deploys: we deploy only from main, by tag.", "From now on we don't deploy on Fridays."),
    ("The orders service listens on 8443.", "The billing service listens on 8080."),
    ("Staging moves to PostgreSQL on 3 November.", "Production moves to PostgreSQL on 10 November."),
    ("Ana lives in Porto.", "Bo moved to Lisbon."),
    ("The release branch is called harvest.", "The staging branch is called orchard."),
    ("The hook is called before the build.", "The hook is called after the build."),
    ("Der Zug hält in Jena.", "Der Zug von Jena nach Gera fährt jede Stunde."),
    ("Ana lives in Porto.", "Ana's sister moved to Lisbon."),
    ("Ana is on the Fulfilment team.", "Ana is off until Monday."),
    ("Ana ran 5 km on Monday.", "Ana ran 10 km on Monday."),
    ("Ana saw the sea come in.", "Ana never saw this coming."),
    ("Ana wohnt in Berlin.", "Bo wohnt jetzt in Hamburg."),
    ("データベースはMySQLです。", "キャッシュはRedisです。"),
    ("The party is on 3 December.", "Actually no, the flight is on 5 December, not the 3rd."),
    ("I'm flying to Oslo on 4 December.", "Actually no, the flight is on 5 December, not the 3rd."),
    ("The billing gateway answers on 8080.", "Correction: the orders gateway answers on 8443, not 8080."),
    ("I'm flying to Oslo on 3 December.", "Actually no, 5 December, not the 3rd."),
    ("The flight is not on 3 December.", "Actually no, the flight is on 5 December, not the 3rd."),
]
THE_SAME = [
    ("We deploy only from main.", "we deploy only from main"),
    ("We deploy only from main.", "We only deploy from `main`!"),
    ("Wir deployen nur von main.", "Wir deployen nur von main"),
    ("本番は東京リージョンにあります。", "本番は東京リージョンにあります"),
]
NOT_THE_SAME = [
    ("We deploy on Fridays.", "We never deploy on Fridays."),
    ("The port is 8080.", "The port is 8443."),
    ("Ana likes Bo.", "Bo likes Ana."),
    ("!", "?"),
    ("We deploy only from main.", "We deploy only from main to the staging cluster."),
]
TEXTS = st.one_of(
    st.text(max_size=200), st.sampled_from([text for pair in (*REPLACED, *SIDE_BY_SIDE) for text in pair])
)


def entry(content: str) -> Entry:
    return Entry(content=content or "-", by="flush")


@pytest.mark.req("FC-CONFLICT")
@pytest.mark.parametrize(("old", "new"), REPLACED)
def test_what_gives_the_same_attribute_of_the_same_subject_another_value_takes_its_place(old: str, new: str) -> None:
    assert replaces(entry(new), entry(old))


@pytest.mark.req("FC-CONFLICT")
@pytest.mark.parametrize(("old", "new"), SIDE_BY_SIDE)
def test_another_subject_or_an_undecided_pair_stays(old: str, new: str) -> None:
    assert not replaces(entry(new), entry(old))
    assert not says_the_same(entry(new), entry(old), duplicate=0.8)


@pytest.mark.req("AS-CONS-02")
@pytest.mark.parametrize(("one", "other"), THE_SAME)
def test_the_same_in_nearly_the_same_words_is_said_once(one: str, other: str) -> None:
    assert says_the_same(entry(one), entry(other), duplicate=0.8)


@pytest.mark.req("AS-CONS-02")
@pytest.mark.parametrize(("one", "other"), NOT_THE_SAME)
def test_another_number_another_order_or_a_denial_is_not_the_same(one: str, other: str) -> None:
    assert not says_the_same(entry(one), entry(other), duplicate=0.8)


@pytest.mark.req("AS-CONS-02")
@given(TEXTS, TEXTS)
def test_saying_the_same_is_mutual_and_never_a_replacement(one: str, other: str) -> None:
    left, right = entry(one), entry(other)
    assert says_the_same(left, left, duplicate=0.8)
    assert says_the_same(left, right, duplicate=0.8) == says_the_same(right, left, duplicate=0.8)
    assert not replaces(left, left)


def test_what_one_message_says_does_not_contradict_itself() -> None:
    source = Source(session="s", messages=("m1",))
    old = Entry(content="We use MySQL for the orders.", source=source)
    new = Entry(content="We switched the orders from MySQL to PostgreSQL.", source=source)
    assert not replaces(new, old)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("User lives in Hamburg.", "User moved to Bremen."),
        ("I live in Hamburg.", "I moved to Bremen."),
        ("User's dentist is Dr. Wieland.", "User's dentist is Dr. Castellane."),
    ],
)
def test_what_one_person_says_of_themselves_takes_nothing_from_another(one: str, other: str) -> None:
    ana, bo = (Entry(content=text, id=user, scope=Scope(user=user)) for text, user in ((one, "ana"), (other, "bo")))
    assert not replaces(bo, ana)
    assert replaces(replace(bo, scope=ana.scope), ana)
    again = replace(ana, id="again", scope=bo.scope)
    assert not says_the_same(again, ana, duplicate=0.8)
    assert says_the_same(replace(again, scope=ana.scope), ana, duplicate=0.8)


def test_what_two_people_say_of_a_thing_is_about_the_same_thing() -> None:
    ana = Entry(content="Our database is MySQL.", scope=Scope(user="ana"))
    bo = Entry(content="Our database is PostgreSQL.", scope=Scope(user="bo"))
    assert replaces(bo, ana)
    assert says_the_same(replace(ana, scope=bo.scope), ana, duplicate=0.8)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("The test runner is jest.", "Next, the test runner: we go for vitest.", True),
        ("Retention of logs is two weeks.", "From now on, logs are kept for a quarter.", True),
        ("Marta drinks tea in the morning.", "Bruno drinks cocoa in the morning.", False),
        ("The port of the API is 8080.", "The timeout of the API is 30 s.", False),
    ],
)
def test_how_a_statement_begins_does_not_decide_what_it_is_about(one: str, other: str, *, same: bool) -> None:
    assert share_subject(entry(one), entry(other)) is same
