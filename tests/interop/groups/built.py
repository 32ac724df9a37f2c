"""The members that are not Python: built, or their packages fetched, once, outside the repository.

The directory's name holds a digest of the sources, so a changed program is built anew.
"""

import functools
import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from headrace.java.jars import cache_directory

HERE = Path(__file__).parent
_BUILD_S = 600


@functools.cache
def go_member() -> Path | str:
    """The franz-go member, or the sentence that says why there is none."""
    go = shutil.which("go") or shutil.which("/usr/local/go/bin/go")
    if go is None:
        return "Go is not installed: franz-go is not tested"
    sources = [HERE / "go" / name for name in ("go.mod", "go.sum", "main.go", "answers.go")]
    directory = _directory("go", sources)
    program = directory / "member"
    command = [go, "build", "-mod=readonly", "-o", str(program), "."]
    return _made(program, command, cwd=HERE / "go")


@functools.cache
def kafkajs_packages() -> Path | str:
    """The directory for NODE_PATH, or the sentence that says why there is none."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        return "node or npm is not installed: KafkaJS is not tested"
    manifest = HERE / "node" / "package.json"
    directory = _directory("node", [manifest])
    shutil.copy(manifest, directory)
    packages = directory / "node_modules"
    command = [npm, "install", "--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts"]
    return _made(packages, command, cwd=directory)


def members_directory() -> Path:
    """Where all that is made for members is kept."""
    directory = cache_directory() / "members"
    directory.mkdir(parents=True, exist_ok=True)
    return directory


def _directory(kind: str, sources: list[Path]) -> Path:
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]
    directory = members_directory() / f"{kind}-{digest}"
    directory.mkdir(exist_ok=True)
    return directory


def _made(product: Path, command: list[str], *, cwd: Path) -> Path | str:
    if not product.exists():
        try:
            answer = subprocess.run(
                command, cwd=cwd, env=os.environ, capture_output=True, text=True, timeout=_BUILD_S
            )
        except subprocess.TimeoutExpired:
            return f"{command[0]} {command[1]} took over {_BUILD_S} s"
        if answer.returncode:
            return f"{command[0]} {command[1]} failed: {answer.stderr.strip()}"
    return product
