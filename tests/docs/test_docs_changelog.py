"""The changelog is collected from fragments; a fragment with a strange name would be lost, so it is refused."""

from pathlib import Path

import pytest

from collect_changelog import KINDS, collect, main
from source_tree import ROOT


def test_fragments_become_bullets_under_their_kinds() -> None:
    section = collect(
        {"undo.fixed.md": "Undo works.\nAlways.\n", "ask.added.md": "- `ask` answers.\n"},
        version="0.2.0",
        date="2026-12-01",
    )
    assert section == (
        "## [0.2.0] - 2026-12-01\n\n### Added\n\n- `ask` answers.\n\n### Fixed\n\n- Undo works.\n  Always.\n"
    )


def test_a_fragment_of_no_known_kind_is_refused() -> None:
    with pytest.raises(ValueError, match=r"odd\.md"):
        collect({"odd.md": "x"}, version="1", date="2026-12-01")


def test_a_release_stands_above_the_older_ones_and_leaves_no_fragment(tmp_path: Path) -> None:
    (tmp_path / "changelog.d").mkdir()
    (tmp_path / "changelog.d" / "README.md").write_text("how\n")
    (tmp_path / "changelog.d" / "x.added.md").write_text("New.\n")
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\nWords.\n\n## [0.1.0] - 2026-11-22\n\nOld.\n")
    main(tmp_path, "0.2.0", "2026-12-01")
    assert (tmp_path / "CHANGELOG.md").read_text() == (
        "# Changelog\n\nWords.\n\n## [0.2.0] - 2026-12-01\n\n### Added\n\n- New.\n\n## [0.1.0] - 2026-11-22\n\nOld.\n"
    )
    assert [path.name for path in (tmp_path / "changelog.d").iterdir()] == ["README.md"]


def test_every_waiting_fragment_can_be_collected() -> None:
    paths = [path for path in (ROOT / "changelog.d").iterdir() if path.name != "README.md"]
    strange = [
        path.name
        for path in paths
        if path.suffix != ".md" or path.suffixes[:-1] not in [[f".{kind}"] for kind in KINDS]
    ]
    assert strange == []
