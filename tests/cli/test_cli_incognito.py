"""An incognito chat: with an option, or from one line to the next."""

from pathlib import Path

import pytest

from command_line import loopback_model, ricordo
from ricordo.testing import Say

pytestmark = pytest.mark.req("CC-IGNORE")


def files() -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in Path(".ricordo").rglob("*") if path.is_file()}


@pytest.mark.req("CC-IGNORE")
def test_an_incognito_chat_shows_and_keeps_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    ricordo("remember", "We deploy only from the heron branch.")
    before = files()
    with loopback_model([Say("I don't know."), Say("Oh.")], monkeypatch) as server:
        one = ricordo("chat", "--incognito", stdin="From which branch do we deploy?\n")
        two = ricordo("chat", "--incognito", "--json", "My cat Zanzibar is ill.")
        sent = str([request.messages for request in server.requests])
    assert (one.code, two.code) == (0, 0)
    assert "I don't know." in one.out
    assert "it was incognito" in one.err
    assert two.document["kept"] is False
    assert "heron" not in sent
    assert "Zanzibar" in sent
    assert files() == before


def test_incognito_begins_with_one_line_and_ends_with_another_and_the_session_before_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines = ["We deploy only from main.", "/incognito", "My cat Zanzibar is ill.", "/incognito off", "And now?"]
    with loopback_model(lambda request: Say(f"Reply {request.number}."), monkeypatch) as server:
        done = ricordo("chat", stdin="".join(f"{line}\n" for line in lines))
        requests = [str(request.messages) for request in server.requests]
    hidden = [each for each in requests if "Zanzibar" in each]
    (after,) = [each for each in requests if "And now?" in each and "helpful assistant" in each]
    assert done.code == 0
    assert "nothing of this session is kept" in done.out
    assert "This chat is kept again." in done.out
    assert len(hidden) == 1, "nothing is learned from it either"
    assert "only from main" not in hidden[0]
    assert "only from main" in after
    assert len(ricordo("session", "list", "--json").document["sessions"]) == 1
    assert b"Zanzibar" not in b"".join(files().values())


def test_what_an_incognito_chat_can_not_be_is_said() -> None:
    ricordo("remember", "We deploy only from main.")
    assert "name a --model" in ricordo("chat", "--incognito", "Hello.").err
    refused = ricordo("chat", "--incognito", "--session", "one", "Hello.")
    assert refused.code == 2
    assert "a new one" in refused.err
    offline = ricordo("chat", stdin="/incognito\n/incognito please\n")
    assert "needs a --model" in offline.err
    assert "ends it" in offline.err
