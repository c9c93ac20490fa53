"""What a person wants with a text, in eight languages: to ask, to have something remembered, or neither."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ricordo.models.offline import extract_remember_request, is_question


@pytest.mark.req("GO-AT1")
@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("Remember that we deploy only from main.", "we deploy only from main."),
        ("please remember: the wifi is oak", "the wifi is oak"),
        ("Remember the wifi name is oak.", "the wifi name is oak."),
        ("Remember to tag releases.", "to tag releases."),
        ("Don't forget that Nadia owns staging.", "Nadia owns staging."),
        ("Note that staging is read-only.", "staging is read-only."),
        ("Note: staging is read-only.", "staging is read-only."),
        ("Please note that x runs.", "x runs."),
        ("Merk dir, dass wir nur von main deployen.", "wir nur von main deployen."),
        ("Merke dir bitte: Port 5433.", "Port 5433."),
        ("Ricorda che usiamo uv.", "usiamo uv."),
        ("Ricordati di usare uv.", "usare uv."),
        ("Recuerda que usamos uv.", "usamos uv."),
        ("Souviens-toi que nous utilisons uv.", "nous utilisons uv."),
        ("Souviens-toi qu'on utilise uv.", "on utilise uv."),
        ("Lembra-te que usamos uv.", "usamos uv."),
        ("Lembre-se de que usamos uv.", "usamos uv."),
        ("覚えて: 鍵は机の下", "鍵は机の下"),
        ("鍵は机の下にあると覚えておいてください。", "鍵は机の下にある"),
        ("记住：我们用uv。", "我们用uv。"),
        ("请记住我们用uv", "我们用uv"),
        ("Remember when we deploy, we tag.", "when we deploy, we tag."),
    ],
)
def test_a_request_to_remember_names_what_is_kept(text: str, content: str) -> None:
    assert extract_remember_request(text) == content


@pytest.mark.parametrize(
    "text",
    [
        "Remember when we deployed on Friday?",
        "Remember when we deployed on Friday",
        "Remember that time we deployed on Friday.",
        "Remember how it broke.",
        "Remember who owns staging",
        "Remember me?",
        "Remember me",
        "Note the irony",
        "Note the irony.",
        "Notes are in docs.",
        "note, this is odd",
        "Remember that we deploy on Friday, right?",
        "Remembering names is hard.",
        "I remember that we deploy.",
        "Do you remember that we deploy?",
        "Merk dir, wann wir deployen",
        "Ricorda molto suo padre.",
        "Ricorda quando siamo andati?",
        "Ricordati quando siamo andati",
        "Recuerda a su padre.",
        "Recuerda cuándo fuimos",
        "Souviens-toi quand nous sommes partis",
        "Lembra do João?",
        "Lembra quando fomos",
        "记住了吗？",
        "记住了",
        "记得我们用什么吗",
        "覚えていますか",
        "覚えてる？",
        "Note",
        "Remember",
        "",
    ],
)
def test_who_asks_whether_one_remembers_or_notes_an_irony_has_nothing_kept(text: str) -> None:
    assert extract_remember_request(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "Tell me the wifi name",
        "tell me about staging.",
        "Show me our ports",
        "list the servers",
        "List all decisions.",
        "remind me what the port is",
        "Remind me of the wifi name",
        "explain our deploy process",
        "Please tell me the port.",
        "sag mir den Port",
        "Sag mir bitte, wo der Schlüssel liegt.",
        "Zeig mir die Ports",
        "Nenn mir den Port.",
        "erinnere mich an den Port",
        "dimmi la porta",
        "Mostrami le porte",
        "ricordami il nome",
        "dis-moi le port",
        "Montre-moi les ports.",
        "dime el puerto",
        "Muéstrame los puertos",
        "recuérdame el puerto",
        "diz-me a porta",
        "告诉我端口",
        "ポートを教えてください。",
        "who owns staging",
        "what is the port.",
        "Which branch do we deploy?",
        "is staging up",
        "Can you tell me the port.",
        "do we use uv",
        "what's our port",
        "Nadia owns staging. Who owns prod?",
        "¿Cuál es el puerto?",
        "wo läuft staging",
        "端口是多少？",
        "let me know the port",
        "I'd like to know the port.",
        "Wer ist Nadia?",
        "where do our fixtures live",
        "Remember when we deployed on Friday?",
        "端口是什么吗",
        "我们用uv吗",
        "Could someone tell me the port",
    ],
)
def test_who_wants_to_be_told_something_asks(text: str) -> None:
    assert is_question(text)


@pytest.mark.parametrize(
    "text",
    [
        "In chat A, server A3 runs on port 1003.",
        "The treasure is under the oak.",
        "Do not deploy on Friday.",
        "Don't deploy.",
        "When we deploy, we tag.",
        "What we use is uv.",
        "List of servers: A, B",
        "Remind me to buy milk",
        "Remember that we use uv.",
        "Will owns staging.",
        "See https://example.org/?q=1 for it.",
        "Note the irony",
        "Is fine.",
        "Nadia owns staging",
        "We use uv",
        "Sag mir, dass",
        "ricordami di comprare il latte",
        "Lista de servidores: A",
        "",
        "Our list is long.",
        "Have a nice day.",
        "May is the release month.",
        "Do use uv.",
    ],
)
def test_who_states_something_or_wants_a_thing_done_does_not_ask(text: str) -> None:
    assert not is_question(text)


@given(
    text=st.text(max_size=80), mark=st.sampled_from(["?", "？", "؟"]), opens=st.sampled_from(["Remember ", "记住", ""])
)
def test_a_text_that_ends_with_a_question_mark_asks_and_is_never_kept(text: str, mark: str, opens: str) -> None:
    assert is_question(f"{opens}{text}{mark}")
    assert extract_remember_request(f"{opens}{text}{mark}") is None
