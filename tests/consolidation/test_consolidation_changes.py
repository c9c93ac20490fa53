"""Changes that are told in other words than what they change, and near misses that replace nothing."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from changes import Outcome, find_corpus, read_streams, replay
from ricordo import Entry
from ricordo.curation import ConsolidationConfig
from ricordo.curation.change_model import read_statement
from ricordo.curation.reconciliation import reconcile
from ricordo.curation.types import Advice, CandidateEntry, Supersession
from ricordo.workspace.entry import EXTERNAL_TRUST_FIELD

pytestmark = pytest.mark.req("FC-CONFLICT")

CHANGED = [
    ("The price is 17.99 euros.", "The price is 14.99 euros."),
    ("Sessions are kept for two weeks.", "Sessions are kept for a quarter now."),
    ("The golden replays are forty.", "The golden replays are twelve now."),
    ("The orchestra rehearses on Tuesdays at 20:45.", "From 15 January the orchestra rehearses on Thursdays at 20:30."),
    ("Marta is the treasurer of the club.", "Ivo is the treasurer of the club since Marta's move."),
    ("The renovation may cost 38,000 euros at most.", "The renovation may now cost forty-four thousand euros."),
    ("Der Chor probt dienstags um acht.", "Der Chor probt jetzt donnerstags um acht."),
    ("El almacén de Vigo abre a las ocho.", "El almacén de Vigo abre ahora a las nueve."),
    ("测试环境的端口是 8081。", "测试环境的端口改成 9091 了。"),
]
ANNOUNCED = [
    ("The tests of the shop run with npm.", "From Monday the tests of the shop run with pnpm."),
    ("Lena's piano lesson is at six.", "Lena's piano lesson is at seven now."),
    ("Das Büro in Kiel öffnet um acht.", "Das Büro in Kiel öffnet ab Juni um neun."),
    ("Le bureau de Lyon ferme à 18 heures.", "Le bureau de Lyon ferme à 19 heures à partir de juin."),
    ("El almacén de Vigo abre a las ocho.", "A partir de junio el almacén de Vigo abre a las nueve."),
    ("Il magazzino di Parma apre alle sette.", "Da giugno il magazzino di Parma apre alle sei."),
    ("A equipa azul treina às 18 horas.", "A equipa azul treina às 19 horas a partir de junho."),
    ("Тестовый сервер слушает порт 8081.", "С июня тестовый сервер слушает порт 9090."),
    ("京都の倉庫は8時に開きます。", "6月から京都の倉庫は9時に開きます。"),
    ("订单服务的超时是 5 秒。", "从6月起订单服务的超时是 8 秒。"),
    ("개발 서버의 포트는 3000입니다.", "6월부터 개발 서버의 포트는 4000입니다."),
]
NEAR_MISSES = [
    ("The staging port is 5433.", "The production port is 5432."),
    ("The unit price of the small box is 4.20 euros.", "The unit price of the large box is 7.90 euros."),
    ("Pull requests of the api repo need one approval.", "Pull requests of the infra repo need two approvals."),
    ("Igor maintains the parser.", "Salma maintains the lexer."),
    ("Our flight to Oslo leaves on 4 June.", "Our flight to Rome leaves on 9 September."),
    ("Lena is seven.", "Lena likes swimming."),
    ("Ana ran 5 km on Monday.", "Ana ran 10 km on Monday."),
    ("I visited number 2 in Lima on a lovely day.", "I visited number 3 in Lima on a lovely day."),
    ("测试环境的端口是 8081。", "生产环境的端口是 80。"),
    ("The US site ships within three days.", "The EU site ships within five days now."),
    ("Version 3 is supported until June.", "Version 4 is now supported until December."),
    ("Our January newsletter goes out on the 12th.", "Our February newsletter goes out on the 9th."),
    ("Invoices to Pemberton are due in 14 days.", "Hartwell's invoices are due in 45 days from now on."),
    ("Gate B closes 20 minutes before departure.", "Gate D closes 35 minutes before departure now."),
    ("大阪支店の定員は12名です。", "名古屋支店の定員は30名に変わりました。"),
    ("Тестовый сервер слушает порт 8081.", "Боевой сервер слушает теперь порт 443."),
]
OUTDATED = [
    (
        "The parcels of the shop wait 30 days in the store, then they go back.",
        "Because of the fire wall parcels wait two weeks, not a month.",
    ),
    (
        "Two shops sell it: Parapet, which is the huge one, and Hutch, where people are kind.",
        "Don't bother, we've moved on from Hutch.",
    ),
    ("Papa takes the ramipril at night, with yoghurt.", "Vietti took him off the ramipril because of the cough."),
    (
        "New routes go up on Mondays, and the wall is closed until three.",
        "Small change: we set on Wednesdays from June on, Mondays were too busy.",
    ),
    ("Grandpa is at the day centre on Wednesdays.", "He goes there on Mondays too now, not just on Wednesdays."),
    ("开场前两小时以内不能取消。", "两小时太短了，空位补不上，改成六小时。"),
    ("八个人以上才算团体预约。", "八个人太少了，以后十个人起算团体。"),
    ("Der Kurs hat 12 kg Ton für jeden.", "12 kg sind zu wenig, es werden 15 kg."),
    ("El bono del gimnasio dura 45 minutos.", "45 minutos es muy poco, pasamos a 60 minutos."),
    ("Le cours de poterie dure 45 minutes.", "45 minutes, c'est trop court, on passe à 70 minutes."),
    (
        "Petra coaches the juniors on Thursdays, in the old gym behind the mill.",
        "From now on Petra has Saturdays, no more Thursdays, the gym is let to a choir.",
    ),
    (
        "Fridays we test the pumps by hand, Olaf writes the list.",
        "Fridays are over for the pumps, a sensor does it, and Olaf looks on Mondays.",
    ),
    (
        "Yvonne waters the palms from six to eight, and feeds whatever swims.",
        "For July we agreed on Kasimir instead of Yvonne, seven to nine.",
    ),
    ("Yvonne gießt morgens die Palmen und füttert die Fische.", "Im Juli kommt Kasimir statt Yvonne, ab sieben."),
    ("Yvonne arrose les palmiers le matin.", "En juillet c'est Kasimir au lieu de Yvonne, dès sept heures."),
    ("Yvonne riega las palmeras por la mañana.", "En julio viene Kasimir en lugar de Yvonne, desde las siete."),
    ("Yvonne innaffia le palme la mattina.", "A luglio viene Kasimir al posto di Yvonne, dalle sette."),
]
"""Statements that name the value of an older one as over, in other words."""
OTHER_LIMIT = [
    (
        "No bag of compost over what we can carry, it stays under 40 litres, our stairs are steep.",
        "Good news from the lift, compost can come in bags of up to 60 litres now, says the caretaker.",
    ),
    (
        "All tents of the camp together stay under 300 a year, the club pays that.",
        "Mira did the sums, now it may be three hundred and eighty a year for the tents, that is the new limit.",
    ),
    (
        "Das Paket für Kiel darf höchstens 12 kg haben, Jos Rücken macht sonst nicht mit.",
        "Jo trägt nicht mehr selbst, nach Kiel gehen jetzt bis zu 20 kg, sagt die Spedition am Hafen.",
    ),
    (
        "Las fotos del catálogo pesan menos de 2 MB, el servidor es viejo.",
        "Con el servidor de Vigo ya se puede más, cada foto hasta 5 MB ahora.",
    ),
    (
        "Les colis pour Lyon font au plus 20 kg, le livreur a mal au dos.",
        "Nouveau livreur depuis lundi, alors les colis peuvent faire jusqu'à 30 kg maintenant.",
    ),
    ("文档附件最多 5 兆，邮箱太小。", "邮箱扩容了，附件现在不超过 20 兆就行。"),
]
"""Two limits of one thing, of which the later one announces a change, in sentences with little else in common."""
LITTLE_IN_COMMON = [
    (
        "Bruno signs every paper for the town hall, and he alone tells the builders when they may start.",
        "Bruno came to the market, to the MARKET, with the new paper in his bag, and Lea stood there with a melon and "
        "read it aloud to the whole queue, tiles, pipes, doors, skips, until the fish was sold out.",
    ),
    (
        "Friday the 26th at five, assembly of the rowers, boat house. No children.",
        "School now. Selma, who speaks for the rowers, asks when the money for the trip is due. It's the 24th.",
    ),
    (
        "The coach moves to lane 16 on the 21st of May, a Saturday night, nobody swims then.",
        "The move went well on Saturday night, it took half an hour now that we were six.",
    ),
]
"""Pairs with a person, a day or a common word in common, where the longer one is about something else."""
BOTH_HOLD = [
    ("The parcels wait 30 days in the store.", "Pager shifts are a week long now, not three days."),
    ("Rodica comes from Monday to Friday.", "The office is shut on Fridays in June and open on Tuesdays now."),
    ("Use bun, not npm, for the shop.", "Use pnpm, not npm, for the tools."),
    ("Three lines at most, and no preface.", "Make that five retries, not three."),
    ("The cat eats twice a day.", "Not one day sooner than in May, now that it is June."),
    ("Hutch is where people are kind.", "Hutch is not far from the river."),
    ("The trailer holds at most 750 kg.", "The boat holds up to eight people now."),
    (
        "The palms get nothing before seven, and putting on gloves is a rule.",
        "He reads now instead of putting them up.",
    ),
    ("The club meets on Saturdays now, Thursdays are over.", "On the list: club on Saturdays, no more Thursdays."),
]


def said(*texts: str, apart: timedelta = timedelta(days=20)) -> list[CandidateEntry]:
    begin = datetime(2026, 1, 5, 9, tzinfo=UTC)
    return [
        CandidateEntry(entry=Entry(content=text, id=f"e{number}", time=begin + number * apart))
        for number, text in enumerate(texts)
    ]


def replaced(entries: Sequence[CandidateEntry]) -> dict[str, str]:
    done = reconcile((), entries, fixed=(), config=ConsolidationConfig())
    return {one.old: one.new for one in done.superseded}


@pytest.mark.parametrize(("old", "new"), [*CHANGED, *ANNOUNCED])
def test_a_change_in_other_words_takes_the_place_of_what_it_changes(old: str, new: str) -> None:
    assert replaced(said(old, "The cellar floods in spring.", "We bake bread on holidays.", new)) == {"e0": "e3"}


@pytest.mark.parametrize(("old", "new"), NEAR_MISSES)
def test_the_same_words_about_another_subject_replace_nothing(old: str, new: str) -> None:
    assert replaced(said(old, "The cellar floods in spring.", "We bake bread on holidays.", new)) == {}


def test_what_an_agent_answers_replaces_nothing_that_the_request_before_it_quotes() -> None:
    rule = "Branch names are cl/TICKET-summary, in lower case."
    answer = "“Yes. Branch names are cl/TICKET-summary, in lower case.”: Two rows now added to the test table."
    assert replaced(said(rule, answer)) == {}


@pytest.mark.parametrize(
    ("speaker", "said"), [("Tang：", "看板十分钟刷新一次，店里网慢。"), ("Tang: ", "The board refreshes twice.")]
)
def test_the_name_of_the_speaker_is_no_part_of_what_is_compared(speaker: str, said: str) -> None:
    assert read_statement(speaker + said) == read_statement(said)


def outdated(entries: Sequence[CandidateEntry]) -> dict[str, str]:
    done = reconcile((), entries, fixed=(), config=ConsolidationConfig())
    assert done.superseded == ()
    return dict(done.outdated)


@pytest.mark.parametrize(("old", "new"), [*OUTDATED, *OTHER_LIMIT])
def test_what_names_an_older_value_as_over_marks_it_and_replaces_nothing(old: str, new: str) -> None:
    others = ["The cellar floods in spring.", "We bake bread on holidays.", "Anna plays the cello in the hall."] * 3
    assert outdated(said(old, *others, new)) == {"e0": f"e{len(others) + 1}"}


@pytest.mark.parametrize(("old", "new"), [*BOTH_HOLD, *NEAR_MISSES])
def test_what_ends_something_else_marks_nothing(old: str, new: str) -> None:
    assert outdated(said(old, "The cellar floods in spring.", "We bake bread on holidays.", new)) == {}


@pytest.mark.parametrize(("old", "new"), LITTLE_IN_COMMON)
def test_a_statement_that_is_mostly_about_something_else_replaces_nothing(old: str, new: str) -> None:
    others = ["The cellar floods in spring.", "We bake bread on holidays.", "Anna plays the cello in the hall."] * 3
    assert replaced(said(old, *others, new)) == {}


def test_what_happened_replaces_no_plan_that_says_more() -> None:
    old = "The kiln moves to the barn of Hedda on the 21st of May, a Saturday night."
    new = "The kiln went to the barn on Saturday night, it took 40 minutes, nobody noticed."
    others = ["The cellar floods in spring.", "We bake bread on holidays.", "Anna plays the cello in the hall."] * 3
    assert replaced(said(old, *others, new)) == {}


def test_a_likely_change_in_a_longer_statement_marks_what_it_may_change() -> None:
    old = "Alma is with Conrad every other weekend."
    new = (
        "Alma is here the whole weekend again. Since Conrad has the job in Novara and works shifts he has her one "
        "weekend a month, the first one, and the rest of the time he sends films of the motorway and of a dog."
    )
    others = ["The cellar floods in spring.", "We bake bread on holidays.", "Anna plays the cello in the hall."] * 3
    assert outdated(said(old, *others, new)) == {"e0": "e10"}


@pytest.mark.parametrize(
    ("new", "is_marked"),
    [
        ("Potting the eighty seedlings takes a whole morning. We're down to fifty now, Noor says.", True),
        ("Potting the eighty seedlings takes a whole morning now, Noor says.", False),
        ("Potting a tray of seedlings takes half an hour now, fifty a morning, Noor says.", False),
    ],
)
def test_a_count_that_is_named_beside_another_one_is_over(new: str, *, is_marked: bool) -> None:
    others = [f"Bel{one}a meets tor{one}e, ran{one}u and sil{one}i." for one in map(chr, range(ord("a"), ord("z") + 1))]
    others += [text.replace("e", "o") for text in others]
    found = outdated(said("The greenhouse opens once all eighty seedlings stand in it.", *others, new))
    assert found == ({"e0": f"e{len(others) + 1}"} if is_marked else {})


def test_a_list_of_one_day_replaces_nothing_without_a_word_of_change() -> None:
    rooms = ("The blue room holds 12 people.", "The blue room holds 14 people.")
    assert replaced(said(*rooms, apart=timedelta(minutes=5))) == {}
    assert replaced(said(*rooms)) == {"e0": "e1"}


@pytest.mark.req("FC-POISON")
@pytest.mark.parametrize(("old", "new"), [*CHANGED[:2], ("The price is 17.99 euros.", "The price is 17.99 euros!")])
def test_what_a_tool_says_neither_replaces_nor_absorbs_what_somebody_said(old: str, new: str) -> None:
    """It isn't curated, so that the memory would be lost."""
    curated, other = said(old, new)
    outside = replace(other, entry=replace(other.entry, extra=(EXTERNAL_TRUST_FIELD,)))
    done = reconcile([curated], [outside], fixed=(), config=ConsolidationConfig())
    assert [one.entry.content for one in done.active.values()] == [old]
    assert done.left == ("e1",)


def test_what_was_said_earlier_but_is_read_later_takes_no_place() -> None:
    older, newer = said("The price is 17.99 euros.", "The price is 14.99 euros.")
    first = reconcile((), [newer], fixed=(), config=ConsolidationConfig())
    done = reconcile([*first.active.values()], [older], fixed=(), config=ConsolidationConfig())
    assert [(one.old, one.new) for one in done.superseded] == [("e0", "e1")]
    assert list(done.active) == ["e1"]


def test_held_out_near_misses_and_their_changes_keep_their_floors() -> None:
    total = sum(map(replay, read_streams(find_corpus("test")[:1]).values()), Outcome())
    assert len(total.held) >= 48
    assert not total.wrong
    assert not total.wrongly_marked


def test_a_proposal_about_an_entry_that_the_model_did_not_see_beside_the_other_is_refused() -> None:
    texts = ("Marta drinks coffee in the morning.", "Marta drinks tea in the morning.")
    entries = said(*texts, apart=timedelta(minutes=5))
    for shown, refused in ((frozenset({"e0", "e1"}),), ()), ((frozenset({"e0"}), frozenset({"e1"})), ("unknown",)):
        advice = Advice(superseded=(Supersession(old="e0", new="e1"),), shown=shown)
        assert reconcile((), entries, fixed=(), config=ConsolidationConfig(), advice=advice).refused == refused
