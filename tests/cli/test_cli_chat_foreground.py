"""Signals while a chat runs on a loop beside the main thread."""

import os
import signal
import threading

import anyio

from ricordo.cli.chat_terminal import MainThreadRunner


def test_a_signal_that_ended_a_chat_does_not_stop_what_the_chat_does_at_its_end() -> None:
    foreground, pause = MainThreadRunner(), threading.Event().wait

    async def work() -> bool:
        os.kill(os.getpid(), signal.SIGTERM)
        while not foreground.end_signal:
            pause(0.001)
        # the loop goes on only when the main thread has told it all that it had to tell
        pause(0.01)
        with foreground.cancel_on_signal() as scope:
            await anyio.sleep(0.01)
        return scope.cancelled_caught

    assert foreground.run(work) is False
    assert foreground.end_signal == signal.SIGTERM
