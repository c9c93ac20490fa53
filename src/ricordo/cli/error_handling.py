"""How a command fails and warns: one line on stderr, or one JSON document, and an exit code; never a traceback.

0 is success, 1 a `RicordoError`, 2 a wrong use of the command, 130 an interruption. A reader that closes the pipe early
ends the command in silence.

Invariants: text from the command line is valid Unicode when a command gets it, whatever the locale; names of files stay
what the system gave. A warning is printed once, however many commands run in one another, as they do in a chat.
"""

import errno
import logging
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from secrets import token_bytes
from typing import Any, cast, get_args

import typer
from typer.core import TyperCommand, TyperGroup

from ricordo.cli.options import decode_argument, record_json_flag, wants_json
from ricordo.cli.render import print_error, print_json
from ricordo.errors import RicordoError, StorageFailed
from ricordo.lazy import lazy_compile

__all__ = ["Command", "CommandGroup", "NestedGroup", "hide_unrecorded_warning", "print_warnings"]


_EXIT_FAILED, _EXIT_USAGE, _EXIT_INTERRUPTED = 1, 2, 130
# The base class of wrong use has no public name in every version of the parser.
_UsageError = cast("type[Exception]", typer.BadParameter.__bases__[0])


class Command(TyperCommand):
    """A command; the texts it was given reach it decoded."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return its parameters, which convert only what needs it."""
        return _convert_only_what_needs_it(super().get_params(ctx))

    def invoke(self, ctx: Any) -> Any:
        """Run it. Raises: InvalidInput for a text that is not UTF-8."""
        names = {each.name: each.opts[0] if each.opts[0].startswith("-") else each.metavar for each in self.params}
        ctx.params = {name: decode_argument(value, names.get(name) or name) for name, value in ctx.params.items()}
        return super().invoke(ctx)


class NestedGroup(TyperGroup):
    """Commands below one name."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands in the order of the help, without importing any."""
        del ctx
        return list(self.commands)

    def get_params(self, ctx: Any) -> list[Any]:
        """Return its parameters, which convert only what needs it."""
        return _convert_only_what_needs_it(super().get_params(ctx))


class CommandGroup(NestedGroup):
    """The group of all commands; what they raise ends here."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the options that stand before the command."""
        record_json_flag(ctx, args)
        with _report_errors(ctx):
            return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was asked for."""
        with _report_errors(ctx), print_warnings():
            return super().invoke(ctx)


def _convert_only_what_needs_it(parameters: list[Any]) -> list[Any]:
    """Let the parser convert only what may have to be refused.

    A newer parser loads pydantic for every conversion, which takes longer than most commands.
    """
    for each in parameters:
        if "process_value" not in vars(each):
            each.process_value = partial(_process_value, each, each.process_value)
    return parameters


def _process_value(parameter: Any, convert: Callable[[Any, Any], Any], context: Any, value: Any) -> Any:
    kind = getattr(parameter, "type_descriptor", None)
    is_list = parameter.multiple or parameter.nargs == -1
    if kind is None or (parameter.required and not value):
        return convert(context, value)
    if value is None:
        result: Any = () if is_list else None
    elif is_list:
        item_type = next(iter(get_args(kind.annotation)), None)
        result = [_convert_value(each, item_type, kind.parameter_info) for each in value]
    else:
        result = _convert_value(value, kind.annotation, kind.parameter_info)
    if result is _NOT_CONVERTED or (is_list and _NOT_CONVERTED in result):
        return convert(context, value)
    return result if parameter.callback is None else parameter.callback(context, parameter, result)


_NOT_CONVERTED = object()


def _convert_value(value: Any, wanted: Any, info: Any) -> Any:
    """Return a value as the type `wanted` if that is text, a number or a path, or an option has a parser of its own."""
    if info.parser is not None:
        return info.parser(value)
    if type(value) is wanted:
        return value
    if wanted is int and type(value) is str and re.fullmatch(r"0|[1-9][0-9]{0,8}", value):
        number = int(value)
        is_within = (info.min is None or info.min <= number) and (info.max is None or number <= info.max)
        return number if is_within else _NOT_CONVERTED
    # a path must be readable if it exists; the other checks of the parser are not used
    if wanted is Path and type(value) is str and (os.access(value, os.R_OK) or not os.access(value, os.F_OK)):
        return Path(value)
    return _NOT_CONVERTED


@contextmanager
def _report_errors(context: typer.Context) -> Iterator[None]:
    try:
        yield
    except RicordoError as error:
        _print_failure(context, type(error).__name__, str(error))
        raise typer.Exit(_EXIT_FAILED) from error
    except KeyboardInterrupt as error:
        _print_failure(context, "Interrupted", "interrupted; what was saved before is kept")
        raise typer.Exit(_EXIT_INTERRUPTED) from error
    except OSError as error:
        if error.errno != errno.EPIPE:
            filename = f"{error.filename}: " if error.filename else ""
            _print_failure(context, StorageFailed.__name__, f"{filename}{error.strerror or error}")
            raise typer.Exit(_EXIT_FAILED) from error
        _discard_output(sys.stdout.fileno())
        raise typer.Exit(_EXIT_FAILED) from error
    except _UsageError as error:
        if not wants_json(context):
            message = _redact(_usage_message(error))
            if type(error).__name__ != "NoArgsIsHelpError":
                error.format_message = lambda: message  # type: ignore[attr-defined]
            raise
        _print_failure(context, "UsageError", _usage_message(error))
        raise typer.Exit(_EXIT_USAGE) from error


def _usage_message(error: Exception) -> str:
    if type(error).__name__ == "NoArgsIsHelpError":
        return "A command is missing: --help lists them."
    explain = getattr(error, "format_message", None)
    return str(explain()) if explain else str(error)


def _print_failure(context: typer.Context, name: str, message: str) -> None:
    message = _redact(message)
    if wants_json(context):
        print_json({"error": name, "message": message})
    else:
        print_error(message)


def _redact(message: str) -> str:
    # imported where it is needed: it takes time, and it lets every message pass the guard
    from ricordo.guard import Redactor

    return Redactor(token_bytes(32)).clean(message)


def _discard_output(output: int) -> None:
    """Let what is still buffered go nowhere, so that the interpreter does not complain at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), output)


_RETRY_MESSAGE = lazy_compile(r"Asking again in (?P<seconds>[\d.]+) s: (?P<why>.*)", re.DOTALL)
_UNRECORDED_MESSAGE = "nothing that is said now is kept"


class _WarningPrinter(logging.Handler):
    """Prints warnings; a warning about a retry says how long the wait is."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print it."""
        message = record.getMessage()
        again = _RETRY_MESSAGE.fullmatch(message)
        if again:
            message = f"{again['why'].rstrip('.')}; waiting {float(again['seconds']):g} s to ask again."
        print_error(message)


@contextmanager
def print_warnings() -> Iterator[None]:
    """Print what the package warns of in the block, each warning once, as one line without a place in a file."""
    logger = logging.getLogger("ricordo")
    if any(isinstance(each, _WarningPrinter) for each in logger.handlers):
        yield
        return
    handler, printed = _WarningPrinter(logging.WARNING), set[str]()

    def print_once(message: Warning | str, *place: object, **more: object) -> None:
        del place, more
        if str(message) not in printed:
            printed.add(str(message))
            print_error(str(message))

    logger.addHandler(handler)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("always", category=UserWarning)
            warnings.showwarning = print_once
            yield
    finally:
        logger.removeHandler(handler)


@contextmanager
def hide_unrecorded_warning() -> Iterator[None]:
    """Hide, in the block, the warning that messages are not stored; no message is sent there."""
    logger = logging.getLogger("ricordo.agent")
    logger.addFilter(_is_other_warning)
    try:
        yield
    finally:
        logger.removeFilter(_is_other_warning)


def _is_other_warning(record: logging.LogRecord) -> bool:
    return _UNRECORDED_MESSAGE not in str(record.msg)
