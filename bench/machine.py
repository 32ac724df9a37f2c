"""The machine a run was taken on, and whether it is fit for one."""

import importlib.util
import os
import platform
import shutil
from pathlib import Path
from typing import Any

import psutil

from bench.errors import BenchError

_BUSY_LOAD = 0.5
_CHUNK = bytes(4 * 1024 * 1024)


def describe() -> dict[str, Any]:
    """Return what a reader of the figures must know of this machine."""
    return {
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "memory_bytes": psutil.virtual_memory().total,
        "kernel": platform.release(),
        "python": platform.python_version(),
        "load_average_at_start": os.getloadavg()[0],
        "has_accelerator": has_accelerator(),
    }


def has_accelerator() -> bool:
    """Return whether headrace.records found its C twin, or checks records in Python."""
    return importlib.util.find_spec("headrace.records._scan") is not None


def warnings() -> list[str]:
    """Return what makes figures taken here and now hard to believe."""
    found = []
    load = os.getloadavg()[0]
    if load > _BUSY_LOAD:
        found.append(f"this machine is busy (load average {load:.1f}): the figures will be noisy")
    if not has_accelerator():
        found.append(
            "headrace runs without its C accelerator (headrace.records._scan is not built): "
            "install a C compiler and headrace again"
        )
    return found


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def check_disk(directory: Path, wanted_bytes: int) -> None:
    """Refuse to start a run that could fill the disk."""
    free = shutil.disk_usage(directory).free
    if free < wanted_bytes:
        raise BenchError(
            f"{directory} has {free / 1e9:.0f} GB free and the run needs {wanted_bytes / 1e9:.0f}; "
            "make room or choose another disk with --data-dir"
        )


def touch_page_cache(directory: Path, size: int) -> None:
    """Make the kernel own `size` bytes of page cache before anyone is measured.

    A virtual machine's first write to each page is several times slower than the
    next, which would count against whichever broker runs first.
    """
    size = min(size, psutil.virtual_memory().available // 2)
    path = directory / "touch"
    try:
        with path.open("wb", buffering=0) as file:
            for _ in range(size // len(_CHUNK)):
                file.write(_CHUNK)
    finally:
        path.unlink(missing_ok=True)
    os.sync()
