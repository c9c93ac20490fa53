"""What stands in a session, held in mind, by somebody whose disk can be full."""

from collections.abc import Callable

from ricordo.errors import StorageFull
from ricordo.state import Standing

__all__ = ["HeldStanding"]


class HeldStanding:
    """Keeps what stands; while `is_full` it keeps nothing new, and says so as a disk does."""

    def __init__(self, standing: Standing | None = None) -> None:
        self.standing = standing or Standing()
        self.is_full = False
        self.kept = 0

    async def stand(self, change: Callable[[Standing], Standing]) -> Standing:
        changed = change(self.standing)
        if self.is_full:
            raise StorageFull
        self.kept += 1
        self.standing = changed
        return changed
