"""The page of the rooms and the contracts speak of the rooms that exist."""

import re
import tomllib

from source_tree import PACKAGE, ROOT, definitions, modules


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


def test_each_hop_of_the_flows_is_a_function_in_the_file_that_the_page_names() -> None:
    page = (ROOT / "docs" / "design" / "flows.md").read_text(encoding="utf-8")
    hops = re.findall(r"((?:`[\w.]+`(?:, | and )?)+) in\s`([\w/]+\.py)`", page)
    named = {(name, file) for names, file in hops for name in re.findall(r"`([\w.]+)`", names)}
    assert len(named) > 40
    known = {(name, str(module.path.relative_to(PACKAGE))) for module in modules() for name, _ in definitions(module)}
    assert named - known == set()


def test_each_source_file_that_a_page_of_the_design_names_exists() -> None:
    named = {
        (page.name, file)
        for page in (ROOT / "docs" / "design").glob("*.md")
        for file in re.findall(r"`((?:\w+/)+\w+\.py)`", page.read_text(encoding="utf-8"))
    }
    assert len(named) > 100
    places = (PACKAGE, ROOT, ROOT / "src")
    assert {(page, file) for page, file in named if not any((place / file).is_file() for place in places)} == set()
