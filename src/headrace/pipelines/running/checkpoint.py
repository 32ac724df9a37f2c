"""A checkpoint's own note: whose it is, and the id under which sinks know its batches.

`headrace.json` is written before the query first starts. Without it a batch number would mean
nothing to a sink: two checkpoints both have a batch 0.
"""

import hashlib
import json
import re
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.errors import RunError
from headrace.pipelines.definition import Pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NOTE = "headrace.json"
_LOCK = "headrace.lock"
# `file:/path` and `file:///path` are paths; anything else before a colon is Hadoop's business.
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")
Offsets = dict[str, dict[str, int]]  # topic → partition → next offset, as Spark writes them


class Checkpoint:
    """One checkpoint, local or wherever Hadoop's FileSystem reaches."""

    def __init__(self, place: str) -> None:
        self._files: _LocalFiles | _HadoopFiles | None = None
        match = _SCHEME.match(place)
        self.is_local = match is None or match[1] == "file"
        if self.is_local:
            path = Path(re.sub(r"^file:(//(?=/))?", "", place)).absolute()
            self.place = str(path)
            self._files = _LocalFiles(path)
        else:
            self.place = place.rstrip("/")

    def lock_file(self, state_dir: Path) -> Path:
        """Where the lock lies: in the checkpoint, or under its name where files cannot be locked.

        The second keeps out the runs of this machine only.
        """
        if self.is_local:
            return Path(self.place) / _LOCK
        digest = hashlib.sha256(self.place.encode()).hexdigest()[:16]
        return state_dir.absolute() / "locks" / f"{digest}.lock"

    @property
    def is_readable(self) -> bool:
        """Whether it can be read yet."""
        return self._files is not None

    def attach(self, spark: "SparkSession") -> None:
        """Use this session to reach a checkpoint that is not local."""
        if not self.is_local:
            self._files = _HadoopFiles(spark, self.place)

    def claim(self, pipeline: Pipeline) -> str:
        """Return the app id, made if the checkpoint is new; RunError if it is somebody else's."""
        files = self._open_files()
        wanted = {"pipeline": pipeline.name, "source": source_identity(pipeline)}
        text = files.read(_NOTE)
        note = json.loads(text) if text is not None else {}
        is_mine = all(note.get(name) == value for name, value in wanted.items())
        # No batch was ever planned: a run that failed its checks (a misspelt topic) binds nobody.
        if not is_mine and not files.names("offsets"):
            app_id = uuid.uuid4().hex
            files.write(_NOTE, json.dumps({"app_id": app_id, **wanted}))
            return app_id
        if text is None:
            raise RunError(
                f"checkpoint {self.place} was not made by headrace: it has Spark's files but "
                f"no {_NOTE}; choose an empty directory"
            )
        for name, value in wanted.items():
            if note.get(name) != value:
                raise RunError(
                    f"checkpoint {self.place} belongs to {name} {note.get(name)}, not to {value}; "
                    "choose another with --checkpoint or --name, or delete it to begin anew"
                )
        return str(note["app_id"])

    def next_offsets(self) -> Offsets | None:
        """Where the next batch begins; None if none is done yet."""
        files = self._open_files()
        done = {int(name) for name in files.names("commits") if name.isdecimal()}
        if not done:
            return None
        text = files.read(f"offsets/{max(done)}")
        if text is None:
            return None
        # A version, the query's own facts, then one line a source.
        lines = text.splitlines()
        try:
            return dict(json.loads(lines[2]))
        except (IndexError, ValueError):
            return None

    def _open_files(self) -> "_LocalFiles | _HadoopFiles":
        if self._files is None:
            raise RuntimeError(f"checkpoint {self.place} needs a session first")
        return self._files


def source_identity(pipeline: Pipeline) -> str:
    """What must stay the same for offsets to mean the same: the topics, not where it began."""
    topics = getattr(pipeline.source, "topics", ())
    pattern = getattr(pipeline.source, "pattern", None)
    if pattern is not None:
        return f"topics like {pattern}"
    return f"topics {', '.join(sorted(topics))}" if topics else pipeline.source.describe()


class _LocalFiles:
    def __init__(self, root: Path) -> None:
        self._root = root

    def read(self, name: str) -> str | None:
        try:
            return (self._root / name).read_text("utf-8")
        except FileNotFoundError:
            return None

    def write(self, name: str, text: str) -> None:
        path = self._root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.new")
        temporary.write_text(text, "utf-8")
        temporary.replace(path)

    def names(self, directory: str) -> list[str]:
        path = self._root / directory
        return [each.name for each in path.iterdir()] if path.is_dir() else []


class _HadoopFiles:
    def __init__(self, spark: "SparkSession", root: str) -> None:
        java: Any = spark._jvm
        self._java = java
        self._path = java.org.apache.hadoop.fs.Path
        self._root = root
        self._system = self._path(root).getFileSystem(spark._jsc.hadoopConfiguration())

    def read(self, name: str) -> str | None:
        path = self._path(f"{self._root}/{name}")
        if not self._system.exists(path):
            return None
        stream = self._system.open(path)
        try:
            return str(self._java.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def write(self, name: str, text: str) -> None:
        path = self._path(f"{self._root}/{name}")
        temporary = self._path(f"{self._root}/.{name}.new")
        stream = self._system.create(temporary, True)
        stream.write(bytearray(text.encode()))
        stream.close()
        self._system.rename(temporary, path)

    def names(self, directory: str) -> list[str]:
        path = self._path(f"{self._root}/{directory}")
        if not self._system.exists(path):
            return []
        return [str(each.getPath().getName()) for each in self._system.listStatus(path)]
