"""Managing a memory: each refusal has an error of its own, and lists come in pages, through Python and the commands."""

import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from command_line import Done, ricordo
from hand_clock import HandClock
from places import place_of
from ricordo import Memory, Scope, errors
from ricordo.curation import InMemoryProfileStore, UserProfile

pytestmark = pytest.mark.req("DF-C71")

SHOP = Scope(user="me", project="shop")
SECRET = "sk-ant-api03-" + "Qx7Lm2Vb9Rt4Wz8Kc3Np6Hd1" * 3
Act = Callable[[Memory], Awaitable[object]]


def _run(root: Path, *words: str, project: str = "shop", stdin: str | None = None) -> Done:
    return ricordo(*words, "--root", root, "--user", "me", "--project", project, stdin=stdin)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("act", "error"),
    [
        (lambda memory: memory.remember(" "), errors.InvalidEntry),
        (lambda memory: memory.entries(limit=0), errors.InvalidQuery),
        (lambda memory: memory.entries(states=("gone",)), errors.InvalidQuery),
        (lambda memory: memory.profile().add_fact("Likes tea", confidence=2.0), errors.InvalidFact),
        (lambda memory: memory.profile().set_summary("nothing", "x"), errors.InvalidFact),
        (lambda memory: memory.profile().facts(offset=-1), errors.InvalidQuery),
    ],
)
async def test_a_value_that_cannot_be_used_is_an_invalid_input(root: Path, act: Act, error: type[Exception]) -> None:
    async with Memory.open(root, scope=SHOP) as memory:
        with pytest.raises(error) as told:
            await act(memory)
        assert isinstance(told.value, errors.InvalidInput)
        assert isinstance(told.value, ValueError)
        assert await memory.entries() == []


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("act", "error"),
    [
        (lambda memory: memory.entry("nothing"), errors.EntryNotFound),
        (lambda memory: memory.update("nothing", content="x"), errors.EntryNotFound),
        (lambda memory: memory.forget("nothing"), errors.EntryNotFound),
        (lambda memory: memory.entries(limit=1, after="nothing"), errors.EntryNotFound),
        (lambda memory: memory.profile().fact("nothing"), errors.FactNotFound),
        (lambda memory: memory.profile().update_fact("nothing", content="x"), errors.FactNotFound),
        (lambda memory: memory.profile().remove_fact("nothing"), errors.FactNotFound),
        (lambda memory: memory.session("nothing"), errors.SessionNotFound),
        (lambda memory: memory.undo("nothing"), errors.ChangeNotFound),
    ],
)
async def test_an_unknown_id_is_not_found(root: Path, act: Act, error: type[Exception]) -> None:
    async with Memory.open(root, scope=SHOP) as memory:
        await memory.remember("We deploy from main.")
        with pytest.raises(error) as told:
            await act(memory)
        assert isinstance(told.value, errors.NotFound)
        assert [each.content for each in await memory.entries()] == ["We deploy from main."]


@pytest.mark.anyio
async def test_a_duplicate_and_a_stale_revision_change_nothing(root: Path) -> None:
    async with Memory.open(root, scope=SHOP) as memory:
        profile = memory.profile()
        tea = await profile.add_fact("Likes tea", category="preference")
        rides = await profile.add_fact("Rides")
        changed = await profile.update_fact(rides.id, content="Rides a bike", revision=rides.revision)
        before = await profile.show()
        with pytest.raises(errors.DuplicateFact, match=tea.id):
            await profile.add_fact("likes  TEA.", merge=False)
        with pytest.raises(errors.DuplicateFact, match=tea.id):
            await profile.update_fact(rides.id, content="Likes tea", merge=False)
        with pytest.raises(errors.VersionConflict, match=str(changed.revision)):
            await profile.update_fact(rides.id, content="Walks", revision=rides.revision)
        document = json.loads(await profile.export_document())
        document["facts"][0]["content"] = "Likes coffee"
        with pytest.raises(errors.VersionConflict):
            await profile.import_document(json.dumps(document))
        assert await profile.show() == before


@pytest.mark.anyio
async def test_what_an_update_leaves_out_stays(root: Path) -> None:
    async with Memory.open(root, scope=SHOP) as memory:
        saved = await memory.remember("We deploy from main.", kind="decision", tags=["git"], metadata={"area": "ops"})
        for given in ({"content": "We deploy from release."}, {"tags": ["ops"]}, {"kind": "convention"}):
            before = await memory.entry(saved.id)
            after = await memory.update(saved.id, **given)
            for name in ("content", "kind", "tags", "metadata", "time", "scope"):
                expected = given.get(name, getattr(before, name))
                assert getattr(after, name) == (tuple(expected) if name == "tags" else expected), (given, name)
        fact = await memory.profile().add_fact("Likes tea", category="preference", valid_days=9, source_error="coffee")
        changed = await memory.profile().update_fact(fact.id, confidence=0.5)
        names = ("content", "category", "valid_days", "source_error", "created_at", "source", "pinned")
        assert [getattr(changed, name) for name in names] == [getattr(fact, name) for name in names]


@pytest.mark.anyio
async def test_a_store_that_cannot_do_it_says_so() -> None:
    profile = UserProfile(InMemoryProfileStore(HandClock()), clock=HandClock())
    with pytest.raises(errors.Unsupported, match="keeps no backups"):
        await profile.migrate()


@pytest.mark.may_block("the test opens memories by commands and by itself")
@pytest.mark.anyio
async def test_each_scope_is_managed_through_python_and_no_other_is_touched(root: Path) -> None:
    shared = Scope(project="shop")
    async with Memory.open(root, scope=SHOP) as memory:
        mine = await memory.remember("Mine alone.")
        ours = await memory.remember("For all of us.", scope=shared)
        await memory.profile().add_fact("Likes tea")
        with pytest.raises(errors.ScopeMismatch):
            memory.profile(scope=Scope(user="ben", project="shop"))
        with pytest.raises(errors.ScopeMismatch):
            await memory.delete_all(scope=Scope(project="other"))
        assert {each.id for each in (await memory.delete_all(scope=shared)).entries} == {ours.id}
        assert mine.id in {each.id for each in await memory.entries()}
        assert (await memory.profile(scope=SHOP).facts()).total == 1
        # what was done can be seen and taken back
        (newest, *_) = await memory.history()
        assert (newest.action, (await memory.undo(newest.id)).id) == ("forget", newest.id)
        assert ours.id in {each.id for each in await memory.entries()}


@pytest.mark.req("DF-B23")
def test_the_command_names_each_refusal_and_takes_a_scope(root: Path) -> None:
    assert _run(root, "remember", "We deploy from main.").code == 0
    _run(root, "profile", "add", "Likes tea")
    document = _run(root, "profile", "export").document
    document["facts"][0]["content"] = "Likes coffee"
    for words, stdin, error in (
        (["remember", " "], None, "InvalidEntry"),
        (["memory", "show", "nothing"], None, "EntryNotFound"),
        (["profile", "remove", "nothing"], None, "FactNotFound"),
        (["profile", "import", "-"], json.dumps(document), "VersionConflict"),
        (["undo", "nothing"], None, "ChangeNotFound"),
    ):
        done = _run(root, *words, "--json", stdin=stdin)
        assert (done.code, json.loads(done.err or done.out)["error"]) == (1, error), done
    assert ricordo("memory", "list", "--json", "--root", root, "--user", "ben").document["total"] == 0
    assert ricordo("profile", "show", "--json", "--root", root, "--user", "ben").document["total"] == 0
    # what was set is seen and taken back
    assert [row["action"] for row in _run(root, "history", "--json").document["changes"]][:1] == ["profile"]
    assert _run(root, "undo").code == 0
    assert _run(root, "profile", "show", "--json").document["total"] == 0


def test_a_profile_that_cannot_be_read_is_told_and_stays(root: Path) -> None:
    _run(root, "profile", "add", "Likes tea")
    path = place_of(root, "me") / "workspace" / "profile.json"
    path.write_text("{")
    done = _run(root, "profile", "show", "--json")
    assert (done.code, json.loads(done.err or done.out)["error"]) == (1, "DocumentInvalid")
    assert _run(root, "profile", "add", "Rides").code == 1
    assert path.read_text() == "{"


@pytest.mark.req("DF-B23")
def test_pages_hold_everything_once_whatever_is_saved_meanwhile(root: Path) -> None:
    for number in range(7):
        _run(root, "remember", f"Shelf {number} holds tea.", *(["--tag", "even"] if number % 2 == 0 else []))
    every = [each["id"] for each in _run(root, "memory", "list", "--json").document["entries"]]
    for filters, wanted in (([], every), (["--tag", "even"], every[::2])):
        pages, last = [], ""
        for _ in range(5):
            words = ["memory", "list", "--json", "--limit", "3", *filters, *(["--after", last] if last else [])]
            page = _run(root, *words).document
            pages.append([each["id"] for each in page["entries"]])
            assert page["left"] == len(wanted) - sum(map(len, pages))
            if not page["entries"]:
                break
            last = page["entries"][-1]["id"][-10:]
            if not filters and len(pages) == 1:
                _run(root, "remember", "Saved meanwhile.")
        assert [name for page in pages for name in page] == wanted
        assert len(pages[0]) == 3
    told = _run(root, "memory", "list", "--limit", "3").out
    assert "… and 5 more" in told
    assert "--after" in told
    assert "No more memories match." in _run(root, "memory", "list", "--after", every[-1]).out
    assert _run(root, "memory", "list", "--after", "nothing").code == 1


@pytest.mark.anyio
async def test_entries_facts_and_changes_come_in_pages(root: Path) -> None:
    async with Memory.open(root, scope=SHOP) as memory:
        saved = [(await memory.remember(f"Shelf {number} holds tea.")).id for number in range(4)][::-1]
        first = await memory.entries(limit=3)
        assert [each.id for each in first] == saved[:3]
        await memory.remember("Saved meanwhile.")
        assert [each.id for each in await memory.entries(limit=3, after=first[-1])] == saved[3:]
        for number in range(5):
            await memory.profile().add_fact(f"Knows {number}")
        page = await memory.profile().facts(limit=2, offset=3)
        assert ([fact.content for fact in page.facts], page.total) == (["Knows 3", "Knows 4"], 5)
        assert len(await memory.history(limit=2)) == 2


@pytest.mark.req("DF-B18")
def test_no_shown_setting_holds_a_secret(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _run(root, "remember", "We deploy from main.")
    monkeypatch.setenv("RICORDO_MODEL", SECRET)
    monkeypatch.setenv("RICORDO_BASE_URL", "https://me:hunter2x@host.example/v1")
    (root / "config.toml").write_text("max_iters = 3\n")
    commands = (("config", "show"), ("config", "show", "--json"), ("doctor", "--json"), ("trust", "--show"))
    for words in commands:
        done = ricordo(*words, "--root", root)
        assert SECRET not in done.out + done.err, words
        assert "hunter2x" not in done.out + done.err, words
        if words[0] == "config":
            assert done.out.count("[hidden]") == 2
            assert "max_iters" in done.out
