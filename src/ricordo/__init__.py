"""Ricordo: memory that lasts, and a context window that never overflows, for LLM agents."""

__version__ = "0.1.0"
