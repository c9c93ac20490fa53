"""The profile through `Memory`: whose it is, that others see none of it, and that no loop waits for it."""

import json
import threading
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from hand_clock import HandClock
from places import place_of
from ricordo import Memory, Scope
from ricordo.curation.profile import importing, storage, user_profile
from ricordo.curation.profile.text_form import is_current_text, render_editable
from ricordo.errors import FactNotFound, ScopeMismatch
from ricordo.runtime import Settings
from ricordo.runtime.sync import SyncMemory

pytestmark = pytest.mark.anyio
ANN, BOB = Scope(user="ann", project="shop"), Scope(user="Ann", project="shop")


def _settings(tmp_path: Path) -> Settings:
    return Settings(root=None, user="ann", data=tmp_path / "data", cache=tmp_path / "cache")


@pytest.mark.req("DF-EMPTY", "DF-C51")
async def test_a_profile_of_nobody_is_empty_in_one_shape_and_belongs_to_who_asked(tmp_path: Path) -> None:
    root, elsewhere = tmp_path / ".ricordo", timezone(timedelta(hours=2))
    section = {"summary": "", "updatedAt": ""}
    empty = {
        "version": "1.0",
        "lastUpdated": "2026-11-21T08:00:00.000Z",
        "user": {"workContext": section, "personalContext": section, "topOfMind": section},
        "history": {"recentMonths": section, "earlierContext": section, "longTermBackground": section},
        "facts": [],
    }
    clock = HandClock(datetime(2026, 11, 21, 10, tzinfo=elsewhere))
    async with Memory.open(root, scope=ANN, settings=_settings(tmp_path), clock=clock) as memory:
        profile = memory.profile()
        shown = await profile.show()
        for held in (shown.extra, shown.summaries, shown.summaries["workContext"].extra):
            assert isinstance(held, dict)
            held["mine"] = "changed"
        text = await profile.export_document()
        assert json.loads(text) == empty
        await profile.add_fact("Likes tea")
        await profile.clear()
        file = place_of(root, "ann") / "workspace" / "profile.json"
        assert json.loads(file.read_text(encoding="utf-8")) == {**empty, "revision": 2}
        # what was written beside us is what is loaded again
        file.write_text(text.replace('"summary": ""', '"summary": "New."'), encoding="utf-8")
        assert (await profile.show()).summaries["topOfMind"].summary == "New."


@pytest.mark.req("DF-C52")
async def test_two_users_of_one_project_have_profiles_of_their_own(tmp_path: Path) -> None:
    root, settings = tmp_path / ".ricordo", _settings(tmp_path)
    async with Memory.open(root, scope=ANN, settings=settings) as memory:
        fact = await memory.profile().add_fact("Likes tea")
        other = memory.profile(scope=Scope(user="ann", project="shop", agent="coder"))
        await other.add_fact("Writes Rust")
        for scope in (BOB, Scope(user="ann", project="other"), Scope(user="ann"), Scope(project="shop")):
            with pytest.raises(ScopeMismatch):
                memory.profile(scope=scope)
    async with Memory.open(root, scope=BOB, settings=settings) as memory:
        assert (await memory.profile().show()).is_empty
        with pytest.raises(FactNotFound):
            await memory.profile().fact(fact.id)
        await memory.profile().clear()
    async with Memory.open(root, scope=Scope(user="ann", project="shop", agent="coder"), settings=settings) as memory:
        assert [each.content for each in (await memory.profile().show()).facts] == ["Writes Rust"]
    async with Memory.open(root, scope=ANN, settings=settings) as memory:
        assert (await memory.profile().show()).facts == (fact,)


@pytest.mark.req("DF-C52")
async def test_a_root_of_ones_own_has_its_profile_in_the_middle_and_undo_takes_it_back(tmp_path: Path) -> None:
    async with Memory.open(tmp_path / "own", scope=Scope(user="ann"), settings=_settings(tmp_path)) as memory:
        profile = memory.profile()
        fact = await profile.add_fact("Likes tea")
        assert (tmp_path / "own/workspace/profile.json").is_file()
        file = tmp_path / "own/workspace/profile.json"
        before = file.read_bytes()
        await profile.update_fact(fact.id, content="Likes coffee")
        text = render_editable(await profile.show())
        item = await memory.undo()
        assert (item.action, item.reason) == ("profile", f"{fact.id} changed")
        assert (await profile.fact(fact.id)).content == "Likes tea"
        assert file.read_bytes() == before
        # a text of the revision that was taken back is told from the next one with its number
        await profile.update_fact(fact.id, content="Likes milk")
        assert (await profile.show()).revision == 2
        assert not is_current_text(await profile.show(), text)
        await memory.undo()
        assert file.read_bytes() == before
        await memory.undo()
        assert (await profile.show()).is_empty


@pytest.mark.req("DF-B19")
def test_the_profile_has_a_blocking_face(tmp_path: Path) -> None:
    with SyncMemory.open(tmp_path / ".ricordo", scope=ANN, settings=_settings(tmp_path)) as memory:
        fact = memory.profile().add_fact("Likes tea", category="preference")
        assert memory.profile().facts(query="tea").facts == (fact,)
        memory.profile().set_summary("workContext", "Builds ships")
        assert "- Work: Builds ships" in memory.profile().render().text
        exported = memory.profile().export_document()
        memory.profile().remove_fact(fact.id)
        memory.profile().import_document(exported, mode="replace")
        assert memory.profile().show().facts == (fact,)
        assert memory.profile().pin(fact.id).pinned


@pytest.mark.req("DF-B19")
async def test_what_takes_long_is_done_beside_the_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loop_thread, seen = threading.get_ident(), dict[str, bool]()
    for module, name in (
        (storage, "parse_profile"), (storage, "dump_profile_json"), (user_profile, "render_profile"),
        (user_profile, "find_facts"), (user_profile, "render_printable_profile"), (importing, "plan_parsed_import"),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, _noting(getattr(module, name), name, seen, loop_thread))
    async with Memory.open(tmp_path / ".ricordo", scope=ANN, settings=_settings(tmp_path)) as memory:
        profile = memory.profile()
        await profile.add_fact("Likes tea")
        await profile.facts(query="tea")
        await profile.render()
        await profile.import_document(await profile.export_document(), dry_run=True)
    assert seen == dict.fromkeys(
        [
            "parse_profile",
            "dump_profile_json",
            "render_profile",
            "find_facts",
            "render_printable_profile",
            "plan_parsed_import",
        ],
        False,
    )


def _noting(function: Any, name: str, seen: dict[str, bool], loop_thread: int) -> Any:
    """Return the function, and let it be noted whether it ran in the thread of the loop."""

    def noted(*given: Any, **named: Any) -> Any:
        seen[name] = seen.get(name, False) or threading.get_ident() == loop_thread
        return function(*given, **named)

    return noted
