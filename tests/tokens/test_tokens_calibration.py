"""The estimate, corrected by what providers report."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ricordo.messages import JsonValue, Message, Text, ToolSpec, Usage, estimate_request, estimate_text
from ricordo.messages.tokens import Calibration, TokenCorrection

_sizes = st.integers(1, 1_000_000)
_ratios = st.floats(0.25, 4)


@pytest.mark.req("AS-BUG-21")
@given(_sizes, _ratios)
def test_after_one_report_the_same_history_is_estimated_as_reported(estimated: int, ratio: float) -> None:
    reported = max(1, round(estimated * ratio))
    calibration = Calibration().observe("m", estimated=estimated, reported=reported)
    assert calibration.correct("m", estimated) == pytest.approx(reported, rel=0.01, abs=1)


@pytest.mark.req("AS-BUG-21")
@pytest.mark.parametrize("density", [0.6, 1.0, 1.7])
def test_a_whole_request_is_estimated_and_then_corrected_by_its_report(density: float) -> None:
    history = [Message(role="user", parts=(Text(text="Where do the fixtures live? " * 40),))] * 10
    schema: dict[str, JsonValue] = {
        "type": "object",
        "properties": {
            f"filter_{number}": {"type": "string", "description": "Only files whose path begins with this folder."}
            for number in range(20)
        },
    }
    tool = ToolSpec(name="search", description="Find files by their names.", parameters=schema)
    bare = estimate_request(history)
    whole = estimate_request(history, system="Help. " * 300, memory="Tea. " * 300, tools=[tool], reserved_output=700)
    assert whole.tools >= estimate_text(json.dumps(schema, separators=(",", ":"))) + estimate_text(tool.description)
    assert whole.system >= estimate_text("Help. " * 300) > 300
    assert whole.memory >= estimate_text("Tea. " * 300) > 300
    assert whole.messages == bare.messages >= 10 * estimate_text("Where do the fixtures live? " * 40)
    assert whole.reserved == 700
    assert whole.total == bare.total + whole.system + whole.memory + whole.tools + whole.reserved
    usage = Usage(input=round(whole.input * density) + 120)
    calibration = Calibration().observe("m", estimated=whole.input, reported=usage.input)
    again = estimate_request(history, system="Help. " * 300, memory="Tea. " * 300, tools=[tool], reserved_output=700)
    assert calibration.correct("m", again.input) == pytest.approx(usage.input, rel=0.1)


@pytest.mark.req("AS-BUG-21")
@given(st.lists(st.tuples(_sizes, _ratios), max_size=4), _sizes, st.floats(0.65, 1.5))
def test_a_later_report_near_what_was_expected_is_taken_over_too(
    earlier: list[tuple[int, float]], estimated: int, surprise: float
) -> None:
    calibration = Calibration()
    for size, ratio in earlier:
        calibration = calibration.observe("m", estimated=size, reported=max(1, round(size * ratio)))
    expected = calibration.correct("m", estimated)
    reported = round(expected * surprise)
    if not 0.5 * estimated <= reported <= 3 * estimated:
        return
    after = calibration.observe("m", estimated=estimated, reported=reported)
    assert after.correct("m", estimated) == pytest.approx(reported, rel=0.1, abs=2)


@pytest.mark.req("AS-BUG-21")
@given(_sizes, st.integers(-(10**12), 10**12))
def test_an_absurd_first_report_stays_within_the_bounds(estimated: int, reported: int) -> None:
    calibration = Calibration().observe("m", estimated=estimated, reported=reported)
    corrected = calibration.correct("m", estimated)
    assert estimated // 4 <= corrected <= max(4 * estimated, estimated + 3_000) + 1


@pytest.mark.req("AS-BUG-21")
def test_one_absurd_report_after_sound_ones_moves_the_estimate_by_at_most_half() -> None:
    sound = Calibration().observe("m", estimated=50_000, reported=55_000)
    for absurd in (1, 10**9):
        moved = sound.observe("m", estimated=50_000, reported=absurd).correct("m", 50_000)
        assert 27_000 <= moved <= 82_500


@pytest.mark.req("AS-BUG-21")
def test_the_estimate_recovers_from_an_absurd_report() -> None:
    calibration = Calibration().observe("m", estimated=50_000, reported=10**9)
    for _ in range(4):
        calibration = calibration.observe("m", estimated=50_000, reported=55_000)
    assert calibration.correct("m", 50_000) == pytest.approx(55_000, rel=0.1)


@pytest.mark.req("AS-BUG-21")
@pytest.mark.parametrize(("estimated", "reported"), [(0, 100), (-5, 100), (100, 0), (100, -1)])
def test_a_report_without_tokens_teaches_nothing(estimated: int, reported: int) -> None:
    assert TokenCorrection().update(estimated=estimated, reported=reported) == TokenCorrection()


@pytest.mark.req("AS-BUG-21")
def test_the_hidden_frame_of_a_tiny_request_does_not_inflate_a_long_history() -> None:
    calibration = Calibration().observe("m", estimated=10, reported=1_500)
    assert calibration.correct("m", 10) == 1_500
    assert calibration.correct("m", 50_000) < 55_000


@pytest.mark.req("AS-BUG-21")
def test_models_are_corrected_apart() -> None:
    calibration = Calibration().observe("dense", estimated=10_000, reported=20_000)
    assert calibration.correct("dense", 10_000) == 20_000
    assert calibration.correct("other", 10_000) == 10_000
    both = calibration.observe("other", estimated=10_000, reported=5_000)
    assert [both.correct(model, 10_000) for model in ("dense", "other")] == [20_000, 5_000]


def test_nothing_stays_nothing() -> None:
    assert Calibration().observe("m", estimated=10, reported=40).correct("m", 0) == 0


@pytest.mark.req("AS-BUG-21")
@given(st.lists(st.tuples(st.sampled_from("ab"), _sizes, _sizes), max_size=5))
def test_a_calibration_reads_back_as_it_was(reports: list[tuple[str, int, int]]) -> None:
    calibration = Calibration()
    for model, estimated, reported in reports:
        calibration = calibration.observe(model, estimated=estimated, reported=reported)
    assert Calibration.from_json(calibration.to_json()) == calibration


@pytest.mark.req("AS-BUG-21")
@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        {"m": 5},
        {"m": {"factor": "2", "offset": 0, "reports": 1}},
        {"m": {"factor": 99.0, "offset": 0, "reports": 1}},
        {"m": {"factor": 1.0, "offset": 10**9, "reports": 1}},
        {"m": {"factor": 1.0, "offset": 0}},
    ],
)
def test_a_broken_calibration_is_learned_again(value: JsonValue) -> None:
    assert Calibration.from_json(value) == Calibration()
