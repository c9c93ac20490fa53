"""The resources: the preamble, MEMORY.md and the topics as documents, single memories, and sessions.

Each is read as a fenced block of data. What changes is noticed by a comparison of the versions of the files.
"""

from collections.abc import Mapping, Sequence
from urllib.parse import quote, unquote

from ricordo.errors import FileMissing, NotFound, SessionNotFound
from ricordo.guard import FencedItem, Trust, render_fence
from ricordo.lazy import dataclass
from ricordo.mcp.contract import ServedMemory
from ricordo.mcp.pages import CUT_MARK, fit_page
from ricordo.mcp.rendering import DATA_NOTE, quote_entry
from ricordo.mcp.tools import SESSION_TRUST, find_shown, format_moment
from ricordo.messages import Message
from ricordo.messages.tokens import cut_text, estimate_text
from ricordo.storage import FileStore
from ricordo.workspace.documents import read_memory_lines
from ricordo.workspace.layout import MEMORY_PATH, TOPICS, WORKSPACE, parse_transcript_path
from ricordo.workspace.session_search import SESSION_FENCE, SessionOverview, message_texts

__all__ = ["ResourceInfo", "find_changes", "list_resources", "read_resource", "read_versions"]


_MEMORY, _PREAMBLE = "ricordo://memory", "ricordo://preamble"
_TOPIC, _SHARED_TOPIC = "ricordo://topics/", "ricordo://project/topics/"
_ENTRY, _SESSION = "ricordo://memories/", "ricordo://sessions/"
_LISTED_SESSIONS = 50
_SHOWN_MESSAGES = 50
_DOCUMENT_BUDGETS = 4
_OLDER_NOTE = f"{DATA_NOTE} There are older messages: the tool search_sessions finds what was said in them."
_NO_SESSION = "No session has this id: resources/list names the newest ones."


@dataclass(frozen=True, kw_only=True)
class ResourceInfo:
    """One resource of the list."""

    uri: str
    name: str
    description: str


async def list_resources(served: ServedMemory) -> list[ResourceInfo]:
    """Return the preamble and MEMORY.md, then the topics by name, then the newest sessions."""
    rows = [
        ResourceInfo(uri=_PREAMBLE, name="preamble", description="What a session begins with: profile and memories."),
        ResourceInfo(uri=_MEMORY, name="MEMORY.md", description="What is most worth knowing, in few lines."),
    ]
    for files, prefix in _topic_folders(served):
        rows += [
            ResourceInfo(uri=f"{prefix}{quote(name, safe='')}", name=f"topic {name}", description="Memories by topic.")
            for name in await _list_topics(files)
        ]
    return rows + [
        ResourceInfo(
            uri=f"{_SESSION}{quote(each.session, safe='')}",
            name=f"session {each.session}",
            description=f"A conversation that ended on {each.last:%Y-%m-%d}.",
        )
        for each in (await _list_sessions(served))[:_LISTED_SESSIONS]
    ]


def _topic_folders(served: ServedMemory) -> list[tuple[FileStore, str]]:
    return [(served.files, _TOPIC), *([(served.shared, _SHARED_TOPIC)] if served.shared else [])]


async def _list_topics(files: FileStore) -> list[str]:
    paths = [info.path for info in await files.list(TOPICS)]
    return sorted(path.rpartition("/")[2].removesuffix(".md") for path in paths if path.endswith(".md"))


async def _list_sessions(served: ServedMemory) -> Sequence[SessionOverview]:
    try:
        return await served.sessions.list_sessions()
    except SessionNotFound:
        return ()


async def read_resource(served: ServedMemory, uri: str) -> str:
    """Return a resource as a text. Raises: NotFound for a URI that names nothing."""
    if uri == _PREAMBLE:
        return await served.memory.preamble() or "Nothing is remembered yet."
    if uri == _MEMORY:
        return await _read_memory_documents(served)
    for files, prefix in _topic_folders(served):
        if uri.startswith(prefix):
            return await _read_document(served, files, f"memory/topics/{unquote(uri.removeprefix(prefix))}.md")
    if uri.startswith(_ENTRY):
        entry = await find_shown(served, unquote(uri.removeprefix(_ENTRY)))
        return render_fence([quote_entry(entry)], note=DATA_NOTE)
    if uri.startswith(_SESSION):
        return await _read_session(served, unquote(uri.removeprefix(_SESSION)))
    raise NotFound(f"No resource has the URI {uri[:200]!r}: resources/list and the templates name what there is.")


async def _read_memory_documents(served: ServedMemory) -> str:
    texts = []
    for files in filter(None, (served.files, served.shared)):
        try:
            texts.append(await _read_document(served, files, "MEMORY.md"))
        except FileMissing:
            continue
    return "\n".join(texts) or "MEMORY.md is empty: nothing was consolidated yet."


async def _read_document(served: ServedMemory, files: FileStore, path: str) -> str:
    lines = await read_memory_lines(files, path, redactor=served.redactor)
    shared = "project/" if files is served.shared else ""
    text, note = lines.text, DATA_NOTE
    if estimate_text(text) > _DOCUMENT_BUDGETS * served.budget:
        text = cut_text(text, _DOCUMENT_BUDGETS * served.budget) + CUT_MARK
        note = f"{note} The document is cut: the tools recall and list_memories find the rest."
    return render_fence([FencedItem(text=text, source=f"{shared}{path}", trust=Trust.AGENT)], note=note)


async def _read_session(served: ServedMemory, session: str) -> str:
    overview = next((each for each in await _list_sessions(served) if each.session == session), None)
    if overview is None:
        raise SessionNotFound(_NO_SESSION)
    page = await served.sessions.read_newest(overview, _SHOWN_MESSAGES)
    if not page.messages:
        return "No message of this session is kept."
    items = [_quote_message(each, overview.session) for each in page.messages]
    # the newest ones are shown if not all of them fit
    shown = fit_page([*reversed(items)], _DOCUMENT_BUDGETS * served.budget).items
    is_whole = len(shown) == len(items) and not page.has_older
    return render_fence([*reversed(shown)], name=SESSION_FENCE, note=DATA_NOTE if is_whole else _OLDER_NOTE)


def _quote_message(message: Message, session: str) -> FencedItem:
    return FencedItem(
        text="\n".join(each.text for each in message_texts(message)),
        source=f"session {session} {format_moment(message.time)}".strip(),
        trust=SESSION_TRUST[message.role],
        kind=message.role,
        id=message.id or None,
    )


async def read_versions(served: ServedMemory) -> Mapping[str, str]:
    """Return the version of each resource that can change, by its URI."""
    versions: dict[str, str] = {}
    for files, topic_prefix in _topic_folders(served):
        if (memory := await files.info(MEMORY_PATH)) is not None:
            versions[_MEMORY] = f"{versions.get(_MEMORY, '')} {memory.size} {memory.modified_ns}"
        for info in await files.list(TOPICS):
            name = info.path.rpartition("/")[2].removesuffix(".md")
            versions[f"{topic_prefix}{quote(name, safe='')}"] = f"{info.size} {info.modified_ns}"
    for info in await served.files.list(f"{WORKSPACE}/agents"):
        if (location := parse_transcript_path(info.path)) is not None:
            versions[f"{_SESSION}{quote(location[1], safe='')}"] = f"{info.size}"
    return versions


def find_changes(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[list[str], bool]:
    """Return the URIs whose versions changed, and whether the list of resources did."""
    changed = [uri for uri in {**before, **after} if before.get(uri) != after.get(uri)]
    return [*changed, *([_PREAMBLE] if changed else [])], before.keys() != after.keys()
