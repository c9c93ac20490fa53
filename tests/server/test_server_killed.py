"""Two services over one folder, killed again and again: nothing acknowledged is lost, doubled or leaked."""

import os
import random
import socket
import subprocess
import sys
import threading
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
import pytest

from command_line import ricordo


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


@dataclass
class _Servers:
    """Two services over one folder, each on a port of its own."""

    data: Path
    ports: list[int] = field(default_factory=lambda: [_free_port(), _free_port()])
    running: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start(self, port: int) -> None:
        command = [sys.executable, "-m", "ricordo", "serve", "--data", str(self.data), "--http", f"127.0.0.1:{port}"]
        self.running[port] = subprocess.Popen(
            [*command, "--rate", "10000"], stderr=subprocess.DEVNULL, env=dict(os.environ)
        )

    def restart(self, port: int) -> None:
        """Kill a service in whatever it does, and start it again."""
        self.running[port].kill()
        self.running[port].wait()
        self.start(port)

    def stop(self) -> None:
        for process in self.running.values():
            process.kill()
            process.wait()


def _write_all(servers: _Servers, token: str, texts: list[str], acknowledged: list[str]) -> None:
    """Save each text, and send it again to whichever service answers until one has acknowledged it."""
    with httpx2.Client(headers={"Authorization": f"Bearer {token}"}, timeout=30) as client:
        for number, text in enumerate(texts):
            key = {"Idempotency-Key": uuid.uuid4().hex}
            for attempt in range(2_000):
                port = servers.ports[(number + attempt) % 2]
                try:
                    url = f"http://127.0.0.1:{port}/v1/memories"
                    if client.post(url, json={"content": text}, headers=key).status_code == 201:
                        acknowledged.append(text)
                        break
                except httpx2.TransportError:
                    time.sleep(0.05)


@pytest.mark.parametrize(
    ("users", "writes", "kills"),
    [(2, 8, 2), pytest.param(50, 40, 60, marks=[pytest.mark.soak, pytest.mark.timeout(1_800)])],
)
def test_two_services_that_are_killed_lose_double_and_leak_nothing(
    tmp_path: Path, users: int, writes: int, kills: int
) -> None:
    people = [(tenant, f"user{number}") for tenant in ("acme", "bell") for number in range(users)]
    tokens = {
        (tenant, user): ricordo("token", "create", user, "--data", tmp_path, "--tenant", tenant).out.strip()
        for tenant, user in people
    }
    texts = {each: [f"Note {number} of {each[1]} at {each[0]}." for number in range(writes)] for each in people}
    acknowledged: dict[tuple[str, str], list[str]] = {each: [] for each in people}
    servers = _Servers(tmp_path)
    try:
        for port in servers.ports:
            servers.start(port)
        writers = [
            threading.Thread(target=_write_all, args=(servers, tokens[each], texts[each], acknowledged[each]))
            for each in people
        ]
        for writer in writers:
            writer.start()
        chance = random.Random(7)
        for kill in range(kills):
            before = sum(map(len, acknowledged.values()))
            goal = min(before + chance.randint(1, max(1, users * writes // kills)), users * 2 * writes - 1)
            while sum(map(len, acknowledged.values())) < goal and any(writer.is_alive() for writer in writers):
                time.sleep(0.01)
            servers.restart(servers.ports[kill % 2])
        for writer in writers:
            writer.join(timeout=1_500)
        assert acknowledged == texts
        for each in people:
            found: list[str] = []
            headers = {"Authorization": f"Bearer {tokens[each]}"}
            for attempt in range(600):
                try:
                    url = f"http://127.0.0.1:{servers.ports[attempt % 2]}/v1/memories"
                    answer = httpx2.get(url, params={"limit": 500}, headers=headers, timeout=30)
                    found = [memory["content"] for memory in answer.json()["memories"]]
                    break
                except httpx2.TransportError:
                    time.sleep(0.1)
            assert sorted(found) == sorted(texts[each])
    finally:
        servers.stop()
