"""Builds the C load generators with the machine's own compiler, once per source text."""

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from bench.errors import BenchError
from headrace.java.jars import cache_directory

_FLAGS = ("-O2", "-Wall", "-Wextra")
_LIBRARY_FLAGS = ("-shared", "-fPIC")
_HEADERS = ("client.h", "latency.h", "wire.h")


def build(program: str) -> Path:
    """Return the executable made from `program`.c of this package, compiling it if need be."""
    return _build(program, _FLAGS)


def build_library(name: str) -> Path:
    """Return the shared library made from `name`.c of this package, for LD_PRELOAD."""
    return _build(name, (*_FLAGS, *_LIBRARY_FLAGS))


def _build(program: str, flags: tuple[str, ...]) -> Path:
    source = Path(__file__).with_name(f"{program}.c")
    texts = [source.read_bytes(), *(source.with_name(name).read_bytes() for name in _HEADERS)]
    digest = hashlib.sha256(b"\0".join([*texts, " ".join(flags).encode()])).hexdigest()[:16]
    directory = cache_directory() / "bin"
    executable = directory / f"{program}-{digest}"
    if executable.exists():
        return executable
    directory.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=f".{program}-", dir=directory)
    os.close(descriptor)
    try:
        command = [_compiler(), *flags, "-o", name, str(source), "-ldl"]
        answer = subprocess.run(command, capture_output=True, text=True)
        if answer.returncode:
            raise BenchError(f"{' '.join(command)} failed: {answer.stderr.strip()}")
        Path(name).rename(executable)
    finally:
        Path(name).unlink(missing_ok=True)
    return executable


def _compiler() -> str:
    for name in (os.environ.get("CC"), "cc", "gcc", "clang"):
        if name and (path := shutil.which(name)):
            return path
    raise BenchError(
        "the load generators are C programs and there is no C compiler; install one with "
        "'apt-get install gcc libc6-dev' (Debian, Ubuntu) or 'dnf install gcc' (Fedora, RHEL)"
    )
