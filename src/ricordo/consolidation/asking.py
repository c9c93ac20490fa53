"""Asking a model how memory is to be put in order: proposals, never a file.

Invariant: whatever the model does, a run ends. Trouble with the model leaves it to the rules and says so; an answer of
no use, also the second time, is told from that by its flaw. Nothing is written and no lock is held meanwhile.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

import anyio
from anyio.to_thread import run_sync

from ricordo.consolidation.answer import ADVICE_SCHEMA, parse_advice
from ricordo.consolidation.config import ConsolidationConfig
from ricordo.consolidation.plan import ConsolidationInput
from ricordo.consolidation.request import AdviceRequest, build_requests
from ricordo.consolidation.types import Advice, AdviceCost
from ricordo.errors import ModelError, ModelOverflow, ModelTimeout, ReplyInvalid
from ricordo.messages import Message, Text
from ricordo.models import ChatModel, Reply

__all__ = ["Adviser", "ModelAdviser", "rules_only_note"]

_MAX_REQUESTS = 12
_MAX_SHRINKS = 3
_TOO_MUCH = "there was too much for so many requests"

Pause = Callable[[], Awaitable[object]]


class Adviser(Protocol):
    """Gives advice on material; calls `pause` before each step."""

    async def __call__(self, material: ConsolidationInput, pause: Pause) -> Advice:
        """Return the advice. Nothing is raised for what a model does."""
        ...


def rules_only_note(why: str) -> str:
    """Return the note for a run in which no model had a say."""
    return f"the rules decided: {why}"


@dataclass(frozen=True, kw_only=True)
class ModelAdviser:
    """Asks `model`."""

    model: ChatModel
    config: ConsolidationConfig

    async def __call__(self, material: ConsolidationInput, pause: Pause) -> Advice:
        """Return the advice on `material`: without any where nothing is new, where the model fails, with a flaw."""
        config, cost = self.config, AdviceCost()
        for _ in range(_MAX_SHRINKS):
            requests = await run_sync(partial(build_requests, material, config, window=self.model.window))
            advice = Advice(cost=cost)
            try:
                for request in requests[:_MAX_REQUESTS]:
                    await pause()
                    told = await self._ask_with_retry(request)
                    advice += told
                    cost = advice.cost
                    if told.flaw:
                        return Advice(flaw=told.flaw, cost=cost)
            except ModelOverflow as error:
                most = min(error.window or config.max_input_tokens, config.max_input_tokens)
                smaller = max(config.min_tokens, most // 2)
                if smaller == config.max_input_tokens:
                    break
                config = replace(config, max_input_tokens=smaller)
            except ModelError as error:
                return Advice(note=rules_only_note(type(error).__name__), cost=cost)
            else:
                left = len(requests) > _MAX_REQUESTS
                return replace(advice, note=rules_only_note(_TOO_MUCH) if left else "")
        return Advice(note=rules_only_note(ModelOverflow.__name__), cost=cost)

    async def _ask_with_retry(self, request: AdviceRequest) -> Advice:
        """Ask, and once more when the answer is of no use. Raises `ModelError`."""
        advice = await self._ask(request)
        if not advice.flaw:
            return advice
        again = await self._ask(request.with_flaw(advice.flaw))
        return replace(again, cost=advice.cost + again.cost)

    async def _ask(self, request: AdviceRequest) -> Advice:
        asked = [Message(role="user", parts=(Text(text=request.text),))]
        reply: Reply | None = None
        try:
            with anyio.fail_after(self.config.seconds):
                reply = await self.model.complete(asked, schema=ADVICE_SCHEMA)
        except TimeoutError as error:
            raise ModelTimeout("The model did not answer in time.") from error
        except ReplyInvalid as error:
            said, parsed, cost = error.said, None, AdviceCost(requests=1, dollars=None)
        else:
            tokens = reply.usage.input + reply.usage.output
            said, parsed = reply.message.text, reply.parsed
            cost = AdviceCost(requests=1, tokens=tokens, dollars=reply.cost)
        read = partial(parse_advice, said, parsed, standing=request.standing, shown=request.shown, config=self.config)
        return replace(await run_sync(read), cost=cost)
