"""Spending: what the requests cost that memory makes on its own, and the daily limit that ends them."""

from ricordo.spending.config import SpendingConfig
from ricordo.spending.journal import Asked
from ricordo.spending.meter import Meter, Metered
from ricordo.spending.plan import Spent

__all__ = ["Asked", "Meter", "Metered", "SpendingConfig", "Spent"]
