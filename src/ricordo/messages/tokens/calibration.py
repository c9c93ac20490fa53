"""Corrects token estimates by the reports of providers: `corrected = factor * estimate + offset` for each model.

A report moves both so that the line passes through it (a normalized least-mean-squares step): a small request mostly
moves the offset, a large one mostly the factor.

Invariant: after a first report within the limits, the corrected estimate of the same request equals the report. A
report outside moves the correction only to its limits, so one absurd report can't make a window look empty or full.
"""

from collections.abc import Mapping
from dataclasses import field

from ricordo.lazy import dataclass
from ricordo.messages import JsonValue

__all__ = ["Calibration", "TokenCorrection"]


_FACTOR = (0.25, 4.0)
_OFFSET = 3_000
"""The largest assumed size, in tokens, of a provider's hidden frame.

It is also the size of a request whose deviation is attributed to the frame and to the vocabulary in equal parts.
"""
_SURPRISE = 0.5
"""A later report counts as at most this fraction of the expected tokens away from them."""
_GAIN = 0.85
"""The fraction of the distance to a later report that the line moves."""


@dataclass(frozen=True, kw_only=True)
class TokenCorrection:
    """The learned correction of one model, see the module docstring; `reports` is the number of reports so far."""

    factor: float = 1.0
    offset: int = 0
    reports: int = 0

    def apply(self, estimated: int) -> int:
        """Return the corrected estimate in tokens: 0 for 0, else at least 1 and at least a quarter of the estimate."""
        if estimated <= 0:
            return 0
        floor = max(1, round(estimated * _FACTOR[0]))
        return max(floor, round(estimated * self.factor) + self.offset)

    def update(self, *, estimated: int, reported: int) -> "TokenCorrection":
        """Return the correction after a request with these estimated (uncorrected) and reported input tokens.

        Values that are not positive change nothing.
        """
        if estimated <= 0 or reported <= 0:
            return self
        expected = estimated * self.factor + self.offset
        most_believed = max(estimated * _FACTOR[1], estimated + _OFFSET)
        target = float(_clamp(reported, estimated * _FACTOR[0], most_believed))
        if self.reports:
            max_change = _SURPRISE * abs(expected)
            target = expected + _GAIN * _clamp(target - expected, -max_change, max_change)
        to_frame = _OFFSET**2 / (_OFFSET**2 + estimated**2)
        offset = round(_clamp(self.offset + to_frame * (target - expected), -_OFFSET, _OFFSET))
        factor = _clamp((target - offset) / estimated, *_FACTOR)
        return TokenCorrection(factor=factor, offset=offset, reports=self.reports + 1)


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """The corrections by model; the estimate of a model without a report is unchanged."""

    corrections: Mapping[str, TokenCorrection] = field(default_factory=dict)

    def correct(self, model: str, estimated: int) -> int:
        """Return the estimate for `model` in tokens, corrected by the reports so far."""
        return self.corrections.get(model, TokenCorrection()).apply(estimated)

    def observe(self, model: str, *, estimated: int, reported: int) -> "Calibration":
        """Return the calibration after one reported request.

        `estimated` is the uncorrected `RequestEstimate.input`, `reported` the provider's count of all input, cached
        tokens included (`Usage.input`).
        """
        before = self.corrections.get(model, TokenCorrection())
        after = before.update(estimated=estimated, reported=reported)
        return Calibration(corrections={**self.corrections, model: after})

    def to_json(self) -> dict[str, JsonValue]:
        """Return the JSON that `from_json` reads, with the models in order."""
        return {
            model: {"factor": correction.factor, "offset": correction.offset, "reports": correction.reports}
            for model, correction in sorted(self.corrections.items())
        }

    @classmethod
    def from_json(cls, value: JsonValue) -> "Calibration":
        """Read the output of `to_json`; invalid parts are left out, since the next report replaces them."""
        models = value if isinstance(value, dict) else {}
        corrections = {model: _read_correction(entry) for model, entry in models.items()}
        return cls(corrections={model: entry for model, entry in corrections.items() if entry is not None})


def _read_correction(value: JsonValue) -> TokenCorrection | None:
    if not isinstance(value, dict):
        return None
    factor, offset, reports = value.get("factor"), value.get("offset"), value.get("reports")
    if not isinstance(factor, int | float) or not isinstance(offset, int) or not isinstance(reports, int):
        return None
    is_valid = _FACTOR[0] <= factor <= _FACTOR[1] and abs(offset) <= _OFFSET and reports >= 0
    return TokenCorrection(factor=float(factor), offset=int(offset), reports=int(reports)) if is_valid else None


def _clamp(value: float, low: float, high: float) -> float:
    return min(max(value, low), high)
