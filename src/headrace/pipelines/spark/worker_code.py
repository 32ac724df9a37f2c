"""The part of this package that Spark's workers import, as one zip for those far away.

A worker runs decoders and explains bad records; it sees no broker, no command line and nothing
compiled. The zip's name has a digest of its content, so an old one is never taken for a new one.
"""

import hashlib
import io
import os
import zipfile
from pathlib import Path

import headrace
from headrace.java.jars import cache_directory

_FOLDERS = ("client", "java", "pipelines")  # and what they stand on: the modules beside them
# Entries get one date, so that the same code makes the same bytes. Zip knows no earlier one.
_DATE = (1980, 1, 1, 0, 0, 0)


def worker_zip() -> Path:
    """Return the path of the zip, written unless it is there."""
    content = _zipped(Path(headrace.__file__).parent)
    digest = hashlib.sha256(content).hexdigest()[:16]
    path = cache_directory() / "workers" / f"headrace-{digest}.zip"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(f".{os.getpid()}")
        temporary.write_bytes(content)
        temporary.rename(path)
    return path


def _zipped(package: Path) -> bytes:
    files = [*package.glob("*.py")]
    for folder in _FOLDERS:
        files += (file for file in package.joinpath(folder).rglob("*") if file.suffix != ".pyc")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(filter(Path.is_file, files)):
            name = (Path(package.name) / file.relative_to(package)).as_posix()
            archive.writestr(zipfile.ZipInfo(name, _DATE), file.read_bytes())
    return buffer.getvalue()
