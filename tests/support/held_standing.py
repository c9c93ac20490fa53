"""What stands in a session, held in mind, by somebody whose disk can be full."""

from collections.abc import Callable

from ricordo.errors import StorageFull
from ricordo.workspace import WorkState

__all__ = ["HeldStanding"]


class HeldStanding:
    """Keeps what stands; while `is_full` it keeps nothing new, and says so as a disk does."""

    def __init__(self, standing: WorkState | None = None) -> None:
        self.work_state = standing or WorkState()
        self.is_full = False
        self.kept = 0

    async def update_work_state(self, change: Callable[[WorkState], WorkState]) -> WorkState:
        changed = change(self.work_state)
        if self.is_full:
            raise StorageFull
        self.kept += 1
        self.work_state = changed
        return changed
