"""How much memory this process may still take."""

from __future__ import annotations

import math
import os
import sys
from pathlib import Path, PurePosixPath

__all__ = ["free_memory"]

_GROUP_FILES = {  # limit, use, and the line of the statistics that counts files that can be dropped
    "memory.max": ("memory.current", "inactive_file"),
    "memory.limit_in_bytes": ("memory.usage_in_bytes", "total_inactive_file"),
}


def free_memory(root: Path = Path("/")) -> float:
    """Bytes that this process may still take: the least that any limit leaves.

    The limits are the memory of the machine, those of the control groups that the process is in
    (containers), and those that ``ulimit`` sets. Takes a tenth of a millisecond.

    Parameters
    ----------
    root : path
        Of the file system.

    Returns
    -------
    free : float
        Infinity where nothing is known, as on Windows.
    """
    return max(0.0, min(_free_of_machine(root), _free_of_groups(root), _free_of_limits(root)))


def _free_of_machine(root: Path) -> float:
    lines = _read(root / "proc/meminfo").splitlines()
    for line in lines:
        if line.startswith("MemAvailable:"):
            return 1024.0 * int(line.split()[1])
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return math.inf


def _free_of_groups(root: Path) -> float:
    """What is left of the limit of each control group, of version 2 or 1."""
    found = math.inf
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, names, path = line.split(":", 2)
        if names not in ("", "memory"):
            continue
        own = PurePosixPath(path.lstrip("/"))  # a container has its own group as the uppermost
        for folder in {own, *own.parents}:
            found = min(found, _free_of_group(root / "sys/fs/cgroup" / names / folder))
    return found


def _free_of_group(folder: Path) -> float:
    for limit, (use, dropped) in _GROUP_FILES.items():
        most, used = _read(folder / limit).strip(), _read(folder / use).strip()
        if most.isdigit() and used.isdigit():
            lines = (line.split() for line in _read(folder / "memory.stat").splitlines())
            return float(int(most) - int(used) + int(dict(lines).get(dropped, 0)))
    return math.inf


def _free_of_limits(root: Path) -> float:
    """What is left of the address space and of the data of the process."""
    sizes = _read(root / "proc/self/statm").split()
    if sys.platform == "win32" or len(sizes) < 6:
        return math.inf
    import resource

    found = math.inf
    for kind, used in ((resource.RLIMIT_AS, sizes[0]), (resource.RLIMIT_DATA, sizes[5])):
        limit = resource.getrlimit(kind)[0]
        if limit != resource.RLIM_INFINITY:
            found = min(found, float(limit - int(used) * resource.getpagesize()))
    return found


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
