"""Tokens: budgets, estimates, exact counts, and cutting text to fit."""

from ricordo.tokens.budget import Budget, Share, Tokens, resolve_budget
from ricordo.tokens.calibration import Calibration, TokenCorrection
from ricordo.tokens.cut import cut_text, safe_boundary
from ricordo.tokens.estimate import (
    Estimator,
    RequestEstimate,
    TokenCounter,
    estimate_message,
    estimate_request,
    estimate_text,
)
from ricordo.tokens.exact import DEFAULT_VOCABULARY, VocabularyCounter, load_token_counter

__all__ = [
    "DEFAULT_VOCABULARY",
    "Budget",
    "Calibration",
    "TokenCorrection",
    "Estimator",
    "RequestEstimate",
    "Share",
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
