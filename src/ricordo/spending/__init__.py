"""Spending: what the requests cost that memory makes on its own, and the daily limit that ends them."""

from ricordo.spending.config import SpendingConfig
from ricordo.spending.journal import RequestRecord
from ricordo.spending.meter import SpendingMeter, MeteredModel
from ricordo.spending.plan import SpendingTotal

__all__ = ["RequestRecord", "SpendingMeter", "MeteredModel", "SpendingConfig", "SpendingTotal"]
