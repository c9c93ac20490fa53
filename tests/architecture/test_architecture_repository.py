"""The repository stands on its own: it names no machine, no host it does not need, and few dependencies."""

import importlib.metadata
import os
import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from source_tree import ROOT, repository_files

DIRECT_DEPENDENCIES_CAP = 6
RESOLVED_DEPENDENCIES_CAP = 25

# Where a link may lead: names reserved for examples, this machine, and the few pages that the project refers to.
_EXAMPLE_HOST = re.compile(
    r"(^|\.)(example(\.(com|org|net))?|test|invalid|localhost|local)$|^127\.|^0\.0\.0\.0$|^10\.|^192\."
)
_REFERENCE_HOSTS = {"www.apache.org", "keepachangelog.com", "semver.org", "www.sqlite.org"}
# Redaction knows secrets by the services they are for, so its rules and their tests name those.
_SERVICE_HOSTS = {"discord.com", "github.com", "hooks.slack.com", "x.blob.core.windows.net"}
_KNOWING_SERVICES = ("src/ricordo/guard/", "tests/guard/")
_LINK = re.compile(r"\b[a-z][a-z0-9+.-]*://(?:[^\s/@\"'`]*@)?([A-Za-z0-9.-]+\.[A-Za-z0-9-]+)")

_PLACEHOLDER_USERS = r"(?!(?:me|you|user|runner|ines|someone|alice|bob|ada|anna)\b)"
_MACHINE_PATH = re.compile(
    r"(?<![\w.~-])/(?:(?:home|Users)/" + _PLACEHOLDER_USERS + r"[a-z]\w*|ro" + r"ot/\w|wo" + r"rk/\w)"
)
_LOCK_FILES = {"uv.lock", "pylock.toml", "poetry.lock", "pdm.lock", "Pipfile.lock"}


def _texts() -> list[tuple[Path, str]]:
    files = repository_files()
    if not files:
        pytest.skip("not a git checkout")
    texts = []
    for path in files:
        content = path.read_bytes()
        if b"\0" not in content:
            texts.append((path.relative_to(ROOT), content.decode("utf-8")))
    return texts


def test_links_lead_only_to_reserved_names_and_known_pages() -> None:
    foreign = [
        f"{path}: {match.group(0)}"
        for path, text in _texts()
        for match in _LINK.finditer(text)
        if match.group(1) not in _known_hosts(path) and not _EXAMPLE_HOST.search(match.group(1))
    ]
    assert not foreign, "\n".join(foreign)


def _known_hosts(path: Path) -> set[str]:
    return _REFERENCE_HOSTS | (_SERVICE_HOSTS if path.as_posix().startswith(_KNOWING_SERVICES) else set())


def test_no_file_names_a_path_of_somebodys_machine() -> None:
    named = [f"{path}: {match.group(0)}" for path, text in _texts() for match in _MACHINE_PATH.finditer(text)]
    named += [f"{path}: {ROOT}" for path, text in _texts() if str(ROOT) + os.sep in text]
    assert not named, "\n".join(named)


def test_no_lock_file_is_kept() -> None:
    assert [path for path, _ in _texts() if path.name in _LOCK_FILES] == []


def _direct() -> list[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [Requirement(line) for line in project["dependencies"]]


@pytest.mark.req("FC-NOKEY")
def test_the_base_install_has_few_direct_dependencies() -> None:
    assert len(_direct()) <= DIRECT_DEPENDENCIES_CAP


def test_the_base_install_brings_few_packages_in_all() -> None:
    resolved: set[str] = set()
    pending = _direct()
    while pending:
        requirement = pending.pop()
        name = re.sub(r"[-_.]+", "-", requirement.name).lower()
        if name not in resolved:
            resolved.add(name)
            pending += _required_by(name, requirement.extras)
    assert len(resolved) <= RESOLVED_DEPENDENCIES_CAP, sorted(resolved)


def _required_by(name: str, extras: set[str]) -> list[Requirement]:
    lines = [Requirement(line) for line in importlib.metadata.requires(name) or ()]
    wanted = ("", *extras)
    return [
        line for line in lines if not line.marker or any(line.marker.evaluate({"extra": extra}) for extra in wanted)
    ]


def test_every_upper_bound_is_a_major_version_away() -> None:
    unbounded = [str(line) for line in _direct() if not any(bound.operator == "<" for bound in line.specifier)]
    assert unbounded == []
