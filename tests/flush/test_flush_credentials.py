"""What is about a secret is never learned, and what only stands beside one is."""

import pytest

from ricordo.extraction import extract
from ricordo.extraction.grounding import asks_for_credential, contains_credential
from ricordo.messages import Message, Text

pytestmark = pytest.mark.req("FC-SECRET")

MARK = "[secret:github-token:875cbd75]"
CARD = "4111 1111 " + "1111 1111"


def _learned(*said: str) -> list[str]:
    messages = [Message(role="user", id=f"m{at}", parts=(Text(text=text),)) for at, text in enumerate(said)]
    return [finding.content for finding in extract(messages)]


@pytest.mark.parametrize(
    "text",
    [
        f"My token is {MARK}.",
        f"export STRIPE_KEY={MARK}",
        f"Use mysql://root:{MARK}@db.example.org:3306/shop the account is read-only anyway",
        "Remember that the wifi password is swordfish.",
        "Das Passwort für das WLAN ist Schwertfisch.",
        "My PIN is 4821.",
        "Remember: the door code is 8842.",
        f"My card number is {CARD}.",
        "My Visa is " + CARD.replace(" ", "") + ", use it for bookings.",
    ],
)
def test_a_credential_becomes_no_memory(text: str) -> None:
    assert _learned(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "Remember: the root password is stored in Vault.",
        "The password policy requires 12 characters.",
        f"Our customer number is {CARD[:-1]}2.",
        f"The 401 on staging came from the expired token {MARK}, so rotate it before every release.",
        "The LED pin is 13.",
        "Our password is rotated.",
    ],
)
def test_a_statement_that_gives_no_secret_away_is_no_credential(text: str) -> None:
    assert not contains_credential(text)


def test_what_stands_beside_a_credential_is_learned_and_no_quote_holds_the_credential() -> None:
    text = "Carla prefers tabs over spaces. My PIN is 4821. Our API is hosted in Frankfurt."
    assert _learned(text) == ["Carla prefers tabs over spaces.", "Our API is hosted in Frankfurt."]
    (found,) = extract(
        [Message(role="user", parts=(Text(text="Never squash. My PIN is 4821. It loses the history."),))]
    )
    assert "4821" not in found.quote


def test_an_answer_to_a_question_for_a_password_is_not_learned() -> None:
    asked = Message(role="assistant", id="m0", parts=(Text(text="What is the wifi password?"),))
    told = Message(role="user", id="m1", parts=(Text(text="swordfish, in the whole house"),))
    assert extract([asked, told]) == ()
    assert asks_for_credential("What is your PIN?")
    assert not asks_for_credential("Which password manager do you use?")
