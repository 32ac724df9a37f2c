"""A directory of any file system that Hadoop knows, as pipelines use it: `file:`, `hdfs:`, `s3a:`.

Names are relative to the directory, with slashes. A failure is a SinkError in one sentence, also
where Hadoop says no more than `false`, as `rename`, `delete` and `mkdirs` do.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from headrace.pipelines.errors import SinkError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NO_REASON = "the file system refuses and gives no reason; may this user write there?"


class TakenError(SinkError):
    """A file that was to be new is there already."""


@dataclass(frozen=True, slots=True)
class FileStatus:
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
        self._spark = spark
        self.root = root.rstrip("/") or "/"
        with self._told("open"):
            path = self._jvm.org.apache.hadoop.fs.Path(self.root)
            self._conf = spark._jsparkSession.sessionState().newHadoopConf()
            self._fs = path.getFileSystem(self._conf)
            self._root = self._fs.makeQualified(path)
            self._is_local = self._root.toUri().getScheme() == "file"

    def path(self, name: str = "") -> str:
        """The whole name, as Spark takes it."""
        return str(self._path(name).toString())

    def exists(self, name: str = "") -> bool:
        with self._told("look at", name):
            return bool(self._fs.exists(self._path(name)))

    def list(self, name: str = "") -> list[FileStatus]:
        """What is in a directory, by name; nothing if it is not there."""
        try:
            with self._told("list", name):
                found = self._fs.listStatus(self._path(name))
                entries = [
                    FileStatus(
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

    def names(self, directory: str) -> Sequence[str]:
        """The names of what is in a directory."""
        return [each.name for each in self.list(directory)]

    def statuses(self, names: Iterable[str]) -> Any:
        """What is known of these files, as Java's own libraries take it."""
        found = self._jvm.java.util.ArrayList()
        for name in names:
            with self._told("look at", name):
                found.add(self._fs.getFileStatus(self._path(name)))
        return found

    def configuration(self, more: Mapping[str, str]) -> Any:
        """How this file system is reached, for Java's own libraries."""
        configuration = self._jvm.org.apache.hadoop.conf.Configuration(self._conf)
        for name, value in more.items():
            configuration.set(name, value)
        return configuration

    def make_directory(self, name: str = "") -> None:
        """Make it with all above it, if it is not there."""
        with self._told("make", name):
            if self._fs.mkdirs(self._path(name)):
                return
        raise self._refused("make", name)

    def read(self, name: str) -> str:
        with self._told("read", name):
            stream = self._fs.open(self._path(name))
            try:
                # py4j hands a byte[] over as bytes.
                return bytes(stream.readAllBytes()).decode()
            finally:
                stream.close()

    def read_if_there(self, name: str) -> str | None:
        return self.read(name) if self.exists(name) else None

    def write_whole(self, name: str, text: str) -> None:
        """Write a small file so that nobody ever sees a part of it; TakenError if it is there."""
        draft = self._draft(name, text)
        if not (self._link(draft, name) or self.rename(draft, name)):
            self.delete(draft)
            raise TakenError(f"{self.path(name)} is there already: does another run write it?")

    def write_over(self, name: str, text: str) -> None:
        """Write a small file whole, in the place of the one that is there, if there is one."""
        draft = self._draft(name, text)
        if self.rename(draft, name):
            return
        with self._told("write", name):
            # Hadoop's FileSystem cannot rename over a file; its FileContext can, in one step.
            kind = getattr(self._jvm.org.apache.hadoop.fs, "Options$Rename")
            gateway: Any = self._spark.sparkContext._gateway
            overwrite = gateway.new_array(kind, 1)
            overwrite[0] = kind.OVERWRITE
            context = self._jvm.org.apache.hadoop.fs.FileContext.getFileContext(
                self._root.toUri(), self._conf
            )
            context.rename(self._path(draft), self._path(name), overwrite)

    def rename(self, name: str, new_name: str) -> bool:
        """Move a file; False if it is not there or the new name is taken."""
        source, target = self._path(name), self._path(new_name)
        try:
            with self._told("rename", name):
                # A local file system would silently replace the target.
                if self._fs.exists(target) or not self._fs.exists(source):
                    return False
                if self._fs.rename(source, target):
                    return True
        except SinkError:
            # Another may have been quicker; some file systems raise then, others say false.
            if not self.exists(new_name) and self.exists(name):
                raise
            return False
        if not self.exists(new_name) and self.exists(name):
            raise self._refused("rename", name)
        return False

    def move(self, name: str, target: str) -> None:
        """Give something another name, in a directory that is made; nothing if it is not there."""
        self.make_directory(target.rpartition("/")[0])
        self.rename(name, target)

    def delete(self, name: str) -> None:
        """Delete a file or a whole directory, if it is there."""
        with self._told("delete", name):
            # False is also what a file that was not there gives.
            is_deleted = self._fs.delete(self._path(name), True)
            if is_deleted or not self._fs.exists(self._path(name)):
                return
        raise self._refused("delete", name)

    def _draft(self, name: str, text: str) -> str:
        folder, _, last = name.rpartition("/")
        draft = f"{folder}/_{last}-{uuid4().hex[:8]}".lstrip("/")
        with self._told("write", name):
            stream = self._fs.create(self._path(draft), True)
            try:
                stream.write(bytearray(text.encode()))
            finally:
                stream.close()
        return draft

    def _link(self, draft: str, name: str) -> bool:
        """Give a local file its name, unless that is taken: there, a rename would replace it."""
        if not self._is_local:
            return False
        try:
            os.link(self._local(draft), self._local(name))
        except OSError:
            return False  # taken, or no file system for links: `rename` looks first
        self.delete(draft)
        return True

    def _local(self, name: str) -> str:
        return str(self._path(name).toUri().getPath())

    def _path(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(self._root, name) if name else self._root

    def _where(self, name: str) -> str:
        return f"{self.root}/{name}" if name else self.root

    def _refused(self, verb: str, name: str) -> SinkError:
        return SinkError(f"cannot {verb} {self._where(name)}: {_NO_REASON}")

    @contextmanager
    def _told(self, verb: str, name: str = "") -> Iterator[None]:
        from py4j.protocol import Py4JJavaError

        try:
            yield
        except Py4JJavaError as error:
            raise SinkError(f"cannot {verb} {self._where(name)}: {_first_line(error)}") from error


def _first_line(error: Any) -> str:
    java = error.java_exception
    kind = java.getClass().getSimpleName()
    return f"{kind}: {str(java.getMessage()).splitlines()[0]}"
