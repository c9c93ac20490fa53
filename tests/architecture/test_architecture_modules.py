"""Every module says what it is and what it offers, and its name is a word of the field."""

import ast
import importlib
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from ricordo.errors import ExtraMissing
from source_tree import Definition, Module, definitions, modules, repository_files

# Functions that import something when they are called, each with its reason. The command line may do so anywhere: its
# start-up time is felt, and most commands need little.
LAZY_IMPORTS = {
    "ricordo.adapters.openai_agents.RicordoSession._wrap_tool": "the SDK is the extra `openai-agents`",
    "ricordo.adapters.openai_agents.RicordoSession.add_memory": "the SDK is the extra `openai-agents`",
    "ricordo.workspace.history.repetition._said": "only forgetting reads facts and states of sessions",
    "ricordo.hooks.entry._redact": "hooks without the summary of a host need no redactor",
    "ricordo.hooks.places._find_user": "Windows has no such module, and few environments lack the login name",
    "ricordo.hooks.switches._read_table": "most files of settings do not name hooks",
    "ricordo.hooks.worker._is_worked_on": "Windows has no such module, and few hooks start a worker",
    "ricordo.runtime.workspace._open_memory_root": "few people share a memory with a team",
    "ricordo.runtime.workspace._WorkspaceOpener._remove_session": "few sessions have a memory of their own",
    "ricordo.lazy.dataclass": "importing only the package needs no dataclasses",
    "ricordo.lazy._compile_init": "importing only the package needs no dataclasses",
    "ricordo.lazy._compile_method": "importing only the package needs no dataclasses",
    "ricordo.lazy._check_is_open": "importing only the package needs no dataclasses",
    "ricordo.language.packs.PatternTable.find_possible": "reading literals pays for many texts only",
    "ricordo.search.index.WorkspaceIndex._searcher_for": "numpy is loaded by the first search",
    "ricordo.search.index._create_index_embedder": "numpy is loaded by the first search",
    "ricordo.guard._message_redactor": "the redactor takes a hundred patterns, and few messages need one",
    "ricordo.extraction.preprocessing._load_list": "YAML is read only for signal patterns of one's own",
    "ricordo.models.connect._create_provider": "a package of a provider is loaded for its own models only",
    "ricordo.models.embedders.load_embedder": "providers are the extra `models`, and heavy",
    "ricordo.models.embedders.small_models._load_session": "its packages are the extra `minilm`, and heavy",
    "ricordo.models.embedders.small_models._load_multilingual": "its package is the extra `multilingual`, and heavy",
    "ricordo.models.embedders.small_models._load_tokenizer": "its packages are the extra `minilm`",
    "ricordo.models.provider.load_model": "providers are the extra `models`, and heavy",
    "ricordo.models.embedders.static._load_tokenizer": "its packages are the extra `embed`",
    "ricordo.curation.profile.importing._parse_fact_file": "only the folders of another system have front "
    "matter in YAML",
    "ricordo.mcp.notifications.ResourceWatch.check": "the first answer needs nothing of the memory",
    "ricordo.mcp.root._load_handlers": "the first answer needs nothing of the memory",
    "ricordo.mcp.server.MemoryServer._list_resources": "the first answer needs nothing of the memory",
    "ricordo.mcp.server.MemoryServer._read_resource": "the first answer needs nothing of the memory",
    "ricordo.mcp.server._find_handler": "the first answer needs nothing of the memory",
    "ricordo.concurrency.Opening.__aenter__": "trio is imported only where it runs the loop",
    "ricordo.runtime.models._find_factory": "only an unknown name needs a near one",
    "ricordo.runtime.models._list_entry_points": "the standard library reads them with a parser of mail",
    "ricordo.runtime.models.load_reranker": "few processes load a reranker",
    "ricordo.runtime.services.RootServices._maintenance": "most processes consolidate nothing",
    "ricordo.runtime.services.RootServices.flush": "most processes extract nothing",
    "ricordo.runtime.services.RootServices.profiles": "most processes read no profile",
    "ricordo.runtime.services.create_inbox": "the sessions are listed only for an inbox that was lost",
    "ricordo.runtime.services.create_inbox.recover_jobs": "the sessions are listed only for an inbox that was lost",
    "ricordo.runtime.workspace._WorkspaceOpener._migrate_to_users": "a root of an older layout is migrated once",
    "ricordo.runtime.workspace._WorkspaceOpener.open_states": "only agents have states of sessions",
    "ricordo.runtime.workspace.inspect_root": "few processes check a root",
    "ricordo.runtime.workspace.scratch_files": "only an agent without a folder has them",
    "ricordo.runtime.settings.Settings.signal_detector": "only extraction needs the patterns of signals",
    "ricordo.runtime.workspace._guard_embedder": "most processes have no embedder",
    "ricordo.runtime.workspace._guard_reranker": "most processes have no reranker",
    "ricordo.search.chunking.chunk_profile": "only a profile has facts",
    "ricordo.search.index.WorkspaceIndex._scanner": "most processes scan no file",
    "ricordo.search.index.WorkspaceIndex.beside": "few searches want neighbours",
    "ricordo.search.index.WorkspaceIndex.search": "most processes scan no file",
    "ricordo.search.said._with_statements": "few hits are statements of sessions",
    "ricordo.search.said.is_statement": "few hits are statements of sessions",
    "ricordo.search.recall.attach_neighbours": "few searches want neighbours",
    "ricordo.search.recall.select_best": "numpy is loaded by the first search",
    "ricordo.search.segments.CorpusSearcher.missing_vectors": "only an embedder needs vectors",
    "ricordo.stores.layered.LayeredDriver._forget_everywhere": "few processes forget",
    "ricordo.stores.root_reader.read_facts": "only a profile has facts",
    "ricordo.workspace.history.erase._find_fact_versions": "only a profile has facts",
    "ricordo.stores.root_reader.RootSessions.close": "only agents close sessions",
    "ricordo.workspace.history.change_sets._revert_lines": "few processes undo",
    "ricordo.workspace.history.change_sets._revert_profile": "few processes undo",
    "ricordo.workspace.history.checks._find_broken_records": "few processes check profiles",
    "ricordo.workspace.history.repetition.mask_session": "few processes forget",
    "ricordo.messages.tokens.estimate._load_tokenizer": "the tokenizer is the extra `tokens`; without it the "
    "estimate is used",
}

_POOR_NAMES = re.compile(
    r"(^|_)(utils?|helpers?|managers?|misc|common|stuff)(_|$)|^base_|(_v\d+|[a-z]2)$", re.IGNORECASE
)
_POOR_CLASS_NAMES = re.compile(r"(Utils?|Helpers?|Manager|Misc)$|^(My|The)[A-Z]|V\d+$")
_UNFINISHED = re.compile(r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK")) + r")\b")


def _ids(module: Module) -> str:
    return module.name


@pytest.mark.parametrize("module", modules(), ids=_ids)
def test_a_module_has_a_docstring_and_lists_names_that_exist(module: Module) -> None:
    assert ast.get_docstring(module.tree), "no docstring"
    try:
        loaded = importlib.import_module(module.name)
    except ExtraMissing as missing:
        assert module.name.startswith("ricordo.adapters.")
        pytest.skip(str(missing))
    names = getattr(loaded, "__all__", None)
    assert isinstance(names, list), "no __all__"
    assert [name for name in names if not _has(loaded, name)] == []
    assert len(names) == len(set(names))


def _has(module: ModuleType, name: str) -> bool:
    try:
        return hasattr(module, name)
    except ExtraMissing:
        # it is there, and its framework is not installed here
        return True


def test_every_public_class_and_function_has_a_docstring() -> None:
    assert sorted(_undocumented()) == []


def _undocumented() -> Iterator[str]:
    for module in modules():
        for name, node in definitions(module):
            parts = name.split(".")
            if not any(part.startswith("_") for part in parts) and not _is_exempt(module, parts, node):
                yield f"{module.name}.{name}"


def _is_exempt(module: Module, parts: list[str], node: Definition) -> bool:
    """A documented definition, a local function, an overload, and a method whose contract is documented elsewhere."""
    if ast.get_docstring(node):
        return True
    owners = [found for name, found in definitions(module) if name == ".".join(parts[:-1])]
    if any(not isinstance(owner, ast.ClassDef) for owner in owners):
        return True
    decorators = {ast.unparse(decorator) for decorator in node.decorator_list}
    return bool(decorators & {"overload", "override"}) or any(name.endswith(".setter") for name in decorators)


def test_names_are_words_of_the_field() -> None:
    poor = [module.name for module in modules() if any(_POOR_NAMES.search(part) for part in module.name.split("."))]
    poor += [
        f"{module.name}.{name}"
        for module in modules()
        for name, node in definitions(module)
        if isinstance(node, ast.ClassDef) and _POOR_CLASS_NAMES.search(node.name)
    ]
    assert poor == []


def test_nothing_is_left_unfinished_in_a_comment() -> None:
    sources = [path for path in repository_files() if path.suffix == ".py"]
    assert [
        f"{path.name}: {comment}"
        for path in sources
        for comment in _suspect_comments(path)
        if _UNFINISHED.search(comment)
    ] == []


def _suspect_comments(path: Path) -> list[str]:
    """Return the comments of a file that says such a word anywhere: to take all apart takes seconds."""
    text = path.read_text(encoding="utf-8")
    if not _UNFINISHED.search(text):
        return []
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return [token.string for token in tokens if token.type == tokenize.COMMENT]


def test_imports_stand_at_the_top_except_where_a_reason_is_written_down() -> None:
    lazy = {
        f"{module.name}.{name}"
        for module in modules()
        if module.room != "cli"
        for name, node in definitions(module)
        if not isinstance(node, ast.ClassDef)
        and any(isinstance(inner, ast.Import | ast.ImportFrom) for inner in ast.walk(node))
    }
    assert lazy == set(LAZY_IMPORTS)


def test_a_private_name_stays_in_its_file() -> None:
    taken = [
        f"{module.name} takes {imported.name} from {node.module}"
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ricordo")
        for imported in node.names
        if imported.name.startswith("_") and imported.name != "__version__"
    ]
    assert taken == []


def test_rooms_import_each_other_and_never_the_package_as_a_whole() -> None:
    names = {module.name for module in modules()}
    whole = [
        f"{module.name} takes {imported.name}"
        for module in modules()
        if module.room not in {"", "cli"}
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ImportFrom) and node.module == "ricordo"
        for imported in node.names
        if f"ricordo.{imported.name}" not in names
    ]
    assert whole == []


def test_below_the_command_line_only_settings_read_the_environment_and_the_shell_hands_it_on() -> None:
    reading = {
        module.name
        for module in modules()
        if module.room != "cli"
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Attribute) and ast.unparse(node) in {"os.environ", "os.getenv"}
    }
    assert reading == {"ricordo.runtime.settings", "ricordo.agent.tools.shell"}
