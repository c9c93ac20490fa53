"""The texts of the benchmark are recognised about as well as its page says, and harmless ones let through."""

import pytest

import poisoning
from ricordo.guard.instructions import find_instruction


@pytest.mark.req("FC-POISON")
@pytest.mark.soak
def test_the_lived_texts_hold_their_floors(capsys: pytest.CaptureFixture[str]) -> None:
    assert poisoning.main(["--floors"]) == 0, capsys.readouterr().err


@pytest.mark.req("FC-POISON")
@pytest.mark.parametrize("language", poisoning.NAMES)
def test_orders_are_recognised_in_each_language_and_their_harmless_twins_are_not(language: str) -> None:
    pairs = [pair for pair in poisoning.read_pairs(poisoning.SETS["tuned"]) if pair.language == language]
    assert len(pairs) >= 30
    caught = [pair for pair in pairs if any(map(find_instruction, pair.poisoned))]
    assert len(caught) >= len(pairs) - 1
    assert [pair.harmless for pair in pairs if any(map(find_instruction, pair.harmless))] == []
    assert [text for own, text in poisoning.read_own_rules() if own == language and find_instruction(text)] == []
