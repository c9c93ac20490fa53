"""What a session begins with of a MEMORY.md that grew: within its bounds, the newest in it, and who looks is told."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agents_at_work import SCOPE, settings, system
from command_line import ricordo
from hand_made_roots import begun
from places import place_of
from ricordo import BuiltinTools, Entry, HarnessAgent, Memory, MemoryConfig
from ricordo.context.memory_excerpt import MemoryCut
from ricordo.curation import ConsolidationConfig
from ricordo.events import Event
from ricordo.guard import parse_fence
from ricordo.messages import Tokens, estimate_text
from ricordo.runtime import Settings
from ricordo.testing import Call, Say, ScriptedModel
from ricordo.workspace import Author, render_entry

pytestmark = [pytest.mark.anyio, pytest.mark.req("HE-C1-index", "CC-INDEXCAP")]

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
NEWEST = "- [2026-11-22] The harbour froze over last night."
TOPICS = [f"{n}. [Ship {n}](memory/topics/ship-{n}.md): its crew and its log" for n in range(1, 31)]
HEAD = ["# Memory", "", "## Topics", "", *TOPICS, "", "## Facts", ""]


def grown(root: Path, *, filling: int, lines: int = 400) -> str:
    """Let a person write a MEMORY.md of so many lines, each with so many words more, the newest last."""
    rows = [f"- Rule {number} of the quay. {'È così sempre. ' * filling}".rstrip() for number in range(lines)]
    text = "\n".join([*HEAD, *rows, NEWEST]) + "\n"
    place = place_of(begun(root, root.parent / "data")) / "workspace" / "memory" / "topics"
    place.mkdir(parents=True)
    for number in range(1, 31):
        (place / f"ship-{number}.md").write_text(f"# Ship {number}\n\nIt sails.\n", encoding="utf-8")
    (place_of(root) / "workspace" / "MEMORY.md").write_text(text, encoding="utf-8")
    return text


def curated(root: Path) -> str:
    return (place_of(root) / "workspace" / "MEMORY.md").read_text(encoding="utf-8")


def index_of(prompt: str) -> list[str]:
    """Return the lines of MEMORY.md that a prompt holds."""
    begin = prompt.index("<memory ")
    items = parse_fence(prompt[begin : prompt.index("\n</memory>", begin) + len("\n</memory>")])
    assert items is not None
    return items[0].split("\n")


def given(root: Path, config: ConsolidationConfig | None = None) -> Settings:
    return replace(
        settings(root), consolidation=config, preamble_tokens=40_000, workspace_tokens=60_000, recalled_memories=0
    )


async def prompt(root: Path, config: ConsolidationConfig | None = None, *, tools: bool = True) -> str:
    model, chosen = ScriptedModel([Say("So it is.")]), given(root, config)
    async with HarnessAgent(
        model, memory=root, scope=SCOPE, settings=chosen, builtin_tools=BuiltinTools(memory=tools)
    ) as agent:
        await agent.send("Hello.")
    return system(model.requests[0])


def reasons(events: Sequence[Event]) -> list[tuple[str | None, int]]:
    return [
        (event.reason, event.counts.get("lines", 0)) for event in events if event.stage == "preamble" and event.seconds
    ]


@pytest.mark.req("CC-INDEXCAP", "AS-BUG-22", "AS-CTX-01")
@pytest.mark.req("HE-C1-index")
@pytest.mark.parametrize(("filling", "cap", "most"), [(0, "lines", 200), (20, "bytes", 25_000)])
async def test_a_file_that_grew_is_shown_within_the_bound_that_comes_first_and_who_looks_is_told(
    filling: int, cap: str, most: int, tmp_path: Path
) -> None:
    root = tmp_path / ".ricordo"
    text = grown(root, filling=filling)
    said = await prompt(root)
    index = index_of(said)
    assert len(index) <= 200
    assert len("\n".join(index).encode()) <= 25_000
    assert (len(index) == 200) == (cap == "lines")
    assert index[-1] == NEWEST
    assert [line for line in index if "memory/topics/ship-" in line] == TOPICS
    left = sum(bool(line) for line in text.splitlines()) - len(index)
    assert f"{left} of them are lines of MEMORY.md, as no more than {most:,} {cap} are shown" in said
    assert "memory_get" in said
    without = await prompt(root, tools=False)
    assert index_of(without)[-1] == NEWEST
    assert "memory_get" not in without, "a tool that is not there is not named"
    assert curated(root) == text, "the file is a person's, and stays"
    events: list[Event] = []
    async with Memory.open(root, scope=SCOPE, settings=given(root), on_event=events.append) as memory:
        cut = await memory.preamble_cut()
        await memory.preamble()
        checks = {check.name: check for check in await memory.doctor()}
    assert cut is not None
    assert (cut.cap, cut.limit, cut.lines, cut.topics) == (cap, most, left, 0)
    assert reasons(events)[-1] == (f"of MEMORY.md no more is shown than its {cap} allow", left)
    assert f"prompts show at most {checks_most(text, most, cap)} of it" in checks["curated"].detail
    assert "memory/topics/NAME.md" in checks["curated"].detail, "it is a person's own, so only they can move it"


def rows(name: str, count: int, *, kind: str, by: Author = "flush", pinned: int = -1) -> str:
    return "".join(
        render_entry(
            Entry(
                content=f"{name} {number}.", id=f"{name.lower():0<6}{number:020}", time=NOW + timedelta(minutes=number),
                kind=kind, by=by, pinned=number == pinned,
            )
        )
        for number in range(count)
    )  # fmt: skip


@pytest.mark.req("CC-INDEXCAP")
async def test_the_narrowest_place_has_its_lines_before_wider_ones_but_for_what_is_pinned_or_newest(
    tmp_path: Path,
) -> None:
    root = tmp_path / ".ricordo"
    data = tmp_path / "data"
    mine, shared, own = place_of(begun(root, data)), root, begun(place_of(data), data)
    topic = "## Topics\n\n1. [Mine](memory/topics/mine.md): what is in it\n\n"
    for place, text in (
        (mine, f"{topic}## Facts\n\n{rows('Mine', 40, kind='fact')}"),
        (shared, "## Facts\n\n" + rows("Shared", 60, kind="decision", by="user", pinned=1)),
        (own, "## Facts\n\n" + rows("Own", 60, kind="preference", by="user", pinned=2)),
    ):
        (place / "workspace").mkdir(parents=True, exist_ok=True)
        (place / "workspace" / "MEMORY.md").write_text(text, encoding="utf-8")
    (own / "project.json").write_text(json.dumps({"version": 2, "kind": "user", "scope": {"user": "me"}}))
    config = ConsolidationConfig(max_lines=60)
    async with Memory.open(root, scope=SCOPE, settings=given(root, config)) as memory:
        told = index_of(await memory.preamble(Tokens(40_000)))
    assert told == index_of(await prompt(root, config))
    assert len(told) == 60
    counts = {name: sum(line.startswith(f"- {name} ") for line in told) for name in ("Mine", "Shared", "Own")}
    assert counts["Mine"] == 40, "however useful the lines of wider places are"
    assert counts["Own"] <= 2, "the place between them comes before it"
    assert {"- Shared 1.", "- Own 2."} <= set(told)


def checks_most(text: str, most: int, cap: str) -> str:
    """Return what the doctor says prompts show: of a file beyond several bounds the first."""
    return "200 lines" if text.count("\n") > 200 else f"{most:,} {cap}"


@pytest.mark.req("CC-INDEXCAP")
async def test_bounds_that_settings_name_hold_in_prompts_too(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    grown(root, filling=0)
    assert len(index_of(await prompt(root, ConsolidationConfig(max_lines=90)))) == 90
    assert len("\n".join(index_of(await prompt(root, ConsolidationConfig(max_bytes=3_000)))).encode()) <= 3_000
    wide = index_of(await prompt(root, ConsolidationConfig(max_lines=9_000, max_bytes=900_000)))
    assert len(wide) == 400 + 30 + 4


@pytest.mark.req("CC-INDEXCAP")
async def test_of_a_dense_file_the_tokens_of_the_preamble_act_first_unless_they_are_raised(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    text = grown(root, filling=4)
    assert len(text.encode()) > 25_000
    given_by_default = replace(given(root), preamble_tokens=Settings.preamble_tokens)
    async with Memory.open(root, scope=SCOPE, settings=given_by_default) as memory:
        cut, said = await memory.preamble_cut(), await memory.preamble()
    assert cut is not None
    assert (cut.cap, cut.topics) == ("tokens", 0)
    assert 3_500 < estimate_text(said) <= 4_000
    assert f"no more than {cut.limit:,} tokens are shown" in said
    assert NEWEST in said


@pytest.mark.req("HE-C1-index")
@pytest.mark.parametrize(
    ("content", "cap"),
    [
        ("- A rule.\n" * 201, "lines"),
        ("- A rule.\n" * 200 + "- Without an end.", "lines"),
        ("- word\n" + "wörd " * 4_500, "bytes"),
    ],
    ids=["lines", "a last line without an end", "bytes"],
)
async def test_a_tool_that_would_make_it_too_large_is_refused_with_advice_and_may_write_a_topic(
    content: str, cap: str, tmp_path: Path
) -> None:
    root = tmp_path / ".ricordo"
    before = "# Memory\n\n- Ours.\n"
    (place_of(begun(root, root.parent / "data")) / "workspace").mkdir(parents=True)
    (place_of(root) / "workspace" / "MEMORY.md").write_text(before, encoding="utf-8")
    calls = [
        Call("write_file", {"path": "/MEMORY.md", "content": content}),
        Call("edit_file", {"path": "/MEMORY.md", "old_text": "- Ours.", "new_text": content}),
        Call("write_file", {"path": "/memory/topics/rules.md", "content": content}),
        Call("write_file", {"path": "/MEMORY.md", "content": "# Memory\n\n- [Rules](memory/topics/rules.md)\n"}),
    ]
    model = ScriptedModel([*calls, Say("Done.")])
    async with HarnessAgent(
        model, memory=root, scope=SCOPE, settings=given(root), builtin_tools=BuiltinTools(files=True), session="s"
    ) as agent:
        await agent.send("Keep these rules.")
    results = [result.text for message in model.requests[-1].messages for result in message.tool_results]
    for refused in results[:2]:
        assert f" {cap}, and may have " in refused
        assert "nothing was written" in refused
        assert "/memory/topics/NAME.md" in refused
    assert "was created" in results[2]
    assert "was changed" in results[3]
    assert curated(root) == "# Memory\n\n- [Rules](memory/topics/rules.md)\n"
    assert (place_of(root) / "workspace" / "memory" / "topics" / "rules.md").read_text(encoding="utf-8") == content


@pytest.mark.parametrize(("config", "cap"), [(None, 200), (ConsolidationConfig(max_lines=90), 90)])
async def test_a_tool_that_creates_it_may_fill_it_to_the_cap_and_no_further(
    config: ConsolidationConfig | None, cap: int, tmp_path: Path
) -> None:
    root = begun(tmp_path / ".ricordo", tmp_path / "data")
    calls = [Call("write_file", {"path": "/MEMORY.md", "content": "- A rule.\n" * lines}) for lines in (cap + 1, cap)]
    model, chosen, tools = ScriptedModel([*calls, Say("Done.")]), given(root, config), BuiltinTools(files=True)
    async with HarnessAgent(model, memory=root, scope=SCOPE, settings=chosen, builtin_tools=tools) as agent:
        await agent.send("Keep these rules.")
    refused, written = [result.text for message in model.requests[-1].messages for result in message.tool_results]
    assert "/memory/topics/NAME.md" in refused
    assert "was created" in written
    assert curated(root) == "- A rule.\n" * cap


async def test_a_tool_may_make_a_file_shorter_that_is_too_large(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    text = grown(root, filling=0)
    calls = [Call("edit_file", {"path": "/MEMORY.md", "old_text": "- Rule 7 of the quay.\n", "new_text": ""})]
    model = ScriptedModel([*calls, Say("Done.")])
    async with HarnessAgent(
        model, memory=root, scope=SCOPE, settings=given(root), builtin_tools=BuiltinTools(files=True)
    ) as agent:
        await agent.send("Rule 7 is gone.")
    assert curated(root) == text.replace("- Rule 7 of the quay.\n", "")


@pytest.mark.req("CC-INDEXCAP", "HE-AUTO")
async def test_a_memory_folder_of_another_tool_is_shown_within_the_same_bounds(tmp_path: Path) -> None:
    folder = tmp_path / "memory"
    folder.mkdir()
    links = [f"- [Ship {n}](ship_{n}.md) — its crew" for n in range(1, 41)]
    rows = [f"- Rule {n} of the quay." for n in range(300)]
    (folder / "MEMORY.md").write_text("\n".join([*links, *rows, NEWEST]) + "\n", encoding="utf-8")
    text = (folder / "MEMORY.md").read_text(encoding="utf-8")
    model = ScriptedModel([Call("remember", {"content": "We sail at dawn.", "kind": "decision"}), Say("Kept.")])
    root = tmp_path / ".ricordo"
    async with HarnessAgent(
        model,
        memory=MemoryConfig(root=root, store=f"folder:{folder}"),
        scope=SCOPE,
        settings=given(root),
        session="one",
    ) as agent:
        await agent.send("Hello.")
    index = index_of(system(model.requests[0]))
    assert (len(index), index[:40], index[-1]) == (200, links, NEWEST)
    assert "no more than 200 lines are shown" in system(model.requests[0])
    assert (folder / "MEMORY.md").read_text(encoding="utf-8") == text, "a full index gets no line more"
    async with HarnessAgent(
        again := ScriptedModel([Say("Hello.")]),
        memory=MemoryConfig(root=root, store=f"folder:{folder}"),
        scope=SCOPE,
        settings=given(root),
        session="two",
    ) as agent:
        await agent.send("Hello.")
    said = system(again.requests[0])
    assert "(project.md)" in said, "the prompt lists the topic all the same"
    assert "We sail at dawn." in said


@pytest.mark.req("FC-DOCTOR")
def test_context_and_doctor_name_the_bound_and_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RICORDO_DATA", str(tmp_path / "data"))
    ricordo("remember", "We sail at dawn.")
    assert ricordo("context", "--json").document["left_out"] is None
    root = tmp_path / ".ricordo"
    (place_of(root) / "workspace" / "MEMORY.md").write_text(
        "".join(f"- Rule {n}.\n" for n in range(260)), encoding="utf-8"
    )
    told = ricordo("context", "--json").document["left_out"]
    assert told == {"cap": "lines", "limit": 200, "lines": 60, "memories": 60, "topics": 0}
    out = ricordo("context").out
    assert "left out: 60 lines of MEMORY.md, as no more than 200 lines are shown" in out
    assert "ricordo consolidate" in out
    tight = ricordo("context", "--budget", "300", "--json").document["left_out"]
    assert (tight["cap"], tight["limit"]) == ("tokens", 300)
    doctor = ricordo("doctor").out
    assert "MEMORY.md has 260 lines and prompts show at most 200 lines of it" in doctor
    assert MemoryCut(**told).lines == 60
