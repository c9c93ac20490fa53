"""The table of importers: every format under its name, and those that installed packages add.

A built-in importer is a module of this package with the functions `recognizes` and `read`; it is imported when it is
first asked. An installed package adds one as an entry point of the group `ricordo.importers`, whose value is a module
or an object with these two functions; it is asked before the built-in ones, and one with the name of a built-in one
takes its place.
"""

from collections.abc import Iterable, Mapping
from importlib import import_module
from importlib.metadata import entry_points
from typing import cast

from ricordo.errors import ExtraMissing
from ricordo.importers.contract import Importer
from ricordo.importers.source import ImportSource
from ricordo.lazy import dataclass

__all__ = ["IMPORTER_GROUP", "ImportFormat", "describe_formats", "find_format", "list_formats"]


IMPORTER_GROUP = "ricordo.importers"


@dataclass(frozen=True, kw_only=True)
class ImportFormat:
    """A format by its name; `description` says what it is, and `origin` names the package that reads it.

    `value` is where its importer stands, as `module` or `module:object`.
    """

    name: str
    description: str
    value: str
    origin: str = "ricordo"

    def load(self) -> Importer:
        """Return its importer. Raises: ExtraMissing if it can't be imported."""
        module, _, attribute = self.value.partition(":")
        try:
            found: object = import_module(module)
            for name in filter(None, attribute.split(".")):
                found = getattr(found, name)
        except (ImportError, AttributeError) as error:
            raise ExtraMissing(f"The importer {self.name} of {self.origin} can't be loaded: {error}.") from error
        return cast("Importer", found)


# each format under its name, with its module in this package and what it is; the first one that recognizes a source
# reads it, so the most general one is the last
_BUILT_IN: Mapping[str, tuple[str, str]] = {
    "claude-code": ("claude_code", "a transcript of Claude Code"),
    "codex": ("codex", "a rollout of Codex"),
    "gemini": ("gemini", "a chat of Gemini CLI"),
    "opencode": ("opencode", "the database of opencode, or its folder of files"),
    "notes": ("notes", "notes of coding agents, such as CLAUDE.md and the files of a memory folder"),
    "chatgpt": ("chatgpt", "ChatGPT's conversations.json"),
    "claude.ai": ("claude_export", "conversations, memories, projects and users of Claude.ai"),
    "mem0": ("mem0", "memories of mem0"),
    "mcp-memory": ("mcp_memory", "the knowledge graph of the MCP memory server"),
    "langchain": ("langchain", "messages of LangChain, by messages_to_dict or dumpd"),
    "dialogue": ("dialogue", "a dialogue with speaker_a and session_1"),
    "chat": (
        "chat",
        "a list of messages with role and content; an object with messages, chat_messages, conversation, "
        "conversations, history or turns; JSON lines of messages or of conversations",
    ),
}


def list_formats() -> tuple[ImportFormat, ...]:
    """Return every format in the order in which it is asked: those of installed packages, then the built-in ones."""
    installed = {
        point.name: ImportFormat(
            name=point.name,
            description=f"what {point.name} writes",
            value=point.value,
            origin=point.dist.name if point.dist else point.value,
        )
        for point in entry_points(group=IMPORTER_GROUP)
    }
    built_in = [
        ImportFormat(name=name, description=description, value=f"{__package__}.{module}")
        for name, (module, description) in _BUILT_IN.items()
        if name not in installed
    ]
    return (*installed.values(), *built_in)


def find_format(source: ImportSource, formats: Iterable[ImportFormat]) -> ImportFormat | None:
    """Return the first of `formats` whose importer recognizes `source`; None if none does.

    Raises: ExtraMissing for an importer that can't be loaded; the errors of `ImportSource.open`.
    """
    return next((each for each in formats if each.load().recognizes(source)), None)


def describe_formats() -> str:
    """Return a sentence that lists what is understood."""
    return f"Understood are: {'; '.join(each.description for each in list_formats())}."
