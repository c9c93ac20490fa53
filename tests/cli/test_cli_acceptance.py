"""The walk through the harness at the command line: talk, leave, edit the file, come back, ask; with another store."""

from collections.abc import Sequence

import pytest

from command_line import Done, loopback_model, ricordo
from ricordo.testing import Call, LoopbackServer, RecordedRequest, Say, ScriptItem

GOLDEN = "Our test fixtures live in testdata/golden."


def _chat(*lines: str, options: Sequence[str] = ()) -> Done:
    return ricordo("chat", *options, stdin="".join(f"{line}\n" for line in lines))


def _prompts(server: LoopbackServer) -> list[str]:
    """Return the system prompts of the requests of turns."""
    return ["\n".join(each.text for each in request.messages[:1]) for request in server.requests if request.tools]


@pytest.mark.req("GO-AT2")
@pytest.mark.parametrize("scheme", ["markdown", "sessions", "layered"])
def test_what_a_chat_was_taught_the_next_one_has_in_its_prompt_and_answers_without_a_tool(
    scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if scheme != "layered":
        monkeypatch.setenv("RICORDO_STORE", f"{scheme}:kept")
    talk: list[ScriptItem] = [
        Call("remember", {"content": GOLDEN}),
        Say("Kept."),
        Say("In testdata/golden."),
    ]

    def played(request: RecordedRequest) -> ScriptItem:
        return talk.pop(0) if request.tools else Say('{"facts": []}' if request.schema else "They talked.\nTAGS: talk")

    with loopback_model(played, monkeypatch) as server:
        assert _chat(f"Remember: {GOLDEN}").code == 0
        asked = _chat("Where do our test fixtures live?")
    assert asked.code == 0
    assert "In testdata/golden." in asked.out
    assert [GOLDEN in prompt for prompt in _prompts(server)] == [False, False, True]


def _taught(*contents: str) -> list[ScriptItem]:
    """Return what a model does that keeps these, and answers once more."""
    return [*(Call("remember", {"content": content, "tags": ["layout"]}) for content in contents), Say("Kept.")]


@pytest.mark.req("GO-SWAP")
@pytest.mark.parametrize("scheme", ["jsonl", "sessions"])
def test_the_memory_of_a_chat_is_that_of_its_store(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RICORDO_STORE", f"{scheme}:kept")
    talk = _taught(GOLDEN, "Nadia owns staging.")
    with loopback_model(lambda request: talk.pop(0) if request.tools else Say("Talk.\nTAGS: talk"), monkeypatch):
        assert _chat("/memory").out.count("testdata") == 0
        assert _chat("Remember these.").code == 0
    listed = _chat("/memory list").out.splitlines()
    contents = [line.strip() for line in listed if line.startswith("  ")]
    assert contents == ["Nadia owns staging. #layout", f"{GOLDEN} #layout"]
    newest, oldest = (line.split()[0] for line in listed if "  fact  " in line)
    shown = _chat(f"/memory show {oldest[-8:]}", "/memory search STAGING", "/memory search xylophone")
    assert shown.code == 0
    assert GOLDEN in shown.out
    assert ("Nadia owns staging." in shown.out) is (scheme != "sessions"), "a session is found by what it was about"
    assert shown.out.count("Nothing found.") == 1
    gone = _chat(f"/memory forget {newest}", "/memory")
    assert (gone.code, f"Forgot {newest}." in gone.out) == (0, True)
    assert "Nadia" not in gone.out
    assert GOLDEN in gone.out
    for wrong in ("/memory show nothing-of-this", "/memory shwo"):
        failed = _chat(wrong)
        assert failed.code == 1
        assert failed.err.startswith("ricordo: ")


@pytest.mark.req("GO-G3", "GO-G23")
def test_a_chat_whose_memory_is_off_says_that_nothing_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    ricordo("remember", GOLDEN)
    monkeypatch.setenv("RICORDO_STORE", "none")
    done = _chat("/memory")
    assert (done.code, done.out.strip().splitlines()[-1]) == (0, "Nothing is remembered.")
    assert "testdata" not in done.out
