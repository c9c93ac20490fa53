"""What a session's prompt shows of the profile, and what of it changed since.

The block is the same for every session of an unchanged profile, so it is not chosen by what is asked; in a message of
the session's own it is.
"""

import logging
from functools import partial
from typing import TYPE_CHECKING

from anyio.to_thread import run_sync

from ricordo.errors import RicordoError
from ricordo.guard import Redactor, Trust
from ricordo.middleware.update import MemoryLine
from ricordo.profile.contract import ProfileStore
from ricordo.profile.injection import InjectionConfig
from ricordo.profile.rendering import list_statements, render_profile
from ricordo.runtime.agent_options import AgentOptions
from ricordo.runtime.agent_store import AgentStore
from ricordo.runtime.assembly import Workspace
from ricordo.tokens import Tokens

if TYPE_CHECKING:
    from ricordo.workspace.profile import Profile

__all__ = ["ProfileView", "create_profile_view"]

_LOG = logging.getLogger("ricordo.agent")
_PROFILE_UNREADABLE = "What is known of the user can't be read at the moment."
_PROFILE_SOURCE = "the profile"


def create_profile_view(
    options: AgentOptions, config: InjectionConfig | None, workspace: Workspace | None, memory: AgentStore
) -> "ProfileView | None":
    """Return what an agent is shown of the profile; None where that or memory is off, or memory is none of a root."""
    shows = options.memory_tools or options.memory_hooks
    if config is None or not shows or workspace is None or not memory.is_own:
        return None
    return ProfileView(workspace.profiles.open_store(options.scope), config, workspace.memory_root.redactor)


class ProfileView:
    """Shows the profile that `store` keeps as `config` says."""

    def __init__(self, store: ProfileStore, config: InjectionConfig, redactor: Redactor) -> None:
        """Begin with nothing read. `redactor` takes out the secrets that people wrote into it."""
        self._redactor = redactor
        self._store = store
        self._config = config
        self._profile: Profile | None = None
        self._lines: dict[MemoryLine, str] = {}

    @property
    def is_in_prompt(self) -> bool:
        """Whether it stands in the system prompt, and not in a message."""
        return self._config.placement == "system"

    async def render(self, room: int, query: str | None = None) -> str:
        """Return the block in at most `room` tokens; empty when nothing is known, and a word where it can't be read."""
        try:
            profile = await self._store.load()
        except RicordoError as error:
            _LOG.warning("The profile can't be read for the prompt: %s", error)
            return _PROFILE_UNREADABLE if room > len(_PROFILE_UNREADABLE) else ""
        render = partial(render_profile, profile, budget=Tokens(room), query=query, config=self._config)
        return self._redactor.clean((await run_sync(render)).text)

    async def load_lines(self) -> tuple[MemoryLine, ...]:
        """Return all that is known, line by line; what was read last where it can't be read."""
        try:
            profile = await self._store.load()
        except RicordoError as error:
            _LOG.debug("The profile can't be read for an update: %s", error)
            return tuple(self._lines)
        if profile != self._profile:
            self._profile = profile
            self._lines = {
                MemoryLine(text=self._redactor.clean(text), source=_PROFILE_SOURCE, trust=Trust.AGENT.value): thread
                for text, thread in list_statements(profile)
            }
        return tuple(self._lines)

    def was_learned_in(self, line: MemoryLine, session: str) -> bool:
        """Tell whether a line was learned from what was said in `session`, where it is known already."""
        return self._lines.get(line) == session

    async def is_in_profile(self, line: MemoryLine) -> bool | None:
        """Tell whether the profile still says what a line does; None for a line of something else."""
        if line.source != _PROFILE_SOURCE:
            return None
        return any(line.normalized_text == each.normalized_text for each in await self.load_lines())
