"""How findings read: without debris of the talk, with one resolution of each date."""

from datetime import UTC, datetime

import pytest

from ricordo.extraction import RuleExtractionConfig, Utterance, extract
from ricordo.extraction.rules import Speaker, rewrite_statements
from ricordo.extraction.statements import read_statements
from ricordo.messages import Message, Role, Text

SAID = datetime(2026, 10, 29, 9, tzinfo=UTC)


def _learned(text: str, role: Role = "user", *, name: str | None = None) -> list[str]:
    return [found.content for found in extract([Message(role=role, name=name, time=SAID, parts=(Text(text=text),))])]


def _answered(asked: str, said: str, *, name: str | None = None) -> list[str]:
    messages = [
        Message(role="assistant", time=SAID, parts=(Text(text=asked),)),
        Message(role="user", name=name, time=SAID, parts=(Text(text=said),)),
    ]
    return [found.content for found in extract(messages) if found.quote in said]


@pytest.mark.parametrize(
    ("said", "content"),
    [
        ("Question 7: my favourite number is 7.", "User's favourite number is 7."),
        ("We must ship in three weeks from today.", "We must ship in three weeks from today (2026-11-19)."),
        (
            "The shop must be live by 19 November, three weeks from today.",
            "The shop must be live by 19 November (2026-11-19), three weeks from today.",
        ),
        ("Call me Max.", "User goes by Max."),
        ("Carla prefers tabs over spaces.", "Carla prefers tabs over spaces."),
        ("Carla works at Acme.", "Carla works at Acme."),
    ],
)
def test_a_finding_holds_what_was_said_and_no_debris(said: str, content: str) -> None:
    assert _learned(said) == [content]


def test_an_introduction_is_learned_beside_what_follows_it() -> None:
    text = "Hi! I'm Tomás. My wife's name is Inês, her birthday is tomorrow."
    assert _learned(text) == [
        "User's name is Tomás.",
        "User's wife's name is Inês, her birthday is tomorrow (2026-10-30).",
    ]


def test_the_opener_of_a_correction_goes_and_the_correction_stays() -> None:
    text = "Actually no, the flight is on 5 December, not the 3rd."
    (found,) = extract([Message(role="user", time=SAID, parts=(Text(text=text),))])
    assert found.content == "The flight is on 5 December (2026-12-05), not the 3rd."
    assert found.corrects


def test_a_nameless_user_stays_the_user_when_a_nameless_agent_speaks_last() -> None:
    said: tuple[tuple[Role, str], ...] = (
        ("user", "I hate comments that repeat the code."),
        ("assistant", "I'll remove them and keep to that."),
    )
    messages = [Message(role=role, time=SAID, parts=(Text(text=text),)) for role, text in said]
    assert "User hates comments that repeat the code." in [found.content for found in extract(messages)]


def test_what_a_nameless_agent_did_reads_as_done() -> None:
    said = "What fixed the connection error: wait for the database, which needs the healthcheck I added."
    (content,) = _learned(said, "assistant")
    assert content.endswith("which needs the healthcheck that was added.")


@pytest.mark.parametrize(
    ("said", "content"),
    [
        ("Please remember: I keep the spare key at Ida's.", "Ana keeps the spare key at Ida's."),
        ("Please remember: I read the press list on paper.", "Ana: I read the press list on paper."),
        ("Remember that I go and fetch the post on Mondays.", "Ana goes and fetches the post on Mondays."),
        ("Remember: Wanda Bell, she runs the playtests.", "Wanda Bell runs the playtests."),
        ("Ich bevorzuge kurze Antworten.", "Ana: Ich bevorzuge kurze Antworten."),
        ("Vivo en Gijón con mi hermana.", "Ana: Vivo en Gijón con mi hermana."),
        ("Abito a Torino con mia moglie.", "Ana: Abito a Torino con mia moglie."),
        ("J'habite à Lyon avec ma sœur.", "Ana: J'habite à Lyon avec ma sœur."),
        ("Eu prefiro respostas curtas.", "Ana: Eu prefiro respostas curtas."),
        ("我住在杭州。", "Ana：我住在杭州。"),
        ("私は紅茶が好きです。", "Ana：私は紅茶が好きです。"),
    ],
)
def test_what_cannot_be_rewritten_for_sure_stands_as_said_behind_the_speaker(said: str, content: str) -> None:
    assert _learned(said, name="Ana") == [content]


@pytest.mark.parametrize(
    "said",
    [
        "zawsze używam tabów, i tak jest w każdym repozytorium",
        "всегда используем табы, и так в каждом репозитории",
        "I documenti del palazzo li tengo sempre io in cantina.",
        "Los papeles del piso los guardo siempre yo en el sótano.",
    ],
)
def test_no_word_of_another_language_becomes_the_speaker(said: str) -> None:
    for content in _learned(f"Remember: {said}", name="ana") + _learned(said, name="ana"):
        assert content.removeprefix("Ana: ").casefold().endswith(said[4:].casefold())


def test_each_sentence_of_a_mixed_message_has_its_own_language() -> None:
    text = "We always deploy on Fridays and I tag the release. Nunca hago push directamente a main."
    assert _learned(text, name="ana") == [
        "We always deploy on Fridays and Ana tags the release.",
        "Nunca hago push directamente a main.",
    ]


@pytest.mark.parametrize(
    ("name", "others", "expected"),
    [
        ("ana", "", "Ana"),
        ("mckenna", "Ask McKenna.", "McKenna"),
        ("dev_42", "", "dev_42"),
        ("ana maria", "", "Ana Maria"),
    ],
)
def test_a_name_in_small_letters_gets_its_capitals(name: str, others: str, expected: str) -> None:
    messages = [
        Message(role="assistant", time=SAID, parts=(Text(text=f"Hello. {others}"),)),
        Message(role="user", name=name, time=SAID, parts=(Text(text="I prefer short answers."),)),
    ]
    assert [found.content for found in extract(messages)] == [f"{expected} prefers short answers."]


def test_you_in_a_chat_with_an_agent_is_never_another_user() -> None:
    said = "I always keep the notes here, so from now on you write them with your tools."
    messages = [
        Message(role="user", name="Bo", time=SAID, parts=(Text(text="Hello, are you there?"),)),
        Message(role="assistant", time=SAID, parts=(Text(text="Yes."),)),
        Message(role="user", name="Ana", time=SAID, parts=(Text(text=said),)),
    ]
    (found,) = extract(messages)
    assert found.content == "Ana always keeps the notes here, so from now on you write them with your tools."


@pytest.mark.parametrize(
    ("said", "contents"),
    [
        (
            "The bark loop clicks. Only Ilmari may touch it, he has the stems.",
            ["The bark loop clicks. Only Ilmari may touch it, he has the stems."],
        ),
        (
            "Bad light. The tiles? Always in Tamsin's garage, never at the flat.",
            ["The tiles? Always in Tamsin's garage, never at the flat."],
        ),
        (
            "The second shop is small. It costs 18 euros a month.",
            ["The second shop is small. It costs 18 euros a month."],
        ),
    ],
)
def test_a_statement_without_a_subject_brings_the_sentence_that_has_it(said: str, contents: list[str]) -> None:
    assert [content for content in _learned(said) if contents[0][-12:] in content] == contents


def test_a_chinese_pronoun_brings_its_sentence_and_a_rule_needs_no_name() -> None:
    contents = _learned("王磊是我们的新同事。他以后一直负责发布。部署脚本永远不要直接改。", name="wei")
    assert contents == ["Wei：王磊是我们的新同事。 他以后一直负责发布。", "部署脚本永远不要直接改。"]


def test_a_pronoun_at_the_head_of_a_message_brings_what_it_stands_for() -> None:
    (content,) = _answered(
        "The courier is Rafał.", "He always leaves the parcels at the bakery, never at the door.", name="Ana"
    )
    assert content == "Ana, on “The courier is Rafał.”: He always leaves the parcels at the bakery, never at the door."


@pytest.mark.parametrize(
    ("before", "said", "content"),
    [
        ("", "the timeout. it's seven now, three was too short", "The timeout. It's seven now, three was too short"),
        (
            "",
            "also the retries. three was too few. five, and keep the spacing",
            "The retries. Three was too few. Five, and keep the spacing",
        ),
        (
            "Re-recording the forty golden replays takes an hour.",
            "that's down to twelve now",
            "User, on “Re-recording the forty golden replays takes an hour.”: That's down to twelve now",
        ),
        ("", "两小时太短了，改成六小时", "两小时太短了，改成六小时"),
    ],
)
def test_a_new_value_is_learned_by_what_announces_it_with_what_it_is_about(
    before: str, said: str, content: str
) -> None:
    assert content in (_answered(before, said) if before else _learned(said))


def test_a_request_or_a_maybe_with_an_amount_tells_no_new_value() -> None:
    assert _learned("Can you move Thursday's tasting to 4?") == []
    assert _learned("Maybe we should switch to 12 one day.") == []
    assert _learned("It's 7 now.") == []


@pytest.mark.parametrize(
    ("asked", "said", "content"),
    [
        ("What is the session timeout?", "30 minutes.", "Session timeout: 30 minutes."),
        ("Who is your doctor?", "Dr. Vietti.", "Ana's doctor: Dr. Vietti."),
        ("Was ist der Port der Datenbank?", "5433.", "Der Port der Datenbank: 5433."),
        ("¿Cuál es el puerto de la base?", "5433.", "El puerto de la base: 5433."),
        ("Quel est le port de la base ?", "5433.", "Le port de la base: 5433."),
        ("Qual è la porta del database?", "5433.", "La porta del database: 5433."),
        ("数据库的端口是多少？", "5433。", "数据库的端口：5433。"),
        ("データベースのポートは何番ですか？", "5433です。", "データベースのポート：5433です。"),
        ("Do you want tabs or spaces?", "Tabs, always.", "Ana, asked “Do you want tabs or spaces?”: Tabs, always."),
    ],
)
def test_a_question_for_a_value_and_its_short_answer_are_one_statement(asked: str, said: str, content: str) -> None:
    question, answer = (
        read_statements(Utterance(message_id="m", role="user", text=text), RuleExtractionConfig(), among_people=False)
        for text in (asked, said)
    )
    assert rewrite_statements(answer, Speaker(name="Ana", needs_name=False), question=question[0])[0] == content


def test_an_answer_that_passes_with_the_day_goes_and_what_lasts_stays() -> None:
    said = "No, it's Wednesday! On Wednesdays Radek is always at the farm and works off his phone."
    assert _answered("Should Radek pull it today?", said) == [
        "On Wednesdays Radek is always at the farm and works off his phone."
    ]


def test_a_quotation_is_closed_and_never_rewritten() -> None:
    said = (
        'Remember what Wanda wrote: "I never test on Thursdays, half of my testers have choir. I moved it to Fridays."'
    )
    (content,) = _learned(said, name="Ana")
    assert content.count('"') == 2
    assert "I never test on Thursdays" in content
    assert "Ana" not in content.replace("Ana:", "")


def test_a_long_line_with_two_subjects_becomes_two() -> None:
    said = (
        "Contractors never get into the repository, they always leave their things in incoming and we carry them over "
        "by hand; Kornelia Stark, from Graz, always does all our props and everything that the dogs wear in the game."
    )
    contents = _learned(said)
    assert len(contents) == 2
    assert contents[1].startswith("Kornelia Stark")


@pytest.mark.parametrize(
    "said",
    [
        "The build always fails with ENOSPC at line 3 (a further six lines)",
        "Der Build bricht immer mit ENOSPC ab (noch 12 weitere Zeilen)",
        "El despliegue siempre falla con ENOSPC … (otras 12 líneas más)",
        "Le build échoue toujours avec ENOSPC (encore 12 lignes)",
        "La build fallisce sempre con ENOSPC (altre 12 righe)",
        "Сборка всегда падает с ENOSPC (ещё 12 строк)",
        "构建总是报 ENOSPC …（后面还有六行）",
        "ビルドはいつも ENOSPC で失敗します（以下12行省略）",
        "The config always says host = db … [truncated]",
    ],
)
def test_a_text_that_was_cut_off_is_not_learned(said: str) -> None:
    assert _learned(said) == []
    assert _learned(said, "assistant") == []


@pytest.mark.parametrize(
    "said", ["how much is 7 percent of 1180", "who stays with Dad those days", "what do I tell Bo"]
)
def test_a_question_without_its_sign_states_nothing(said: str) -> None:
    assert _learned(said) == []


def test_the_items_of_a_list_carry_the_heading_that_names_them() -> None:
    contents = _learned("Ports of staging:\n- always 8080 for the web\n- never 443 at all")
    assert contents
    assert all(content.startswith("Ports of staging: ") for content in contents)
    general = _learned("Two things:\n- we never merge on Fridays\n- we always tag releases")
    assert not any("Two things" in content for content in general)


def test_another_topic_behind_anyway_is_another_statement() -> None:
    said = (
        "We always meet in the cellar of the old school, where the light is bad and the piano has never been tuned, "
        "anyway, the concert fee is always twelve euros a month for each singer and only by transfer to Mirella."
    )
    contents = _learned(said)
    assert len(contents) == 2
    assert contents[1].startswith("The concert fee")


def test_what_an_agent_drafts_in_quotation_marks_is_no_statement_of_its_own() -> None:
    assert (
        _learned("«Dear Bo, drilling is never allowed on Sundays, and always only from nine to twelve.»", "assistant")
        == []
    )


def test_a_message_in_one_other_language_names_its_speaker_once() -> None:
    text = "El martillo siempre está prohibido los domingos. Se lo digo siempre yo al albañil, nunca el portero."
    for content in _learned(text, name="ana"):
        assert content.count("Ana") <= 1


@pytest.mark.parametrize("remark", ["Pushed.", "It runs.", "Ok two things."])
def test_a_remark_before_a_lesson_is_left_out(remark: str) -> None:
    lesson = "It turned out that the build always fails without the cache, so the cache must be filled first."
    roles: tuple[Role, ...] = ("user", "assistant")
    for role in roles:
        for content in _learned(f"{remark} {lesson}", role):
            assert not content.startswith(remark[:-1])
