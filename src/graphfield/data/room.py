"""How much memory a table may take: what is free now, and sizes in words."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from graphfield.exceptions import DataError

# Limits of a container: of control groups of version 2 and 1.
_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
_MEMINFO = Path("/proc/meminfo")


def free_memory() -> int:
    """Bytes that this process may still take: what the machine has, or less in a container or under ulimit.

    Where a system tells nothing, as much as can be addressed: nothing is refused by a guess.
    """
    return max(0, min(_machine_memory(), _container_memory(), _address_space()))


def check_room(
    needed: int, what: str, advice: str = "Use fewer rows or columns, or a machine with more memory"
) -> None:
    """Refuse what does not fit in memory, with the arithmetic in ``what``."""
    free = free_memory()
    if needed > free:
        raise DataError(
            "{what} would take {needed} of memory, but {free} are free. {advice}.",
            what=what,
            needed=size_text(needed),
            free=size_text(free),
            advice=advice,
        )


def size_text(size: int) -> str:
    """
    >>> size_text(1_900_000), size_text(4_000_000_000), size_text(12)
    ('1.9 MB', '4.0 GB', '12 bytes')
    """
    for unit, name in ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if size >= unit:
            return f"{size / unit:,.1f} {name}"
    return f"{size} bytes"


def _machine_memory() -> int:
    try:
        lines = _MEMINFO.read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, ValueError, IndexError, StopIteration):
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return sys.maxsize


def _container_memory() -> int:
    """What the limit of the container leaves beside this process; its file cache counts for nothing."""
    for path in _LIMITS:
        try:
            return int(path.read_text()) - _pages_of_process(1)
        except (OSError, ValueError):  # no such file, or "max"
            continue
    return sys.maxsize


def _address_space() -> int:
    try:
        import resource
    except ImportError:  # Windows
        return sys.maxsize
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return sys.maxsize if limit == resource.RLIM_INFINITY else limit - _pages_of_process(0)


def resident_file_pages() -> int:
    """Bytes of files that this process has mapped and that are in memory; 0 where a system tells nothing."""
    return _pages_of_process(2)


def _pages_of_process(field: int) -> int:
    """Bytes of this process: its address space (field 0), what is resident of it (1), of files (2)."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[field]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0
