"""`why` tells where a memory is from, what changed it, and why it is found and shown, or is not."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from command_line import chat, ricordo
from places import place_of

pytestmark = pytest.mark.req("FC-WHY")

WORDS = ["alder", "birch", "cedar", "dogwood", "elm", "fir", "hazel", "juniper", "larch", "maple", "oak", "pine"]
MAIN = "We decided to deploy only from main, never from a branch."


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RICORDO_CONSOLIDATION", "off")
    folder = tmp_path / "shop" / ".ricordo"
    folder.parent.mkdir()
    ricordo("import", chat(tmp_path / "talk.jsonl"), "--session", "talk", "--root", folder)
    ricordo("remember", "The staging cluster is called harbour.", "--root", folder)
    ricordo("remember", "Deploys of the harbour wait for Nadia.", "--root", folder)
    return folder


def _id(root: Path, text: str) -> str:
    entries = ricordo("memory", "list", "--root", root, "--json").document["entries"]
    (found,) = [each["id"] for each in entries if text in each["content"]]
    return str(found)


@pytest.mark.req("FC-WHY")
def test_why_of_words_shows_the_scores_the_source_and_what_was_left_out_and_the_same_for_one_memory(root: Path) -> None:
    asked = ("--limit", "1", "--root", root, "--json")
    for arguments in (("deploy only from main",), (_id(root, "only from main"), "--for", "deploy only from main")):
        document = ricordo("why", *arguments, *asked).document
        explained = document.get("explained") or document
        (hit,) = explained["hits"]
        assert "only from main" in hit["entry"]["content"]
        assert hit["entry"]["source"]["session"] == "talk"
        (message,) = hit["entry"]["source"]["messages"]
        others = explained["rejected"]
        assert "Deploys of the harbour wait for Nadia." in [each["entry"]["content"] for each in others]
        assert {each["reason"] for each in others} == {"limit"}
        assert explained["candidates"] == len(others) + 1
        for each in (hit, *others):
            assert sum(each["score_parts"].values()) == pytest.approx(each["score"], abs=0.01)
            assert {"bm25", "memory"} <= set(each["score_parts"]) <= set(each["signals"])
        told = ("--for", "deploy only from main") if arguments[1:] else ()
        shown = ricordo("why", arguments[0], *told, "--limit", "1", "--root", root).out
        assert f"said in talk {message}" in shown
        assert f"score {hit['score']:.3f}" in shown
        assert f"words {hit['score_parts']['bm25']:+.3f}" in shown
        for each in others:
            assert (
                f"{each['entry']['content']}\n   below the limit · score {each['score']:.3f} · {each['file']}" in shown
            )


@pytest.mark.req("FC-WHY")
def test_why_of_an_id_tells_what_it_rests_on_what_changed_it_and_whether_it_is_in_the_prompt(root: Path) -> None:
    learned, saved = _id(root, "only from main"), _id(root, "called harbour")
    document = ricordo("why", learned, "--root", root, "--json").document
    (origin,) = document["rests_on"]
    assert (origin["session"], origin["line"]) == ("talk", 1)
    assert "talk" in origin["file"]
    assert not document["in_prompt"]
    assert "not curated yet" in document["standing"]
    own = ricordo("why", saved, "--root", root, "--json").document
    assert own["in_prompt"]
    assert own["standing"] == "in the prompt of each session"
    assert own["file"].endswith(".md")
    ricordo("pin", saved, "--root", root)
    changed = ricordo("why", saved[-8:], "--root", root, "--json").document["changes"]
    assert len(changed) == len(own["changes"]) + 1 >= 2
    shown = ricordo("why", learned, "--root", root).out
    assert MAIN in shown
    assert "said in" in shown


@pytest.mark.req("CC-HALFLIFE", "FC-WHY")
def test_why_of_an_id_tells_how_often_it_was_shown_used_and_confirmed(root: Path) -> None:
    saved = _id(root, "called harbour")
    assert "never shown; never used; never confirmed" in ricordo("why", saved, "--root", root).out
    ricordo("recall", "staging cluster called", "--limit", "1", "--root", root)
    ricordo("memory", "show", saved, "--root", root)
    ricordo("confirm", saved, "--root", root)
    ricordo("confirm", saved, "--root", root)
    usage = ricordo("why", saved, "--root", root, "--json").document["usage"]
    assert {act: known["count"] for act, known in usage.items()} == {"shown": 1, "used": 1, "confirmed": 2}
    assert usage["confirmed"]["first"] <= usage["confirmed"]["last"]
    assert "shown once, last 20" in ricordo("why", saved, "--root", root).out


@pytest.mark.req("CC-HALFLIFE", "CC-AGE")
def test_each_memory_tells_how_far_it_has_faded_and_what_changes_that(root: Path) -> None:
    ricordo("remember", "A walnut.", "--root", root)
    now = datetime.now(UTC)
    rows = [
        ("fact", 120, "", 120.0, "fading"),
        ("fact", 119, "", 120.0, "fresh"),
        ("fact", 361, "", 120.0, "faded"),
        ("preference", 361, "", 365.0, "fresh"),
        ("lesson", 181, "", 180.0, "fading"),
        ("goal", 46, "", 45.0, "fading"),
        ("fact", 361, "[merged:: 01aa,01ab]", 360.0, "fading"),
        ("fact", 361, "[merged:: 01aa,01ab,01ac,01ad]", 480.0, "fresh"),
        ("fact", 800, f"[confirmed:: {now - timedelta(days=200):%Y-%m-%dT%H:%M:%SZ}]", 240.0, "fresh"),
        ("fact", 800, "[pinned:: yes]", 120.0, "pinned"),
        ("fact", 5, "[until:: 2026-01-01]", 120.0, "ended"),
        ("fact", 5, "[state:: superseded]", 120.0, "superseded"),
    ]
    bullets = []
    for number, (word, (kind, days, more, _, _)) in enumerate(zip(WORDS, rows, strict=True)):
        said = f"[kind:: {kind}] [at:: {now - timedelta(days=days):%Y-%m-%dT%H:%M:%SZ}]"
        bullets.append(f"- The tree {word} grows. {said} {more} ^01k6yvgewd8dp5gr1g9vsf{number:04}")
    (place_of(root) / "workspace" / "MEMORY.md").write_text(
        "# Memory\n\n" + "\n".join(bullets) + "\n", encoding="utf-8"
    )
    listed = {each["content"]: each for each in ricordo("memory", "list", "--root", root, "--json").document["entries"]}
    shown = ricordo("memory", "list", "--root", root).out
    for word, (kind, _, _, half_life, state) in zip(WORDS, rows, strict=True):
        entry = listed[f"The tree {word} grows."]
        assert (entry["decay"]["state"], entry["decay"]["half_life"]) == (state, half_life), word
        line = next(line for line in shown.splitlines() if entry["id"] in line)
        assert (f"  {state}  " in line) == (state in {"fading", "faded", "ended"})
        assert kind in line
    for word, state in (
        ("alder", "fading, weight"),
        ("maple", "pinned: it does not"),
        ("oak", "ended:"),
        ("pine", "superseded:"),
    ):
        for command in (["why"], ["memory", "show"]):
            text = ricordo(*command, listed[f"The tree {word} grows."]["id"], "--root", root).out
            assert state in " ".join(text.split())
    assert "counts half 120 days after" in " ".join(
        ricordo("why", listed["The tree alder grows."]["id"], "--root", root).out.split()
    )


@pytest.mark.parametrize(
    ("option", "value", "passes"),
    [
        ("--session", "talk", True), ("--session", "other", False),
        ("--path", "workspace/agents/", True), ("--path", "workspace/none", False),
        ("--since", "2026-11-01", True), ("--until", "2026-11-01", False),
        ("--kind", "goal", False), ("--tag", "x", False),
    ],
)  # fmt: skip
def test_a_search_is_narrowed_by_each_of_its_filters_and_so_is_its_explanation(
    root: Path, option: str, value: str, passes: bool
) -> None:
    for more in ((), ("--why",)):
        hits = ricordo("memory", "search", "deploy main", option, value, *more, "--root", root, "--json").document[
            "hits"
        ]
        assert bool(hits) is passes


def test_why_of_an_id_that_no_memory_has_says_so_and_looks_for_nothing(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = _id(root, "called harbour")
    mistyped = f"{saved[:-1]}{'a' if saved[-1] != 'a' else 'b'}"
    for wrong in (mistyped, "01m80ftsj47df9g1b2nek7s7ge", "nek7s7ge", "fact_1234567890", saved[:6]):
        for embedder in ("none", "hashing"):
            monkeypatch.setenv("RICORDO_EMBEDDER", embedder)
            done = ricordo("why", wrong, "--root", root)
            assert (done.code, done.out) == (1, "")
            assert wrong in done.err
    assert f"The nearest is {saved}." in ricordo("why", mistyped, "--root", root).err
    ricordo("remember", "The parser needs python3 and nothing else.", "--root", root)
    assert "python3 and nothing else" in ricordo("why", "python3", "--root", root).out
    assert "called harbour" in ricordo("why", "harbour", "--root", root).out
    assert ricordo("why", "zebras", "--root", root).out == "Nothing found.\n"


def test_why_of_nothing_is_refused_and_what_has_no_score_is_listed_without_one(root: Path) -> None:
    for blank in ("", "  "):
        done = ricordo("why", blank, "--root", root)
        assert (done.code, done.out) == (1, "")
        assert "write its id, or words" in done.err
    listed = ricordo("recall", "", "--why", "--root", root).out
    assert "called harbour" in listed
    assert "score" not in listed
    assert "\n\n" not in listed.partition("Not shown")[0].rstrip()
