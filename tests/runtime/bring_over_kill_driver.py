"""A process that opens a root from before users had places of their own, and is killed at a step on the disk.

`bring_over_kill_driver.py <root> <step>` kills itself in the middle of that step.
"""

import sys
from pathlib import Path

import anyio

from disks import KillingDisk
from ricordo import Memory, Scope


async def main(root: Path, step: int) -> None:
    async with Memory.open(root, scope=Scope(user="ann", project="shop"), disk=KillingDisk(step, halves=True)):
        pass


anyio.run(main, Path(sys.argv[1]), int(sys.argv[2]))
