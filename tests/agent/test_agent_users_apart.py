"""Agents of two users on one root: whatever path or session one of them tries, it finds nothing of the other's."""

from pathlib import Path

import pytest

from agents_at_work import settings, spoken
from places import place_of
from ricordo import BuiltinTools, HarnessAgent, Memory, Scope
from ricordo.testing import Call, Say, ScriptedModel

pytestmark = [pytest.mark.anyio, pytest.mark.may_block("the test makes links and files itself")]

SECRET = "My salary is heron euros"
SHOP = Scope(project="shop")
PATHS = (
    "/users", "/users/ann", "/users/ann/workspace/MEMORY.md", "/../users/ann/workspace/MEMORY.md", "/../../users/ann",
    "/project", "/project/users", "/project/users/ann/profile.json", "/project/Users/ann/profile.json",
    "/project/../users/ann/workspace/MEMORY.md", "/project/../../users/ann/workspace/MEMORY.md",
    "/project/%2e%2e/users",
    "/Project/../users/ann", "/./../users/ann", "//users/ann", "/agents/main/sessions/s.log.jsonl",
    "/agents/main/state/s.json", "/profile.json", "/link/workspace/MEMORY.md", "/project/link/workspace/MEMORY.md",
    ".ricordo/users/ann/workspace/MEMORY.md", "./.ricordo/users/ann", ".RICORDO/users/ann/workspace/MEMORY.md",
    "linked/users/ann/workspace/MEMORY.md", "..", "../shop/.ricordo/users/ann", "{root}/users/ann/workspace/MEMORY.md",
)  # fmt: skip


def of(user: str) -> Scope:
    return Scope(user=user, project="shop")


def agent(root: Path, user: str, *script: object, session: str = "s") -> tuple[HarnessAgent, ScriptedModel]:
    model = ScriptedModel([*script, Say("Done.")])  # type: ignore[list-item]
    described = HarnessAgent(
        model,
        memory=root,
        scope=of(user),
        session=session,
        settings=settings(root),
        builtin_tools=BuiltinTools(sessions=True, files=True, working_directory=root.parent),
    )
    return described, model


def results(model: ScriptedModel) -> str:
    """Return all that tools returned, and all that prompts said."""
    told = [text for request in model.requests for _, text in spoken(request.messages)]
    found = [result for request in model.requests for message in request.messages for result in message.tool_results]
    return "\n".join([*told, *(str(result) for result in found)])


async def lived(root: Path) -> None:
    """Let ann say and save what is hers alone, in a session of the same name that ben will use."""
    one, _ = agent(root, "ann")
    async with one:
        await one.send(f"{SECRET}.")
        assert one.memory is not None
        await one.memory.remember(f"{SECRET}.", kind="decision")
    async with Memory.open(root, scope=of("ann"), settings=settings(root)) as memory:
        await memory.profile().add_fact("User's salary is heron euros.")
        await memory.remember("We deploy only from main.", scope=SHOP)
    (place_of(root, "ann") / "workspace" / "MEMORY.md").write_text(f"- {SECRET}.\n", encoding="utf-8")


@pytest.mark.req("AS-BUG-28", "HE-O-tenancy")
async def test_no_path_of_a_file_tool_leads_to_another_user(tmp_path: Path) -> None:
    root = tmp_path / "shop" / ".ricordo"
    root.parent.mkdir()
    await lived(root)
    own = place_of(root, "ben") / "workspace"
    own.mkdir(parents=True)
    for folder in (own, root / "workspace"):
        (folder / "link").symlink_to(place_of(root, "ann"))
    (root.parent / "linked").symlink_to(root)
    paths = [path.format(root=root) for path in PATHS]
    calls = [Call("read_file", {"path": path}) for path in paths]
    calls += [Call("list_files", {"path": path}) for path in paths]
    calls += [Call("grep_files", {"pattern": "heron", "path": path}) for path in [*paths, "", "/"]]
    calls += [Call("glob_files", {"pattern": "**/*.md", "path": path}) for path in [*paths, "", "/"]]
    calls += [Call("memory_get", {"path": path}) for path in paths]
    calls += [
        Call("recall", {"query": "salary heron"}), Call("memory_search", {"query": "heron"}),
        Call("session_list", {}), Call("session_search", {"query": "heron"}), Call("session_history", {"session": "s"}),
    ]  # fmt: skip
    for start in range(0, len(calls), 20):
        one, model = agent(root, "ben", *calls[start : start + 20], session=f"b{start}")
        async with one:
            await one.send("What do I earn?")
        told = results(model)
        assert "heron euros" not in told
        assert SECRET not in told


@pytest.mark.req("AS-FS-01", "AS-BUG-28")
async def test_what_the_project_shares_is_read_below_project_and_written_by_no_tool(tmp_path: Path) -> None:
    root = tmp_path / "shop" / ".ricordo"
    root.parent.mkdir()
    await lived(root)
    rules = root / "workspace" / "rules"
    rules.mkdir()
    (rules / "house.md").write_text("Never deploy on Fridays.", encoding="utf-8")
    (root / "workspace" / "MEMORY.md").write_text("- We use uv.\n", encoding="utf-8")
    (tmp_path / "outside.md").write_text("Seen by nobody.", encoding="utf-8")
    (rules / "linked.txt").symlink_to(tmp_path / "outside.md")
    (rules / "inner.txt").symlink_to("house.md")
    mine = place_of(root, "ben") / "workspace" / "rules"
    mine.mkdir(parents=True)
    (mine / "mine.md").write_text("Call me Ben.", encoding="utf-8")
    write = {"path": "/project/MEMORY.md", "content": "- Mine.\n"}
    one, model = agent(
        root, "ben", Call("list_files", {"path": "/"}), Call("read_file", {"path": "/project/MEMORY.md"}),
        Call("grep_files", {"pattern": "only from", "path": "/project"}),
        Call("memory_get", {"path": "project/MEMORY.md"}),
        Call("write_file", write), Call("read_file", {"path": "/project/rules/linked.txt"}),
        Call("read_file", {"path": "/project/rules/inner.txt"}), session="b",
    )  # fmt: skip
    async with one:
        await one.send("What do we know?")
    listed, read, grepped, got, written, linked, inner = [
        "".join(result.text for result in message.tool_results)
        for message in model.requests[-1].messages
        if message.tool_results
    ]
    assert "project/" in listed
    assert "We use uv." in read
    assert "/project/memory/" in grepped
    assert "We use uv." in got
    assert "--shared" in written
    assert "symbolic link" in linked
    assert "symbolic link" in inner
    assert (root / "workspace" / "MEMORY.md").read_text(encoding="utf-8") == "- We use uv.\n"
    system = model.requests[0].messages[0].text
    assert "Never deploy on Fridays." in system
    assert "Call me Ben." in system
    assert "We use uv." in system
    other, model = agent(root, "ann", session="again")
    async with other:
        await other.send("Hello.")
    system = model.requests[0].messages[0].text
    assert "Never deploy on Fridays." in system
    assert "Call me Ben." not in system
