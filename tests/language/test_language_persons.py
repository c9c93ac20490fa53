"""First person to third, and proper names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ricordo.language import (
    Language,
    attribute_to_speaker,
    drop_repeated_subject,
    find_names,
    find_whose_names,
    is_english,
    is_foreign,
    keeps_grammar,
    lacks_subject,
    mentions_name,
    name_listener,
    opens_with_pronoun,
    tells_event,
    to_third_person,
)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("I moved to Lisbon and I love it.", "Ana moved to Lisbon and Ana loves it."),
        ("I'm happy, I've got a cat, I'll stay.", "Ana is happy, Ana has got a cat, Ana will stay."),
        ("i really need it and I don't care", "Ana really needs it and Ana doesn't care"),
        ("My flat is small but my garden is not.", "Ana's flat is small but their garden is not."),
        ("Should I try? I try. I wash. I was. I put.", "Should Ana try? Ana tries. Ana washes. Ana was. Ana put."),
        ("They gave me time for myself.", "They gave Ana time for themselves."),
        ("I'd better go; I'd like that.", "Ana had better go; Ana would like that."),
        ("I'd just been there; I'd already finished.", "Ana had just been there; Ana had already finished."),
        ("You and I do it; Bo and I are late.", "You and Ana do it; Bo and Ana are late."),
        ("I left and I love it.", "Ana left and Ana loves it."),
        (
            "This week is mine, then Bo and Cy, so my next is in May.",
            "This week is Ana's, then Bo and Cy, so Ana's next is in May.",
        ),
        ("We deploy from main.", "We deploy from main."),
        ("Section I.a and i/o stay.", "Section I.a and i/o stay."),
    ],
)
def test_the_first_person_becomes_the_speaker(said: str, told: str) -> None:
    assert to_third_person(said, "Ana") == told


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("I live in Oslo and work as a nurse.", "Ana lives in Oslo and works as a nurse."),
        ("I'm from Oslo, but now live in Bergen.", "Ana is from Oslo, but now lives in Bergen."),
        ("I live with my mother and have two cats.", "Ana lives with their mother and has two cats."),
        ("I live in Oslo and work in Bonn and have a dog.", "Ana lives in Oslo and works in Bonn and has a dog."),
        ("I write code and don't like meetings.", "Ana writes code and doesn't like meetings."),
        ("I go and fetch the post.", "Ana goes and fetches the post."),
        ("I count it twice a week and then worry.", "Ana counts it twice a week and then worries."),
        ("Since May I write to the bank and never put it on paper.",
         "Since May Ana writes to the bank and never puts it on paper."),
        ("I always read in bed and put the lamp out late.", "Ana always reads in bed and puts the lamp out late."),
        ("I run a bakery in Graz and wake up at three.", "Ana runs a bakery in Graz and wakes up at three."),
        ("I like jazz and play the piano.", "Ana likes jazz and plays the piano."),
        ("I speak Polish and understand Czech.", "Ana speaks Polish and understands Czech."),
    ],
)  # fmt: skip
def test_a_second_verb_agrees_with_the_speaker_too(said: str, told: str) -> None:
    assert to_third_person(said, "Ana") == told


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("I like jazz and live music.", "Ana likes jazz and live music."),
        ("I like sports and travel with friends.", "Ana likes sports and travel with friends."),
        ("I want to live in Oslo and work as a nurse.", "Ana wants to live in Oslo and work as a nurse."),
        ("I know that they live here and work there.", "Ana knows that they live here and work there."),
        ("I can live in Oslo and work as a nurse.", "Ana can live in Oslo and work as a nurse."),
        ("I should have buried it and gone home.", "Ana should have buried it and gone home."),
        ("I watch the kids come and go.", "Ana watches the kids come and go."),
    ],
)
def test_a_verb_that_may_be_a_noun_or_somebody_elses_keeps_its_form(said: str, told: str) -> None:
    assert to_third_person(said, "Ana") == told


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("What do I write to the landlord.", "What does Ana write to the landlord."),
        ("Neither do I.", "Neither does Ana."),
        ("So am I, as always.", "So is Ana, as always."),
        ("I hardly ever cook, I simply reheat.", "Ana hardly ever cooks, Ana simply reheats."),
        ("I havent got one and I dont want one.", "Ana hasn't got one and Ana doesn't want one."),
        ("At new year papa and I both pass to Dr. Lee.", "At new year papa and Ana both pass to Dr. Lee."),
        ("papa, Bo and I are moving there.", "papa, Bo and Ana are moving there."),
        ("Me and my brother run the shop.", "Ana and their brother run the shop."),
        ("The form says “I agree” and I signed it.", "The form says “I agree” and Ana signed it."),
        ('Bo wrote: "I never liked my flat', 'Bo wrote: "I never liked my flat'),
        ("World War I began in July.", "World War I began in July."),
    ],
)
def test_the_words_around_the_speaker_agree_and_quotes_and_numerals_stay(said: str, told: str) -> None:
    assert to_third_person(said, "Ana") == told


@pytest.mark.parametrize(
    "text",
    [
        "I read them on paper.",
        "I just put it there.",
        "I read you on the tram, never at a desk.",
        "I ask them about the desserts myself.",
        "I, for one, agree.",
        "I frobnicate daily.",
        "Oh my, what a day.",
        "We found an old mine.",
    ],
)
def test_a_text_whose_grammar_is_in_doubt_is_told_apart(text: str) -> None:
    assert not keeps_grammar(text)


@pytest.mark.parametrize(
    "text",
    [
        "I always read them on paper.",
        "I moved to Lisbon.",
        "I bake it by myself.",
        "The rest is mine.",
        "Should I read it?",
        "Bo and I put it there.",
    ],
)
def test_a_text_that_can_be_rewritten_for_sure_is_told_apart(text: str) -> None:
    assert keeps_grammar(text)


@pytest.mark.parametrize(
    "text",
    [
        "I tak zawsze brakuje kawy.",
        "i potem wracam do domu",
        "I documenti sono nella cartella.",
        "me gusta el jazz",
        "me ne frego",
        "Ich mag Tabs.",
        "Mi perro se llama Coco.",
        "Je suis infirmière.",
        "Me lo porto via domani.",
        "Я живу в Москве.",
        "我用 tabs。",
        "私はタブを使います。",
        "Ik woon in Utrecht.",
    ],
)
def test_another_language_is_never_english(text: str) -> None:
    assert not is_english(text)


@pytest.mark.parametrize(
    "text",
    [
        "I draw dogs, to me a preset is a filter.",
        "I like tabs.",
        "papá goes round in a pair that predates the euro",
        "I've had one coffee and half of somebody else's pączek",
        "I'm on the page and it says Nessuna disponibilità",
        "pytest with xdist",
    ],
)
def test_english_with_words_of_other_languages_is_english(text: str) -> None:
    assert is_english(text)


def test_a_language_of_which_few_phrases_are_known_is_foreign() -> None:
    assert is_foreign("nie mam czasu, bo pracuję")
    assert not is_foreign("Ich mag Tabs.")
    assert not is_foreign("部署脚本永远不要直接改。")
    assert not is_foreign("私はタブを使います。")
    assert not is_foreign("I like tabs.")


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("He has a van.", "en"),
        ("It's four hooks on the wall.", "en"),
        ("To him it's capitals only.", "en"),
        ("You hear it after ten minutes.", "en"),
        ("Off by default, they tick a box.", "en"),
        ("From Platform Nine at half seven.", "en"),
        ("Every second Tuesday at six, so it's the 27th again.", "en"),
        ("In Bo's garage, at the flat they'd break.", "en"),
        ("Since this week he's at the day centre.", "en"),
        ("Now it's five pills a day.", "en"),
        ("Er hat einen Lieferwagen.", "de"),
        ("Ella vive en Lima.", "es"),
        ("Elle habite à Lyon.", "fr"),
        ("Lui arriva alle otto.", "it"),
        ("Ele mora no Porto.", "pt"),
        ("Он живёт в Москве.", "ru"),
        ("他住在杭州。", "zh"),
        ("それは毎週金曜日です。", "ja"),
    ],
)
def test_a_statement_that_needs_the_one_before_it_lacks_a_subject(text: str, language: Language) -> None:
    assert lacks_subject(text, language)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Borsuk stays borsuk.", "en"),
        ("Wanda Pych, she runs the tests.", "en"),
        ("Bo's a lady, it only sounds like a boy.", "en"),
        ("This project uses uv.", "en"),
        ("Use tabs, not spaces.", "en"),
        ("In June we move to Gijón.", "en"),
        ("Das Team nutzt uv.", "de"),
        ("El equipo usa uv.", "es"),
        ("Il faut relancer le serveur.", "fr"),
        ("这个项目使用 uv。", "zh"),
        ("彼方さんはタブを使います。", "ja"),
    ],
)
def test_a_statement_with_a_subject_stands_alone(text: str, language: Language) -> None:
    assert not lacks_subject(text, language)
    assert not opens_with_pronoun(text, language)


def test_a_subject_that_is_said_twice_is_told_once() -> None:
    assert drop_repeated_subject("Wanda Pych, she runs the tests.") == "Wanda Pych runs the tests."
    assert drop_repeated_subject("Bo, he said no.") == "Bo said no."
    assert drop_repeated_subject("When it rains, it pours.") == "When it rains, it pours."


def test_only_an_unambiguous_you_becomes_the_listener() -> None:
    assert name_listener("I learned it from you.", "Bo") == "I learned it from Bo."
    assert name_listener("I like your flat; you never know", "Bo") == "I like Bo's flat; you never know"


def test_other_languages_are_marked_with_the_speaker() -> None:
    assert attribute_to_speaker("Ich wohne hier.", "Ana", "de") == "Ana: Ich wohne hier."
    assert attribute_to_speaker("我住在杭州。", "Ana", "zh") == "Ana：我住在杭州。"


def test_a_name_is_mentioned_only_as_a_word() -> None:
    assert mentions_name("Ana Maria is here", "Ana Maria Silva")
    assert not mentions_name("bananas", "Ana")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Last week we met Leonardo da Vinci in San Francisco.", ["Leonardo da Vinci", "San Francisco"]),
        ("Maria uses GitHub on Fridays. The end.", ["GitHub"]),
        ("I talked to Priya on Monday.", ["Priya"]),
        ("Der Hund und das Haus gehören Anna Schmidt.", ["Anna Schmidt"]),
        ("THIS IS ALL SHOUTED AT YOU", []),
        ("我住在杭州。", []),
    ],
)
def test_names_are_found_by_their_capitals(text: str, names: list[str]) -> None:
    assert [name.text for name in find_names(text)] == names


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("My sister Ana is allergic to nuts.", {("person", "Ana")}),
        (
            "Nadia prefers tea, and the billing is owned by Omar Haddad.",
            {("person", "Nadia"), ("person", "Omar Haddad")},
        ),
        ("Never restart Kestrel by hand.", set()),
        (
            "The Lanterna repository moved; our project Kestrel stays.",
            {("project", "Lanterna"), ("project", "Kestrel")},
        ),
        ("She says that everybody wants it.", set()),
        ("Meine Kollegin Heike macht das.", {("person", "Heike")}),
        ("Die Datenbank sagt nichts.", set()),
        ("Notre collègue Solène habite à Lyon.", {("person", "Solène")}),
        ("Mi hermana Rocío trabaja para Acme.", {("person", "Rocío")}),
        ("Il nostro progetto Faro è finito.", {("project", "Faro")}),
        ("A minha filha Inês mora no Porto.", {("person", "Inês")}),
        ("我姐姐住在杭州。", set()),
    ],
)
def test_words_around_a_name_say_whose_it_is(text: str, names: set[tuple[str, str]]) -> None:
    assert find_whose_names(text) == names


@given(st.text())
def test_names_stand_where_they_are_said_to_stand(text: str) -> None:
    for name in find_names(text):
        assert text[name.start : name.end] == name.text


_SPOKEN_WORDS = (
    "I I'm my mine me myself and or never always read put go fetch the to her it is don't , . “ ” i tak che 我"
)
_WORDS = st.sampled_from(_SPOKEN_WORDS.split())


@given(st.lists(_WORDS, max_size=14).map(" ".join))
def test_to_rewrite_twice_is_to_rewrite_once(text: str) -> None:
    once = to_third_person(text, "Ana")
    assert to_third_person(once, "Ana") == once


_OTHER_WORDS = "we you Bo her flat runs go and read the nous wir lui они 他 「x」 mimes in die he's."
_OTHERS = st.sampled_from(_OTHER_WORDS.split())


@given(st.lists(_OTHERS, max_size=14).map(" ".join))
def test_a_text_without_a_first_person_comes_back_unchanged(text: str) -> None:
    assert to_third_person(text, "Ana") == text
    assert keeps_grammar(text)


def test_a_name_that_is_a_pronoun_changes_nothing() -> None:
    assert to_third_person("I love my flat.", "My") == "I love my flat."


@given(st.text(), st.text(min_size=1))
def test_any_text_is_told_without_an_error(text: str, name: str) -> None:
    to_third_person(text, name)
    name_listener(text, name)
    mentions_name(text, name)


@pytest.mark.parametrize(
    "predicate",
    [
        "ate a whole cake",
        "has bought the tiles",
        "just sent the hours",
        "offered, she cried",
        "finally got there at one",
    ],
)
def test_what_somebody_once_did_is_an_event(predicate: str) -> None:
    assert tells_event(predicate)


@pytest.mark.parametrize(
    "predicate",
    [
        "moved to Lisbon", "was born in Porto", "studied law", "has lived in Porto since 2010", "has two cats",
        "has been a nurse for ten years", "worked at the yard for twenty years", "never ate meat", "hates comments",
        "has to take pills", "used to smoke", "needs glasses", "",
    ],
)  # fmt: skip
def test_what_lasts_is_no_event_whatever_its_tense(predicate: str) -> None:
    assert not tells_event(predicate)
