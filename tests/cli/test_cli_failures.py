"""How commands fail: one line and an exit code, one JSON document where that was asked for, never a traceback."""

from pathlib import Path

import pytest

from command_line import chat, ricordo
from places import place_of

READING = [
    [],
    ["recall", "deploy"],
    ["ask", "What do we deploy from?"],
    ["history"],
    ["memory", "list"],
    ["memory", "search", "deploy"],
    ["memory", "untrack"],
    ["session", "list"],
    ["session", "show", "monday"],
    ["session", "search", "deploy"],
    ["doctor"],
    ["import", "chat.jsonl"],
    ["remember", "A."],
    ["undo"],
    ["--version"],
    ["replay", "chat.jsonl"],
]
FAILING = [
    (["forget", "01k00000000000000000000000"], 1, "EntryNotFound"),
    (["memory", "show", "01k00000000000000000000000"], 1, "EntryNotFound"),
    (["undo", "nothing"], 1, "ChangeNotFound"),
    (["session", "show", "nothing"], 1, "SessionNotFound"),
    (["remember", " "], 1, "InvalidEntry"),
    (["memory", "track"], 1, "InvalidInput"),
    (["recall", "a", "--project", "other"], 1, "ScopeMismatch"),
    (["import", "."], 1, "FileMissing"),
    (["recall"], 2, "UsageError"),
    (["recall", "a", "--since", "never"], 2, "UsageError"),
    (["recall", "a", "--limit", "0"], 2, "UsageError"),
    (["nothing"], 2, "UsageError"),
    (["memory"], 2, "UsageError"),
    (["memory", "list", "--scope", "bla"], 2, "UsageError"),
    (["--nothing"], 2, "UsageError"),
]
TOKEN = "ghp_" + "a1B2c3D4e5F6" * 3
NAMES = [" ".join(command) for command, _, _ in FAILING]


@pytest.mark.parametrize("command", READING, ids=" ".join)
def test_with_json_a_command_prints_one_document_and_nothing_else(command: list[str]) -> None:
    ricordo("import", chat(Path("chat.jsonl"), session="monday"))
    done = ricordo(*command, "--json")
    assert (done.code, done.err) == (0, "")
    assert isinstance(done.document, dict)
    assert done.out.isascii()


def test_a_text_that_is_not_utf_8_is_refused_by_the_name_of_its_option_and_nothing_is_saved() -> None:
    ricordo("remember", "Before.", "--tag", "Caf\udcc3\udca9")
    for named, *command in (
        ["--tag", "remember", "A.", "--tag", "\udced\udca0\udc80"],
        ["TEXT", "remember", "Caf\udce9."],
        ["--reason", "remember", "A.", "--everywhere", "--reason", "\udcff"],
        ["--kind", "remember", "A.", "--kind", "\ud800"],
        ["--user", "remember", "A.", "--user", "\udcff"],
        ["--category", "profile", "add", "A.", "--category", "\udcff"],
    ):
        refused = ricordo(*command, "--json")
        assert (refused.code, refused.document["error"]) == (1, "InvalidInput")
        assert refused.document["message"].startswith(f"{named} holds bytes that are not UTF-8")
    listed = ricordo("memory", "list", "--json").document["entries"]
    assert [(each["content"], each["tags"]) for each in listed] == [("Before.", ["Café"])]


@pytest.mark.parametrize(("command", "code", "error"), FAILING, ids=NAMES)
def test_a_failure_is_one_document_with_json_and_says_what_it_was(command: list[str], code: int, error: str) -> None:
    ricordo("remember", "We deploy only from main.")
    for arguments in (["--json", *command], [*command, "--json"]):
        done = ricordo(*arguments)
        assert (done.code, done.err) == (code, "")
        assert done.document["error"] == error
        assert done.document["message"]


@pytest.mark.parametrize(("command", "code"), [row[:2] for row in FAILING], ids=NAMES)
def test_a_failure_is_told_on_stderr_and_one_of_memory_in_one_line(command: list[str], code: int) -> None:
    ricordo("remember", "We deploy only from main.")
    done = ricordo(*command)
    assert (done.code, done.out) == (code, "")
    assert "Traceback" not in done.err
    if code == 1:
        assert done.err.startswith("ricordo: ")
        assert done.err.count("\n") == 1


@pytest.mark.req("FC-SECRET")
@pytest.mark.parametrize(
    "command",
    [
        [f"--token={TOKEN}"], [TOKEN], ["memory", TOKEN], ["recall", "a", "--limit", TOKEN], ["recall", "a", TOKEN],
        ["recall", "a", "--since", TOKEN], ["memory", "list", "--scope", TOKEN], [f"--api_key={TOKEN}", "recall"],
    ],
    ids=str,
)  # fmt: skip
def test_a_wrong_use_of_a_command_repeats_no_secret_that_was_typed(command: list[str]) -> None:
    for arguments in (command, [*command, "--json"]):
        done = ricordo(*arguments)
        assert done.code == 2
        assert TOKEN not in done.out + done.err


@pytest.mark.req("FC-DOCTOR")
def test_doctor_is_content_with_a_healthy_root() -> None:
    ricordo("import", chat(Path("chat.jsonl")))
    done = ricordo("doctor", "--json")
    assert (done.code, done.document["ok"]) == (0, True)
    assert len(done.document["checks"]) >= 5
    assert "FAIL" not in ricordo("doctor").out


@pytest.mark.req("FC-DOCTOR")
def test_doctor_finds_a_torn_line_and_fails() -> None:
    ricordo("import", chat(Path("chat.jsonl"), session="monday"))
    log = next(Path(".ricordo").rglob("monday.log.jsonl"))
    log.write_bytes(log.read_bytes()[:-20] + b"\n")
    done = ricordo("doctor")
    assert done.code == 1
    assert [line.split()[1] for line in done.out.splitlines() if "FAIL" in line] == ["lines"]


@pytest.mark.req("FC-DOCTOR")
def test_doctor_looks_at_the_rest_of_a_root_whose_marker_is_damaged() -> None:
    ricordo("remember", "We deploy only from main.")
    Path(".ricordo/project.json").write_text("{torn", encoding="utf-8")
    before = sorted(path for path in Path(".ricordo").rglob("*") if path.is_file())
    done = ricordo("doctor", "--json")
    assert (done.code, done.err) == (1, "")
    checks = {check["name"]: check for check in done.document["checks"]}
    assert checks["root"]["ok"] is False
    assert checks["entries"]["count"] == 1
    assert sorted(path for path in Path(".ricordo").rglob("*") if path.is_file()) == before
    shown = ricordo("recall", "deploy")
    assert shown.code == 1
    assert shown.err.startswith("ricordo: project.json can't be read")


@pytest.mark.req("FC-DOCTOR")
def test_doctor_says_what_to_do_only_where_there_is_something_to_do() -> None:
    ricordo("remember", "We deploy only from main.")
    healthy = ricordo("doctor").out
    assert "ids that stand twice\n" in healthy
    assert "remove one" not in healthy
    ledger = next((place_of(Path(".ricordo")) / "workspace/memory").glob("*.md"))
    ledger.write_text(ledger.read_text(encoding="utf-8") + "- We deploy only from main.\n", encoding="utf-8")
    rows = {line.split()[1]: line.split()[0] for line in ricordo("doctor").out.splitlines()[1:]}
    assert rows["duplicates"] == "note"
    assert set(rows.values()) == {"note", "ok"}
