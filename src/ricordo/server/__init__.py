"""An HTTP service for the memories of many users: `create_app` returns the application, `ricordo serve` runs it."""

from typing import TYPE_CHECKING

from ricordo.lazy import lazy_exports

if TYPE_CHECKING:
    from ricordo.server.access import Caller, IssuedToken, Token, TokenBook, open_token_book
    from ricordo.server.app import ServiceLimits, create_app

__all__ = ["Caller", "IssuedToken", "ServiceLimits", "Token", "TokenBook", "create_app", "open_token_book"]

__getattr__ = lazy_exports(
    __name__, {".access": "Caller IssuedToken Token TokenBook open_token_book", ".app": "ServiceLimits create_app"}
)
