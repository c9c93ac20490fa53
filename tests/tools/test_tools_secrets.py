"""What file tools show of a file with a secret, and that what they write puts it back or keeps it out."""

from pathlib import Path

import pytest

from desks import Desks, Person
from ricordo.agent.tools.shell import drop_secret_variables
from ricordo.errors import InvalidEntry, RicordoError
from ricordo.guard import Redactor

pytestmark = [pytest.mark.anyio, pytest.mark.req("FC-SECRET")]

BODY = [f"{number:02d}{'QUJDabcd' * 7}xyzzyx" for number in range(20)]
KEY = ["-----BEGIN PRIVATE " + "KEY-----", *BODY, "-----END PRIVATE " + "KEY-----"]
TOKEN = "ghp_" + "a1B2c3D4e5F6" * 3


async def test_no_part_of_a_private_key_is_shown_from_wherever_it_is_read(desks: Desks) -> None:
    desks.put("key.pem", "\n".join(["first", *KEY, "last"]) + "\n")
    desk = desks()
    for offset in (1, 2, 5, 12, 22):
        for limit in (1, 3, 40):
            shown = await desk.use("read_file", path="key.pem", offset=offset, limit=limit)
            assert not any(line in shown for line in BODY)
    assert (await desk.use("read_file", path="key.pem", offset=24)).endswith("\nlast\n")
    for pattern in ("QUJD", "^1", ".", "xyzzyx$"):
        found = await desk.use("grep_files", pattern=pattern)
        assert not any(line in found for line in BODY)
    assert "key.pem:24: last" in await desk.use("grep_files", pattern="last")


async def test_a_secret_in_a_very_long_file_is_not_shown_either(desks: Desks) -> None:
    filler = "just a line of a log\n" * 40_000
    desks.put("app.log", f"{filler}{chr(10).join(KEY)}\n{filler}")
    for offset in (39_990, 40_005, 40_012):
        shown = await desks().use("read_file", path="app.log", offset=offset, limit=30)
        assert not any(line in shown for line in BODY)
        assert "just a line" in shown


async def test_an_edit_beside_a_secret_keeps_it_in_the_file_of_a_person(desks: Desks, yes: Person) -> None:
    place = desks.put("settings.env", f"HOST=a\nPUSH_TOKEN={TOKEN}\nPORT=1\n")
    desk = desks(yes)
    shown = (await desk.use("read_file", path="settings.env")).partition("\n")[2]
    assert TOKEN not in shown
    line = shown.splitlines()[1]
    told = await desk.use("edit_file", path="settings.env", old_text=f"{line}\nPORT=1", new_text=f"{line}\nPORT=2")
    assert "changed" in told
    assert place.read_text() == f"HOST=a\nPUSH_TOKEN={TOKEN}\nPORT=2\n"
    assert "changed" in await desk.use("write_file", path="settings.env", content=shown.replace("HOST=a", "HOST=b"))
    assert place.read_text() == f"HOST=b\nPUSH_TOKEN={TOKEN}\nPORT=1\n"


async def test_a_mark_of_a_secret_that_the_file_does_not_hold_is_written_to_no_file(desks: Desks, yes: Person) -> None:
    other = f"[secret:github-token:{'0' * 8}]"
    place = desks.put("settings.env", f"HOST=a\nPUSH_TOKEN={TOKEN}\n")
    desk = desks(yes)
    for call in (
        {"name": "write_file", "path": "new.env", "content": f"TOKEN={other}\n"},
        {"name": "write_file", "path": "settings.env", "content": f"HOST=a\nPUSH_TOKEN={other}\n"},
        {"name": "edit_file", "path": "settings.env", "old_text": "HOST=a", "new_text": f"HOST={other}"},
    ):
        told = await desk.use(**call)
        assert told.startswith(f"failed: {other} stands for a secret that is not in {call['path']}")
    told = await desk.use("edit_file", path="settings.env", old_text=f"PUSH_TOKEN={other}", new_text="PUSH_TOKEN=none")
    assert "does not occur" in told
    assert "It holds a mark, which stands for a secret" in told
    assert place.read_text() == f"HOST=a\nPUSH_TOKEN={TOKEN}\n"
    assert not place.with_name("new.env").exists()
    place.write_text(f"# {other} is a mark\n")
    assert "changed" in await desk.use("write_file", path="settings.env", content=f"# {other} is one mark\n")


def test_what_is_restored_are_the_marks_of_the_same_text_only() -> None:
    redactor, source = Redactor(bytes(32)), "\n".join(["a", *KEY, f"b {TOKEN}"])
    shown = redactor.clean_keeping_lines(source)
    assert shown.count("\n") == source.count("\n")
    assert redactor.restore(shown, source) == source
    other = redactor.clean("token = " + "ghp_" + "Z9y8X7w6V5u4" * 3)
    assert redactor.restore(other, source) == other


async def test_a_token_is_found_also_where_an_edit_glues_it_to_a_word(desks: Desks) -> None:
    key = "sk-" + "a1B2c3D4e5F6" * 3
    desk = desks()
    await desk.use("write_file", path="/plans/next.md", content="The keyHERE is ours.\n")
    await desk.use("edit_file", path="/plans/next.md", old_text="HERE", new_text=key)
    text = (desks.folder / ".ricordo/workspace/plans/next.md").read_text()
    assert key not in text
    assert "The key[secret:openai-key:" in text


def test_a_command_gets_no_variable_that_is_called_like_a_login() -> None:
    kept = {
        "PATH": "/bin",
        "SSH_AUTH_SOCK": "/tmp/s",
        "AUTHOR": "me",
        "XAUTHORITY": "/tmp/x",
        "LANG": "C",
        "PATIENCE": "1",
    }
    gone = dict.fromkeys(
        [
            "GITHUB_PAT",
            "REGISTRY_AUTH",
            "SESSION_COOKIE",
            "AUTH",
            "SENTRY_DSN",
            "DB_CREDS",
            "API_KEYS",
            "SECRETS",
            "TOKENS",
            "SIGNING_SEED",
        ],
        "abc",
    )
    assert drop_secret_variables({**kept, **gone}) == kept


def test_no_message_of_an_error_holds_a_secret(tmp_path: Path) -> None:
    for error in (RicordoError(f"There is no {TOKEN} here."), InvalidEntry(f"{tmp_path} password: hunter2-x9")):
        assert TOKEN not in str(error)
        assert "hunter2-x9" not in repr(error)
    assert str(RicordoError("There is no file a.txt.")) == "There is no file a.txt."
