"""Numbers and amounts, whatever their form."""

import pytest

from ricordo.language.quantities import find_quantities

DAY = 86_400.0
AMOUNTS = [
    ("We keep it for two weeks.", 14 * DAY, "time"),
    ("We keep it for 14 days.", 14 * DAY, "time"),
    ("Make that a fortnight.", 14 * DAY, "time"),
    ("It is deleted after a quarter.", 90 * DAY, "time"),
    ("Half an hour, tops.", 1_800.0, "time"),
    ("It answers within 300 ms.", 0.3, "time"),
    ("The budget is forty-eight thousand.", 48_000.0, ""),
    ("She takes nine and a half thousand.", 9_500.0, ""),
    ("It may cost 38,000 euros.", 38_000.0, "EUR"),
    ("The ticket is €17.99.", 17.99, "EUR"),
    ("The ticket is 17.99 euros.", 17.99, "EUR"),
    ("At most 650 MB.", 650e6, "data"),
    ("We have 48k users.", 48_000.0, ""),
    ("Wir haben das vor achtunddreißig Tagen gemacht und es ist gut.", 38 * DAY, "time"),
    ("El alquiler de la casa es de treinta y ocho mil euros.", 38_000.0, "EUR"),
    ("现在四十六家了。", 46.0, "piece"),
    ("日志保留十四天。", 14 * DAY, "time"),
    ("限流每分钟一百二十次。", 120.0, "piece"),
    ("改成一百二吧。", 120.0, ""),
    ("一共一百零二次。", 102.0, "piece"),
    ("预算是十二万块。", 120_000.0, "CNY"),
]


@pytest.mark.parametrize(("text", "value", "unit"), AMOUNTS)
def test_an_amount_is_read_in_one_form(text: str, value: float, unit: str) -> None:
    (quantity,) = find_quantities(text)
    assert (quantity.value, quantity.unit) == (value, unit)


@pytest.mark.parametrize("text", ["Godot 4.4.1 at 20:45.", "周一一起开会。", "Someone is there.", ""])
def test_a_version_a_clock_time_and_a_part_of_a_word_are_no_amounts(text: str) -> None:
    assert find_quantities(text) == ()


def test_a_rate_is_no_duration() -> None:
    assert [(one.value, one.unit) for one in find_quantities("Each singer pays twelve euros a month.")] == [
        (12.0, "EUR")
    ]
