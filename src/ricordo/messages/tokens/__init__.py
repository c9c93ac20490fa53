"""Token budgets, estimates and exact counts, and cutting text to a number of tokens."""

from typing import TYPE_CHECKING

from ricordo.lazy import lazy_exports

if TYPE_CHECKING:
    from ricordo.messages.tokens.budget import Budget, Share, Tokens, cut_text, resolve_budget, safe_boundary
    from ricordo.messages.tokens.calibration import Calibration, TokenCorrection
    from ricordo.messages.tokens.estimate import (
        DEFAULT_VOCABULARY,
        Estimator,
        RequestEstimate,
        TokenCounter,
        VocabularyCounter,
        estimate_message,
        estimate_request,
        estimate_text,
        load_token_counter,
    )

__all__ = [
    "DEFAULT_VOCABULARY",
    "Budget",
    "Calibration",
    "Estimator",
    "RequestEstimate",
    "Share",
    "TokenCorrection",
    "TokenCounter",
    "Tokens",
    "VocabularyCounter",
    "cut_text",
    "estimate_message",
    "estimate_request",
    "estimate_text",
    "load_token_counter",
    "resolve_budget",
    "safe_boundary",
]

__getattr__ = lazy_exports(
    __name__,
    {
        ".budget": "Budget Share Tokens cut_text resolve_budget safe_boundary",
        ".calibration": "Calibration TokenCorrection",
        ".estimate": (
            "DEFAULT_VOCABULARY Estimator RequestEstimate TokenCounter VocabularyCounter "
            "estimate_message estimate_request estimate_text load_token_counter"
        ),
    },
)
