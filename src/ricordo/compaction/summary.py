"""Who writes the summary: a model, or nobody but the rules of the digest.

Invariant: what comes back is a summary of these messages and never an error, whatever the model does. What was said
goes to the model as data in a block that it can't leave.
"""

from collections.abc import Callable, Collection, Sequence
from functools import partial

import anyio
from anyio.to_thread import run_sync

from ricordo.compaction.acceptance import flaw, missing_sections
from ricordo.compaction.config import MESSAGES, CompactionConfig
from ricordo.compaction.contract import Summary
from ricordo.compaction.digest import digest
from ricordo.compaction.plan import measured
from ricordo.compaction.prompts import AGAIN, EARLIER, LIMIT, SUMMARY
from ricordo.compaction.rendering import as_block, batches, rendered
from ricordo.errors import ModelError, ModelOverflow, ReplyInvalid
from ricordo.guard import Quoted, Trust
from ricordo.messages import Message, Text
from ricordo.models import ChatModel, Reply
from ricordo.tokens import estimate_text

__all__ = ["DigestSummary", "ModelSummary"]

_UNKNOWN_WINDOW = 32_000
_LEAST_ROOM = 500
_MOST_BATCHES = 8
_MARGIN = 0.8
_TOO_LONG = 4


class DigestSummary:
    """The summary without a model: the digest."""

    async def __call__(
        self,
        messages: Sequence[Message],
        *,
        limit_tokens: int,
        most_tokens: int | None = None,
        focus: str = "",
        pending: Collection[str] = (),
    ) -> Summary:
        """Return the digest of `messages` in at most `limit_tokens` tokens."""
        return Summary(text=await run_sync(partial(digest, messages, limit_tokens=limit_tokens)))


class ModelSummary:
    """The summary that a model writes; the digest where it can't.

    One request, when the messages fit the model's window; else one for each part, each taking in the extract of the
    parts before. An answer that is no summary is asked for once more.
    """

    def __init__(
        self,
        model: ChatModel,
        config: CompactionConfig | None = None,
        *,
        fell_back: Callable[[str], None] | None = None,
    ) -> None:
        """Ask `model`. `fell_back` is told why, when the digest takes the summary's place."""
        self._model = model
        self._config = config or CompactionConfig()
        self._fell_back = fell_back

    async def __call__(
        self,
        messages: Sequence[Message],
        *,
        limit_tokens: int,
        most_tokens: int | None = None,
        focus: str = "",
        pending: Collection[str] = (),
    ) -> Summary:
        """Return the model's summary of `messages`, else their digest in at most `limit_tokens` tokens."""
        most = max(_TOO_LONG * limit_tokens, sum(measured(messages, 1.0)) // 2)
        items = await run_sync(rendered, messages)
        room = self._room(limit_tokens)
        try:
            try:
                return Summary(text=await self._summed(items, room, limit_tokens, most))
            except ModelOverflow as overflow:
                window = overflow.window or room
                room = max(_LEAST_ROOM, min(room, window) // 2)
                return Summary(text=await self._summed(items, room, limit_tokens, most))
        except (ModelError, TimeoutError) as error:
            if self._fell_back:
                self._fell_back(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)
        return await DigestSummary()(messages, limit_tokens=limit_tokens)

    def _room(self, limit_tokens: int) -> int:
        """What the messages of one request may take beside the prompt, an earlier extract, and the answer."""
        taken = estimate_text(self._prompt) + 2 * limit_tokens
        return max(_LEAST_ROOM, int(((self._model.window or _UNKNOWN_WINDOW) - taken) * _MARGIN))

    @property
    def _prompt(self) -> str:
        return self._config.summary_prompt or SUMMARY

    async def _summed(self, items: Sequence[Quoted], room: int, limit_tokens: int, most: int) -> str:
        extract = ""
        for batch in await run_sync(batches, items, room, _MOST_BATCHES):
            before = [Quoted(text=extract, source=EARLIER, trust=Trust.AGENT)] if extract else []
            extract = await self._asked([*before, *batch], limit_tokens, most)
        return extract

    async def _asked(self, items: Sequence[Quoted], limit_tokens: int, most: int) -> str:
        """Return a summary of `items`, asked for twice at most. Raises `ModelError`, `TimeoutError`."""
        # the block goes in last, so that nothing in it is taken for a place of the prompt
        prompt = self._prompt.replace(LIMIT, str(limit_tokens)).split(MESSAGES)
        asked = as_block(items).join(prompt)
        found = ""
        for _ in range(2):
            text = asked + AGAIN.format(flaw=found) if found else asked
            with anyio.fail_after(self._config.summary_seconds):
                reply = await self._model.complete([Message(role="user", parts=(Text(text=text),))])
            found = self._flaw(reply, most)
            if not found:
                return reply.message.text.strip()
        raise ReplyInvalid(f"The model wrote no summary: {found}.")

    def _flaw(self, reply: Reply, most: int) -> str:
        text = reply.message.text
        if reply.stop in {"refused", "length", "window"}:
            return "it was cut off" if reply.stop != "refused" else "it was refused"
        if found := flaw(text):
            return found
        if self._config.summary_prompt is None and (found := missing_sections(text)):
            return found
        return "it is too long" if estimate_text(text) > most else ""
