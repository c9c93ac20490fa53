"""What a team shares: agents of its members see it, its roles hold inside the store, and git carries it."""

from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest

from command_line import ricordo
from ricordo import HarnessAgent, Memory, Scope
from ricordo.errors import (
    ChangeNotFound,
    InvalidEntry,
    MembershipRequired,
    ReasonRequired,
    RicordoError,
    RootNotTrusted,
    ScopeMismatch,
)
from ricordo.testing import Call, Say, ScriptedModel, ScriptItem
from team_clones import clone, commit, create_clone, git, ledger_lines, member, open_memory, pull

if TYPE_CHECKING:
    from collections.abc import Awaitable

pytestmark = [pytest.mark.anyio, pytest.mark.may_block("the test looks at files and runs git")]

DEPLOY = "We deploy only from the branch heron."


def contents(entries: object) -> list[str]:
    return sorted(each.content for each in entries)  # type: ignore[attr-defined]


@pytest.mark.req("HE-C6")
async def test_what_one_agent_saves_for_the_team_another_one_recalls_in_its_next_session(tmp_path: Path) -> None:
    desk = await create_clone(tmp_path / "a")
    saving: list[ScriptItem] = [
        Call("remember", {"content": DEPLOY, "scope": "team", "reason": "All of us deploy."}),
        Say("Noted."),
        Say("Yes?"),
    ]
    async with HarnessAgent(ScriptedModel(saving), memory=desk / ".ricordo", scope=member("ann")) as ann:
        await ann.send("Remember for all of us from where we deploy.")
        # ben's session begins while ann's goes on
        model = ScriptedModel([Call("recall", {"query": "From which branch do we deploy?"}), Say("From heron.")])
        async with HarnessAgent(model, memory=desk / ".ricordo", scope=member("ben")) as ben:
            await ben.send("From which branch do we deploy?")
        assert "heron" in repr(model.requests[0].messages[0])
        assert "heron" in repr(model.requests[-1].messages[-1].tool_results)
        await ann.send("Go on.")
    async with open_memory(desk, "ben") as memory:
        [entry] = await memory.entries()
        assert (entry.content, entry.scope, entry.shared_by) == (DEPLOY, Scope(team="core"), "ann")
        assert entry.reason == "All of us deploy."
    async with Memory.open(desk / ".ricordo", scope=Scope(user="ben", project="shop")) as memory:
        assert await memory.entries() == []


@pytest.mark.req("HE-C6-boundary")
@pytest.mark.parametrize("user", ["mallory", "Ann", None])
async def test_who_is_no_member_reads_and_writes_nothing_whatever_team_is_named(
    user: str | None, tmp_path: Path
) -> None:
    desk = await create_clone(tmp_path / "a")
    async with open_memory(desk, "ann") as memory:
        saved = await memory.remember(DEPLOY, scope="team", reason="All of us deploy.")
    before = ledger_lines(desk)
    for team in ("core", "other", "Core"):
        for root in (desk / ".ricordo", desk / ".ricordo-team"):
            project = "shop" if root.name == ".ricordo" else None
            scope = Scope(user=user, project=project, team=team)
            with pytest.raises((MembershipRequired, ScopeMismatch)) as caught:
                async with Memory.open(root, scope=scope) as memory:
                    await memory.remember("It is mine.", scope="team", reason="r")
            assert "heron" not in str(caught.value)
            assert saved.id not in str(caught.value)
    assert ledger_lines(desk) == before


@pytest.mark.req("HE-C6-boundary")
async def test_a_role_is_checked_at_each_act_and_ends_while_the_memory_is_open(tmp_path: Path) -> None:
    desk = await create_clone(tmp_path / "a")
    async with open_memory(desk, "ann") as ann, open_memory(desk, "ben") as ben, open_memory(desk, "cleo") as cleo:
        of_ann = await ann.remember(DEPLOY, scope="team", reason="All of us deploy.")
        of_ben = await ben.remember("The linter runs first, says ben.", scope="team", reason="All of us lint.")
        mine = await cleo.remember("Cleo's own note.")
        assert contents(await cleo.entries()) == ["Cleo's own note.", "The linter runs first, says ben.", DEPLOY]
        reading = (
            cleo.remember("It is Cleo's.", scope="team", reason="r"), cleo.move(mine.id, "team", reason="r"),
            cleo.update(of_ann.id, content="No."), cleo.forget(of_ben.id), cleo.pin(of_ann.id), cleo.confirm(of_ann.id),
            cleo.erase(of_ann.id), cleo.erase(text="heron"), cleo.move(of_ann.id, "private"),
            cleo.delete_all(scope=Scope(team="core")), cleo.decide(of_ann.id, "reject"),
        )  # fmt: skip
        writing = (
            ben.update(of_ann.id, content="No."), ben.forget(of_ann.id), ben.move(of_ann.id, "private"),
            ben.erase(text="heron"), ben.delete_all(scope=Scope(team="core")),
        )  # fmt: skip
        acts: tuple[Awaitable[object], ...] = (*reading, *writing)
        for act in acts:
            with pytest.raises(MembershipRequired):
                await act
        for other in (ben, cleo):
            with pytest.raises(ChangeNotFound, match="who alone can undo it"):
                await other.undo(of_ann.id)
        assert contents(await ann.entries()) == ["The linter runs first, says ben.", DEPLOY]
        await ben.update(of_ben.id, content="The linter runs last.")
        await ann.update(of_ben.id, content="The linter runs first again.")
        members = desk / ".ricordo-team" / "members.txt"
        members.write_text("curator ann\nwriter ben\nreader ben\n", encoding="utf-8")
        with pytest.raises(MembershipRequired, match="ben is a reader"):
            await ben.forget(of_ben.id)
        acts = (cleo.recall("heron"), cleo.entries(), cleo.preamble(), cleo.history(), cleo.search("heron"))
        for act in acts:
            with pytest.raises(MembershipRequired, match="no member"):
                await act
        members.write_text("everybody\n", encoding="utf-8")
        acts = (ann.entries(), ben.recall("heron"))
        for act in acts:
            with pytest.raises(RicordoError, match="can't be read"):
                await act
        members.unlink()
        with pytest.raises(MembershipRequired, match="missing"):
            await ann.remember("And now?", scope="team", reason="r")


@pytest.mark.req("CC-TEAMSYNC", "HE-C6", "HE-C5-required")
async def test_a_promotion_is_explicit_signed_and_undone(tmp_path: Path) -> None:
    desk = await create_clone(tmp_path / "a")
    async with open_memory(desk, "ben") as ben, open_memory(desk, "ann") as ann:
        saved = await ben.remember(DEPLOY)
        assert await ann.entries() == []
        with pytest.raises(ReasonRequired):
            await ben.move(saved.id, "team")
        moved = await ben.move(saved.id, "team", reason="All of us deploy.")
        assert (moved.id, moved.scope, moved.shared_by) == (saved.id, Scope(team="core"), "ben")
        [seen] = await ann.entries()
        assert (seen.content, seen.shared_by, seen.reason) == (DEPLOY, "ben", "All of us deploy.")
        # it is in one place, and what it came from stayed behind
        assert [entry.scope for entry in await ben.entries()] == [Scope(team="core")]
        assert [(item.action, item.user) for item in await ben.history(limit=2)] == [("promote", "ben")] * 2
        await ben.undo()
        assert await ann.entries() == []
        assert [entry.scope for entry in await ben.entries()] == [Scope(user="ben", project="shop")]
        await ben.move(saved.id, "team", reason="All of us deploy.")
        back = await ben.move(saved.id, "private")
        assert back.scope == Scope(user="ben", project="shop")
        assert await ann.entries() == []


@pytest.mark.req("CC-TEAMSYNC")
async def test_nothing_with_a_secret_is_shared_and_its_value_is_in_no_error(tmp_path: Path) -> None:
    desk = await create_clone(tmp_path / "a")
    secret = "ghp_" + "a1B2c3D4e5F6a7B8c9D0e1F2a3B4c5D6e7F8"
    async with open_memory(desk, "ann") as ann:
        saved = await ann.remember("The token is kept here.")
        ledger = next((desk / ".ricordo/users/ann/workspace/memory").glob("*.md"))
        ledger.write_text(ledger.read_text().replace("kept here", f"{secret}"), encoding="utf-8")
        for act in (
            ann.remember(f"Use {secret} for it.", scope="team", reason="r"),
            ann.move(saved.id, "team", reason="r"),
            ann.move(saved.id, "project", reason="r"),
        ):
            with pytest.raises(InvalidEntry, match="secret") as caught:
                await act
            assert secret not in str(caught.value)
        with pytest.raises(InvalidEntry, match="one line"):
            await ann.remember("Two\nlines.", scope="team", reason="r")
    assert ledger_lines(desk) == []


@pytest.mark.req("CC-TEAMSYNC")
async def test_a_deletion_travels_also_over_a_clone_that_had_it_merged_back(tmp_path: Path) -> None:
    one = await create_clone(tmp_path / "a")
    async with open_memory(one, "ann") as ann:
        saved = await ann.remember(DEPLOY, scope="team", reason="r")
    await commit(one)
    two = await clone(one, tmp_path / "b")
    async with open_memory(one, "ann") as ann, open_memory(two, "ben") as ben:
        assert contents(await ben.entries()) == [DEPLOY]
        await ann.forget(saved.id)
        # a change right beside it lets git keep the lines of both sides
        await ben.remember("The linter runs first.", scope="team", reason="r")
        await commit(one)
        await commit(two)
        await pull(two, one)
        assert contents(await ben.entries()) == ["The linter runs first."]
        assert "heron" not in repr([*await ben.recall("heron deploy"), await ben.preamble()])
        assert "heron" not in "".join(ledger_lines(two))
        await commit(two)
        await pull(one, two)
        assert contents(await ann.entries()) == ["The linter runs first."]


@pytest.mark.req("CC-TEAMSYNC")
async def test_edits_at_the_same_time_are_both_shown_and_neither_is_overwritten(tmp_path: Path) -> None:
    one = await create_clone(tmp_path / "a")
    async with open_memory(one, "ann") as ann:
        saved = await ann.remember("We deploy on Mondays.", scope="team", reason="r")
    await commit(one)
    two = await clone(one, tmp_path / "b")
    async with open_memory(one, "ann") as ann, open_memory(two, "ann") as beside:
        await ann.update(saved.id, content="We deploy on Tuesdays.")
        await beside.update(saved.id, content="We deploy on Wednesdays.")
        await beside.update(saved.id, content="We deploy on Fridays.")
        await commit(one)
        await commit(two)
        await pull(two, one)
        await pull(one, two)
        for memory in (ann, beside):
            assert contents(await memory.entries()) == ["We deploy on Fridays.", "We deploy on Tuesdays."]
            hits = await memory.recall("When do we deploy?", limit=5)
            assert [hit.contradicts for hit in hits] == [(hits[1].entry.id,), (hits[0].entry.id,)]
            assert len(await memory.review(kinds=["contradiction"])) == 1
        assert ledger_lines(one) == ledger_lines(two)
        # an edit that came after another one is no conflict
        await ann.update(next(e.id for e in await ann.entries() if "Tues" in e.content), content="We deploy at noon.")
        await commit(one)
        await commit(two)
        await pull(two, one)
        assert contents(await beside.entries()) == ["We deploy at noon.", "We deploy on Fridays."]
        friday = next(entry.id for entry in await ann.entries() if "Fri" in entry.content)
        await ann.decide(friday, "reject")
        assert contents(await ann.entries()) == ["We deploy at noon."]
        # what three clones edited at the same time
        [ledger] = (one / ".ricordo-team" / "workspace" / "memory").glob("*.md")
        [line] = [line for line in ledger_lines(one) if "at noon" in line]
        with ledger.open("a", encoding="utf-8") as file:
            file.write(line.replace("at noon", "at one") + "\n" + line.replace("at noon", "at two") + "\n")
        said = ["We deploy at noon.", "We deploy at one.", "We deploy at two."]
        assert contents(await ann.entries()) == said


@pytest.mark.req("HE-C6-boundary")
async def test_in_another_clone_too_only_a_curator_takes_back_what_somebody_else_shared(tmp_path: Path) -> None:
    one = await create_clone(tmp_path / "a")
    async with open_memory(one, "ann") as ann:
        saved = await ann.remember(DEPLOY, scope="team", reason="r")
    await commit(one)
    two = await clone(one, tmp_path / "b")
    async with open_memory(two, "ben") as ben, open_memory(two, "ann") as ann:
        with pytest.raises(RicordoError, match="changed by a curator"):
            await ben.undo(saved.id)
        assert contents(await ben.entries()) == [DEPLOY]
        await ann.undo(saved.id)
        assert await ben.entries() == []


@pytest.mark.req("HE-C6-boundary")
async def test_a_folder_that_somebody_else_made_is_trusted_first_and_git_carries_no_key(tmp_path: Path) -> None:
    one = await create_clone(tmp_path / "a")
    async with open_memory(one, "ann") as ann:
        await ann.remember(DEPLOY, scope="team", reason="r")
    await commit(one)
    assert git(one, "status", "--porcelain") == ""
    carried = {Path(path).name for path in git(one, "ls-files").split()}
    assert carried >= {"members.txt", "project.json", ".gitattributes", ".gitignore", ".tombstones.jsonl"}
    assert {name for name in carried if name.endswith((".key", ".db", ".lock")) or name == "config.toml"} == set()
    two = await clone(one, tmp_path / "b", trusted=False)
    with pytest.raises(RootNotTrusted):
        async with open_memory(two, "ben"):
            pass
    root = ("--root", two / ".ricordo", "--user", "ben")
    shown = await anyio.to_thread.run_sync(lambda: ricordo("team", "show", *root))
    assert "It is not used" in shown.out
    assert "heron" not in shown.out
    report = await anyio.to_thread.run_sync(lambda: ricordo("trust", "--show", two / ".ricordo-team"))
    assert "the memory of a team, which git carries" in report.out
    async with Memory.open(two / ".ricordo", scope=Scope(user="ben", project="shop")) as ben:
        assert await ben.entries() == []


@pytest.mark.req("HE-C6-boundary", "HE-C6", "CC-TEAMSYNC")
def test_commands_make_a_team_share_with_it_and_change_its_members(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RICORDO_USER", "ann")
    ricordo("remember", "The staging server is called heron.")
    made = ricordo("team", "create", "core", "--json").document
    assert made["members"] == {"ann": "curator"}
    assert ricordo("team", "create", "core").code == 1
    ricordo("team", "add", "ben", "--role", "reader")
    ricordo("team", "add", "cleo")
    ricordo("team", "remove", "cleo")
    assert ricordo("team", "show", "--json").document["members"] == {"ann": "curator", "ben": "reader"}
    assert ricordo("team", "remove", "ann").code == 1
    ricordo("remember", "We deploy only from main.", "--team", "--reason", "All of us deploy.")
    [hit] = ricordo("recall", "staging server", "--limit", "1", "--json").document["hits"]
    assert ricordo("promote", hit["entry"]["id"], "--to", "team").code == 1
    ricordo("promote", hit["entry"]["id"], "--to", "team", "--reason", "All of us test there.")
    monkeypatch.setenv("RICORDO_USER", "ben")
    seen = ricordo("memory", "list", "--json").document["entries"]
    assert sorted(each["content"] for each in seen) == [
        "The staging server is called heron.",
        "We deploy only from main.",
    ]
    assert ricordo("remember", "x y z", "--team", "--reason", "r").code == 1
    monkeypatch.setenv("RICORDO_USER", "ann")
    ricordo("demote", hit["entry"]["id"])
    monkeypatch.setenv("RICORDO_USER", "ben")
    [left] = ricordo("memory", "list", "--json").document["entries"]
    assert left["shared_by"] == "ann"
    monkeypatch.setenv("RICORDO_USER", "mallory")
    assert ricordo("memory", "list", "--json").document["entries"] == []
    assert "no member" in ricordo("team", "show").out
