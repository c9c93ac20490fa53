"""What holds for every test: isolation, a loop that never waits, seeded property tests, and claims that are counted."""

from collections.abc import Awaitable, Callable, Generator, Iterator
from pathlib import Path

import hypothesis.configuration
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.database import DirectoryBasedExampleDatabase

from isolation import forbid_network, hear_interruptions, isolate
from loop_guard import LeavesLoopFree, LoopGuard
from requirement_claims import ClaimReporter, attach_claims
from spared_work import keep_folders_in_memory, set_collected_apart

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = ROOT / "tests" / "requirements.toml"

# A red check is to be caused by the change at hand, so examples are derived from the test; `make fuzz` looks further.
_HYPOTHESIS_HOME = ROOT / ".hypothesis"
hypothesis.configuration.set_hypothesis_home_dir(_HYPOTHESIS_HOME)
settings.register_profile(
    "check", deadline=None, derandomize=True, max_examples=25, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "fuzz",
    deadline=None,
    derandomize=False,
    max_examples=3_000,
    database=DirectoryBasedExampleDatabase(_HYPOTHESIS_HOME / "examples"),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("check")

_guard = LoopGuard(package=ROOT / "src" / "ricordo")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of this suite."""
    parser.addoption(
        "--requirements", type=Path, help="write which requirements hold to this JSON file, and print the table"
    )
    parser.addoption(
        "--backends", default="asyncio", help="the event loops of async tests: asyncio, trio, or both with a comma"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Arm what guards the whole process, and count claims where the run is reported."""
    keep_folders_in_memory()
    hear_interruptions()
    _guard.install()
    forbid_network()
    target: Path | None = config.getoption("--requirements")
    if target is not None and not hasattr(config, "workerinput"):
        reporter = ClaimReporter(requirements=REQUIREMENTS, target=config.rootpath / target)
        config.pluginmanager.register(reporter, "requirement-claims")


@pytest.hookimpl(optionalhook=True, wrapper=True)
def pytest_xdist_auto_num_workers() -> Generator[None, int, int]:
    """Start one worker more than there are processors, as tests also wait: for processes, timeouts and answers."""
    return (yield) + 1


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let each test's claims travel with its reports."""
    attach_claims(items)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Spare the garbage collector what is collected."""
    with set_collected_apart():
        return (yield)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run async tests on the event loops that were asked for; a test that names its own keeps them."""
    named = any("anyio_backend" in mark.args[0] for mark in metafunc.definition.iter_markers("parametrize"))
    if "anyio_backend" in metafunc.fixturenames and not named:
        metafunc.parametrize("anyio_backend", metafunc.config.getoption("--backends").split(","), scope="session")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Replace the plugin's own list of loops by what `--backends` says."""
    return "asyncio"


@pytest.fixture(scope="session")
def isolation_base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder under which each test gets its home."""
    return tmp_path_factory.mktemp("isolation")


@pytest.fixture(autouse=True)
def home(isolation_base: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the test an empty home and working directory, and take the person's environment away."""
    return isolate(isolation_base, monkeypatch)


@pytest.fixture
def leaves_loop_free() -> LeavesLoopFree:
    """Return what fails the test if the package works on the event loop for more than 50 ms, scaled by the machine.

    What exceeds it by chance on a busy machine is tried again, twice at most.
    """

    async def leaves_free(act: Callable[[], Awaitable[object]]) -> None:
        for _ in range(3):
            with _guard.watch(stall_seconds=0.05) as findings:
                await act()
            if not findings:
                break
        else:
            pytest.fail("\n".join(findings), pytrace=False)

    return leaves_free


@pytest.fixture(autouse=True)
def loop_findings(request: pytest.FixtureRequest) -> Iterator[list[str]]:
    """Fail the test if the event loop was blocked from inside the package, unless it is marked `may_block`."""
    with _guard.watch() as findings:
        yield findings
    if findings and request.node.get_closest_marker("may_block") is None:
        pytest.fail("\n".join(findings), pytrace=False)
