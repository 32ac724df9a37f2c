"""A directory of any file system that Hadoop knows, as the sinks use it: `file:`, `hdfs:`, `s3a:`.

Names are relative to the directory, with slashes. A failure is a SinkError in one sentence.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from headrace.errors import SinkError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Entry:
    """One file or directory of a listing."""

    name: str
    is_directory: bool
    size_bytes: int
    modified_ms: int


class HadoopFiles:
    """Not thread-safe. Every call is a round trip to the JVM, so list rather than ask."""

    def __init__(self, spark: "SparkSession", root: str) -> None:
        jvm: Any = spark._jvm
        self._jvm = jvm
        self.root = root.rstrip("/") or "/"
        with self._told("open"):
            path = self._jvm.org.apache.hadoop.fs.Path(self.root)
            self._fs = path.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())
            self._root = self._fs.makeQualified(path)

    def path(self, name: str = "") -> str:
        """The whole name, as Spark takes it."""
        return str(self._path(name).toString())

    def exists(self, name: str = "") -> bool:
        with self._told("look at", name):
            return bool(self._fs.exists(self._path(name)))

    def list(self, name: str = "") -> list[Entry]:
        """What is in a directory, by name; nothing if it is not there."""
        try:
            with self._told("list", name):
                found = self._fs.listStatus(self._path(name))
                entries = [
                    Entry(
                        each.getPath().getName(),
                        each.isDirectory(),
                        each.getLen(),
                        each.getModificationTime(),
                    )
                    for each in found
                ]
        except SinkError:
            if not self.exists(name):
                return []
            raise
        return sorted(entries, key=lambda entry: entry.name)

    def make_directory(self, name: str = "") -> None:
        with self._told("make", name):
            self._fs.mkdirs(self._path(name))

    def read(self, name: str) -> str:
        with self._told("read", name):
            stream = self._fs.open(self._path(name))
            try:
                # py4j hands a byte[] over as bytes.
                return bytes(stream.readAllBytes()).decode()
            finally:
                stream.close()

    def write_whole(self, name: str, text: str) -> None:
        """Write a small file so that nobody ever sees a part of it; it must not be there yet."""
        folder, _, last = name.rpartition("/")
        draft = f"{folder}/_{last}-{uuid4().hex[:8]}"
        with self._told("write", name):
            stream = self._fs.create(self._path(draft), True)
            try:
                stream.write(bytearray(text.encode()))
            finally:
                stream.close()
        if not self.rename(draft, name):
            self.delete(draft)
            raise SinkError(f"{self.path(name)} is there already: does another run write it?")

    def rename(self, name: str, new_name: str) -> bool:
        """Move a file; False if it is not there or the new name is taken."""
        with self._told("rename", name):
            # A local file system would silently replace the target.
            source, target = self._path(name), self._path(new_name)
            if self._fs.exists(target) or not self._fs.exists(source):
                return False
            return bool(self._fs.rename(source, target))

    def delete(self, name: str) -> None:
        """Delete a file or a whole directory, if it is there."""
        with self._told("delete", name):
            self._fs.delete(self._path(name), True)

    def _path(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(self._root, name) if name else self._root

    @contextmanager
    def _told(self, verb: str, name: str = "") -> Iterator[None]:
        from py4j.protocol import Py4JJavaError

        try:
            yield
        except Py4JJavaError as error:
            where = f"{self.root}/{name}" if name else self.root
            raise SinkError(f"cannot {verb} {where}: {_first_line(error)}") from error


def _first_line(error: Any) -> str:
    java = error.java_exception
    kind = java.getClass().getSimpleName()
    return f"{kind}: {str(java.getMessage()).splitlines()[0]}"
