"""`ricordo serve` and `ricordo token` as real processes: signals, a kill in the middle, and wrong options."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import httpx2
import pytest

from command_line import ricordo


@contextmanager
def _serve(data: Path, *options: str, ends_with: int = 143) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Serve on a free port, and yield the URL and the process."""
    command = [sys.executable, "-m", "ricordo", "serve", "--data", str(data), "--http", "127.0.0.1:0", *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=dict(os.environ)) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        try:
            assert "Serving at " in line, line + process.stderr.read()
            yield line.partition("Serving at ")[2].strip(), process
        finally:
            process.terminate()
            assert process.wait(timeout=60) == ends_with


def test_a_token_of_the_command_line_opens_the_service_until_it_is_revoked(tmp_path: Path) -> None:
    data = tmp_path / "service"
    made = ricordo("token", "create", "ann", "--data", data, "--tenant", "acme", "--days", "7", "--note", "laptop")
    token = made.out.strip()
    assert "can't be shown again" in made.err
    listed = ricordo("token", "list", "--data", data)
    assert token not in listed.out
    assert "acme/ann, writer, until " in listed.out
    [name] = [each["id"] for each in ricordo("token", "list", "--data", data, "--json").document["tokens"]]
    with _serve(data) as (url, _), httpx2.Client(headers={"Authorization": f"Bearer {token}"}, timeout=60) as ann:
        saved = ann.post(f"{url}/memories", json={"content": "We deploy only from main."})
        assert saved.status_code == 201
        assert len(ann.post(f"{url}/recall", json={"query": "deploy"}).json()["hits"]) == 1
        assert ricordo("token", "revoke", name, "--data", data).out == f"Revoked the token {name} of acme/ann.\n"
        assert ann.get(f"{url}/memories").status_code == 401
    assert ricordo("token", "revoke", name, "--data", data).code == 1
    root = data / "tenants" / "acme" / "projects" / "default"
    assert "We deploy only from main." in ricordo("memory", "list", "--root", root, "--user", "ann").out


def test_what_was_acknowledged_is_there_after_a_kill(tmp_path: Path) -> None:
    acknowledged: list[str] = []
    with _serve(tmp_path, "--without-token", "me", ends_with=-signal.SIGKILL) as (url, process):

        def save() -> None:
            with httpx2.Client(timeout=60) as client:
                for number in range(1_000):
                    try:
                        saved = client.post(f"{url}/memories", json={"content": f"Number {number}."})
                    except httpx2.TransportError:
                        return
                    if saved.status_code == 201:
                        acknowledged.append(saved.json()["content"])
                    if number == 20:
                        process.kill()

        writer = Thread(target=save)
        writer.start()
        writer.join(timeout=120)
        assert len(acknowledged) >= 20
    with _serve(tmp_path, "--without-token", "me") as (url, _):
        found = httpx2.get(f"{url}/memories", params={"limit": 500}, timeout=60).json()["memories"]
        kept = [each["content"] for each in found]
    assert len(kept) == len(set(kept))
    assert set(acknowledged) <= set(kept)
    assert len(kept) <= len(acknowledged) + 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--http", "0.0.0.0:0"], "can be reached from other machines"),
        (["--http", "0.0.0.0:0", "--remote", "--without-token", "me"], "needs a token"),
        (["--http", "0.0.0.0:0", "--remote"], "Name the hosts"),
        (["--http", "here"], "is no address"),
    ],
)
def test_an_address_that_is_too_open_is_refused(tmp_path: Path, options: list[str], said: str) -> None:
    refused = ricordo("serve", "--data", tmp_path, *options)
    assert refused.code == 1
    assert said in refused.err


def test_a_damaged_database_is_named_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "service.sqlite3").write_bytes(b"no database at all, but long enough to be read as one")
    refused = ricordo("token", "list", "--data", tmp_path)
    assert (refused.code, "Restore it from a copy" in refused.err) == (1, True)
