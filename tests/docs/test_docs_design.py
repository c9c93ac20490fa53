"""The page of the rooms and the contracts speak of the rooms that exist."""

import re
import tomllib

from source_tree import PACKAGE, ROOT, modules


def test_every_room_has_its_line_and_every_line_its_room() -> None:
    page = (ROOT / "docs" / "design" / "rooms.md").read_text(encoding="utf-8")
    described = re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)
    assert sorted(described) == sorted({module.room for module in modules()} - {"", "__main__"})


def test_a_room_is_a_package_or_a_single_module() -> None:
    folders = {path.name for path in PACKAGE.iterdir() if path.is_dir() and any(path.rglob("*.py"))}
    assert {name for name in folders if not (PACKAGE / name / "__init__.py").is_file()} == set()


def test_every_direct_dependency_is_argued_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = {re.split(r"[<>=\[ ]", line)[0] for line in project["dependencies"]}
    page = (ROOT / "docs" / "design" / "dependencies.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| ([\w-]+) \|", page, re.MULTILINE)) - {"package"} == names
