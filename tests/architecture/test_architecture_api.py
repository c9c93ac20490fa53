"""The public names are a promise: adding or removing one is a decision, made here and told in the documentation."""

import subprocess
import sys

import ricordo
from source_tree import ROOT

PUBLIC = [
    "ClearResultsConfig",
    "CompactionConfig",
    "DedupeReadsConfig",
    "Entry",
    "FlushConfig",
    "HarnessAgent",
    "Memory",
    "Message",
    "RemoteAgent",
    "RicordoError",
    "Scope",
    "SubAgent",
    "ToolResultEvictionConfig",
    "TruncateArgsConfig",
    "__version__",
    "read_history",
]


def test_the_public_names_are_the_ones_that_were_decided() -> None:
    assert ricordo.__all__ == PUBLIC
    assert dir(ricordo) == PUBLIC


def test_every_public_name_is_documented() -> None:
    page = (ROOT / "docs" / "reference" / "python.md").read_text(encoding="utf-8")
    assert [name for name in PUBLIC if not name.startswith("__") and f"\n## {name}\n" not in page] == []


def test_the_version_is_the_installed_one() -> None:
    done = subprocess.run([sys.executable, "-m", "ricordo", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"ricordo {ricordo.__version__}"
