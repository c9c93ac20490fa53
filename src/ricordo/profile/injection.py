"""How much of a profile a prompt shows, and where. The names are those of DeerFlow's settings."""

from dataclasses import dataclass
from typing import Literal

from ricordo.errors import InvalidSetting
from ricordo.workspace.profile import CORRECTION

__all__ = ["InjectionConfig"]

_INJECTION_TOKEN_RANGE = (100, 8_000)
_GUARANTEED_TOKEN_RANGE = (50, 2_000)


@dataclass(frozen=True, kw_only=True)
class InjectionConfig:
    """What of a profile is shown.

    The block has at most `max_injection_tokens` tokens, 100 to 8,000. Facts of the `guaranteed_categories` have
    `guaranteed_token_budget` of them before all others, 50 to 2,000. With `placement` `system` it stands in the memory
    part of the system prompt, with `user_message` in a message of its own after the user's first one.
    """

    max_injection_tokens: int = 2_000
    guaranteed_categories: tuple[str, ...] = (CORRECTION,)
    guaranteed_token_budget: int = 500
    placement: Literal["system", "user_message"] = "system"

    def __post_init__(self) -> None:
        """Refuse numbers out of their range, one text for several categories, and any other place."""
        for name, (least, most) in (
            ("max_injection_tokens", _INJECTION_TOKEN_RANGE),
            ("guaranteed_token_budget", _GUARANTEED_TOKEN_RANGE),
        ):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
                raise InvalidSetting(f"{name} is a whole number from {least} to {most:,}, not {value!r}.")
        categories: object = self.guaranteed_categories
        if not isinstance(categories, tuple) or not all(isinstance(each, str) for each in categories):
            raise InvalidSetting(f"guaranteed_categories are several texts, not {categories!r}.")
        if self.placement not in {"system", "user_message"}:
            raise InvalidSetting(f"placement is system or user_message, not {self.placement!r}.")
