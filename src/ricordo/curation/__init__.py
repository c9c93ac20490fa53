"""Curation: ledgers become curated memory and a profile of the user, and what is past its time leaves."""

__all__: list[str] = []
