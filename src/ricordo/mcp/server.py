"""The server: which tools, resources and prompts there are, and how a call becomes an answer or an error.

Invariants: what fails says why and what to do, in Ricordo's own words. A name of a scope is no argument of any tool.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.subscriptions import ListenHandler
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    EmptyResult,
    GetPromptRequestParams,
    GetPromptResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    Prompt,
    PromptArgument,
    PromptMessage,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    SubscribeRequestParams,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
    TextContent,
    TextResourceContents,
    Tool,
    ToolAnnotations,
    UnsubscribeRequestParams,
)
from pydantic import ValidationError

from ricordo.errors import EntryNotFound, RicordoError, RootMoved, RootNotFound
from ricordo.lazy import dataclass
from ricordo.mcp.notifications import ResourceWatch
from ricordo.mcp.pages import decode_cursor, encode_cursor
from ricordo.mcp.prompts import INSTRUCTIONS, PROMPTS, TOOL_DESCRIPTIONS
from ricordo.mcp.root import ServedRoot
from ricordo.mcp.values import (
    CallResult,
    ForgetArguments,
    ForgottenMemories,
    FoundMessages,
    ListArguments,
    MemoryDetails,
    MemoryPage,
    RecallArguments,
    RememberArguments,
    SavedMemory,
    SearchArguments,
    ShowArguments,
    ToolArguments,
    UndoArguments,
    UndoneChange,
    UpdateArguments,
    make_schema,
)

if TYPE_CHECKING:
    from ricordo.mcp.tools import Handler

__all__ = ["MemoryServer"]


_Context = ServerRequestContext[Any, Any]
_PAGE_SIZE: Final = 50


@dataclass(frozen=True, kw_only=True)
class _ToolForm:
    """The types of a tool and what it may change; `creates` says that it makes a root that is not there yet.

    `failure` begins every error, to say what did not happen.
    """

    title: str
    arguments: type[ToolArguments]
    result: type[CallResult]
    writes: bool = False
    destroys: bool = False
    repeatable: bool = True
    creates: bool = False
    failure: str = ""


_TOOLS: Mapping[str, _ToolForm] = {
    "recall": _ToolForm(title="Recall", arguments=RecallArguments, result=MemoryPage),
    "remember": _ToolForm(
        title="Remember", arguments=RememberArguments, result=SavedMemory, writes=True, repeatable=False, creates=True,
        failure="Not stored: ",
    ),
    "list_memories": _ToolForm(title="List memories", arguments=ListArguments, result=MemoryPage),
    "show_memory": _ToolForm(title="Show a memory", arguments=ShowArguments, result=MemoryDetails),
    "update_memory": _ToolForm(
        title="Correct a memory", arguments=UpdateArguments, result=SavedMemory, writes=True, destroys=True
    ),
    "forget": _ToolForm(
        title="Forget memories", arguments=ForgetArguments, result=ForgottenMemories, writes=True, destroys=True
    ),
    "undo": _ToolForm(
        title="Undo a change", arguments=UndoArguments, result=UndoneChange, writes=True, destroys=True,
        repeatable=False,
    ),
    "search_sessions": _ToolForm(title="Search past sessions", arguments=SearchArguments, result=FoundMessages),
}  # fmt: skip
_TEMPLATES = (
    ("ricordo://topics/{name}", "topic", "The memories of one topic, a document of curated memory."),
    ("ricordo://project/topics/{name}", "shared topic", "A topic that everybody in the project shares."),
    ("ricordo://memories/{id}", "memory", "One memory by its id."),
    ("ricordo://sessions/{id}", "session", "The newest messages of a past session."),
)
_NO_ROOT = "Nothing is remembered here yet: the tool remember saves the first memory."


class MemoryServer(Server[Any]):
    """A server of one memory, for any transport. `watch` reports resources that changed."""

    def __init__(self, root: ServedRoot, *, version: str = "") -> None:
        """Serve the memory of `root`, which is opened at the first call; `version` is that of Ricordo."""
        self.root = root
        self.watch = ResourceWatch(root)
        self._stream = ListenHandler(self.watch.bus)
        super().__init__(
            "ricordo",
            version=version,
            title="Ricordo",
            instructions=INSTRUCTIONS,
            on_list_tools=_list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=_list_templates,
            on_read_resource=self._read_resource,
            on_subscribe_resource=self._subscribe,
            on_unsubscribe_resource=self._unsubscribe,
            on_subscriptions_listen=self._listen,
            on_list_prompts=_list_prompts,
            on_get_prompt=_get_prompt,
        )

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        """Return the capabilities for a client of the handshake: the list of resources changes."""
        options = notification_options or NotificationOptions(resources_changed=True)
        return super().create_initialization_options(options, experimental_capabilities, extensions)

    async def _call_tool(self, context: _Context, params: CallToolRequestParams) -> CallToolResult:
        del context
        form = _TOOLS.get(params.name)
        if form is None:
            raise MCPError(INVALID_PARAMS, f"No tool is called {params.name!r}: there are {', '.join(_TOOLS)}.")
        try:
            arguments = form.arguments.model_validate(params.arguments or {})
            served = await self.root.get(create=form.creates)
            answer = await _find_handler(params.name)(served, arguments)
        except ValidationError as error:
            return _refuse(f"{form.failure}{_explain_arguments(params.name, form, error)}")
        except RootNotFound:
            return _answer_without_root(form)
        except RicordoError as error:
            if isinstance(error, RootMoved):
                await self.root.close()
            return _refuse(f"{form.failure}{_explain(error)}")
        if form.writes:
            await self.watch.check()
        return CallToolResult(
            content=[TextContent(type="text", text=answer.text)],
            structured_content=answer.result.model_dump(mode="json"),
        )

    async def _list_resources(self, context: _Context, params: PaginatedRequestParams | None) -> ListResourcesResult:
        from ricordo.mcp.resources import list_resources

        self.watch.add_session(context)
        cursor = (params.cursor if params else None) or ""
        try:
            start = decode_cursor({}, cursor)
            rows = await list_resources(await self.root.get())
        except RootNotFound:
            return ListResourcesResult(resources=[])
        except RicordoError as error:
            raise _refuse_request(error) from error
        first = start if isinstance(start, int) else 0
        resources = [
            Resource(uri=each.uri, name=each.name, description=each.description, mime_type="text/markdown")
            for each in rows[first : first + _PAGE_SIZE]
        ]
        last = first + len(resources)
        return ListResourcesResult(
            resources=resources, next_cursor=encode_cursor({}, last) if last < len(rows) else None
        )

    async def _read_resource(self, context: _Context, params: ReadResourceRequestParams) -> ReadResourceResult:
        from ricordo.mcp.resources import read_resource

        del context
        try:
            text = await read_resource(await self.root.get(), params.uri)
        except RootNotFound:
            text = _NO_ROOT
        except RicordoError as error:
            raise _refuse_request(error, uri=params.uri) from error
        return ReadResourceResult(contents=[TextResourceContents(uri=params.uri, mime_type="text/markdown", text=text)])

    async def _subscribe(self, context: _Context, params: SubscribeRequestParams) -> EmptyResult:
        await self.watch.add_subscription(context, params.uri)
        return EmptyResult()

    async def _listen(self, context: _Context, params: SubscriptionsListenRequestParams) -> SubscriptionsListenResult:
        await self.watch.begin()
        return await self._stream(context, params)

    async def _unsubscribe(self, context: _Context, params: UnsubscribeRequestParams) -> EmptyResult:
        self.watch.remove_subscription(context, params.uri)
        return EmptyResult()


def _find_handler(name: str) -> "Handler":
    from ricordo.mcp.tools import HANDLERS

    return HANDLERS[name]


async def _list_tools(context: _Context, params: PaginatedRequestParams | None) -> ListToolsResult:
    del context, params
    return ListToolsResult(
        tools=[
            Tool(
                name=name,
                title=form.title,
                description=TOOL_DESCRIPTIONS[name],
                input_schema=make_schema(form.arguments),
                output_schema=make_schema(form.result),
                annotations=ToolAnnotations(
                    title=form.title,
                    read_only_hint=not form.writes,
                    destructive_hint=form.destroys,
                    idempotent_hint=form.repeatable,
                    open_world_hint=False,
                ),
            )
            for name, form in _TOOLS.items()
        ]
    )


def _refuse(message: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=message)], is_error=True)


def _refuse_request(error: RicordoError, *, uri: str = "") -> MCPError:
    return MCPError(INVALID_PARAMS, _explain(error), data={"uri": uri} if uri else None)


def _explain(error: RicordoError) -> str:
    """Return the message of an error for a model, which has tools and no commands for ids."""
    if isinstance(error, EntryNotFound):
        return f"{str(error).partition(': `')[0].rstrip('.')}. The tools recall and list_memories return the ids."
    return str(error)


def _explain_arguments(name: str, form: _ToolForm, error: ValidationError) -> str:
    """Return which arguments can't be used and why, and which ones the tool has."""
    known = form.arguments.model_fields
    faults: list[str] = []
    for each in error.errors(include_url=False, include_context=False, include_input=False):
        place = ".".join(map(str, each["loc"]))
        if each["type"] == "extra_forbidden":
            faults.append(f"{name} has no argument {place!r}")
        else:
            faults.append(f"{place}: {each['msg'][:1].lower()}{each['msg'][1:]}")
    return (
        f"{'; '.join(faults)}. Nothing was done. Its arguments are {', '.join(known)}. Whose memory it is was fixed "
        "when the server started."
    )


def _answer_without_root(form: _ToolForm) -> CallToolResult:
    """Return that nothing is remembered yet, as an empty result where a result can be empty."""
    if form.result not in {MemoryPage, FoundMessages}:
        return _refuse(_NO_ROOT)
    empty = (
        MemoryPage(note=_NO_ROOT, memories=[])
        if form.result is MemoryPage
        else FoundMessages(note=_NO_ROOT, messages=[])
    )
    return CallToolResult(
        content=[TextContent(type="text", text=_NO_ROOT)], structured_content=empty.model_dump(mode="json")
    )


async def _list_templates(context: _Context, params: PaginatedRequestParams | None) -> ListResourceTemplatesResult:
    del context, params
    return ListResourceTemplatesResult(
        resource_templates=[
            ResourceTemplate(uri_template=uri, name=name, description=description, mime_type="text/markdown")
            for uri, name, description in _TEMPLATES
        ]
    )


async def _list_prompts(context: _Context, params: PaginatedRequestParams | None) -> ListPromptsResult:
    del context, params
    return ListPromptsResult(
        prompts=[
            Prompt(
                name=name,
                title=each.title,
                description=each.description,
                arguments=[PromptArgument(name=each.argument, description=each.argument_description, required=True)],
            )
            for name, each in PROMPTS.items()
        ]
    )


async def _get_prompt(context: _Context, params: GetPromptRequestParams) -> GetPromptResult:
    del context
    prompt = PROMPTS.get(params.name)
    if prompt is None:
        raise MCPError(INVALID_PARAMS, f"No prompt is called {params.name!r}: there are {', '.join(PROMPTS)}.")
    given = (params.arguments or {}).get(prompt.argument, "").strip()
    if not given:
        raise MCPError(INVALID_PARAMS, f"The prompt {params.name} needs the argument {prompt.argument!r}.")
    message = PromptMessage(role="user", content=TextContent(type="text", text=prompt.text.replace("{}", given)))
    return GetPromptResult(description=prompt.description, messages=[message])
