"""A checkpoint: Spark's files, and our note of whose they are.

`headrace.json` is written before the query first starts: the id under which sinks know the run's
batches, the pipeline, its sinks, and the logs that the offsets are of (`source_logs.py`).
"""

import contextlib
import hashlib
import json
import re
import uuid
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.client.librdkafka import Partition
from headrace.pipelines.definition import Pipeline
from headrace.pipelines.errors import RunError
from headrace.pipelines.hadoop_files import HadoopFiles

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NOTE = "headrace.json"
_LOCK = "headrace.lock"
# `file:/path` and `file:///path` are paths; anything else before a colon is Hadoop's business.
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")
# Where Spark keeps the first offsets of its only source.
_FIRST_OFFSETS = "sources/0/0"
# All that Spark keeps of a query's position; without commits the rest counts as not done.
_SPARKS_OWN = ("commits", "offsets", "sources", "metadata", "state")
_GO_ON_AT = "go_on_at"
_IS_MOVING = "is_setting_aside"

Offsets = dict[str, dict[str, int]]  # topic → partition → next offset, as Spark writes them


class Checkpoint:
    """One checkpoint, local or wherever Hadoop's FileSystem reaches."""

    def __init__(self, place: str) -> None:
        self._files: _LocalFiles | HadoopFiles | None = None
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
            self._files = HadoopFiles(spark, self.place)

    @property
    def facts(self) -> dict[str, Any]:
        """What the note says; nothing if there is none."""
        text = self._open_files().read_if_there(_NOTE)
        try:
            facts = json.loads(text) if text is not None else {}
        except ValueError:
            facts = None
        if not isinstance(facts, dict):
            raise RunError(
                f"{self.place}/{_NOTE} cannot be read: it is not what headrace wrote; put back a "
                "copy of the checkpoint, or choose another with --checkpoint or --name"
            )
        return facts

    def add_facts(self, facts: Mapping[str, object]) -> None:
        """Say more in the note."""
        known = self.facts
        if (more := {**known, **facts}) != known:
            self._open_files().write_over(_NOTE, json.dumps(more))

    def claim(self, pipeline: Pipeline, *, may_change_sinks: bool = False) -> str:
        """Return the app id, made if the checkpoint is new; RunError if it is somebody else's."""
        files = self._open_files()
        wanted: dict[str, Any] = {
            "pipeline": pipeline.name,
            "source": source_identity(pipeline),
            "sinks": sorted(sink.identity() for sink in pipeline.sinks),
        }
        note = self.facts
        note.setdefault("sinks", wanted["sinks"])  # written before sinks were noted
        is_mine = all(note.get(name) == value for name, value in wanted.items())
        # No batch was ever planned: a run that failed its checks (a misspelt topic) binds nobody.
        # One that was set aside to begin anew has read, and its note says where it goes on.
        if not is_mine and not self.is_begun and _GO_ON_AT not in note:
            app_id = uuid.uuid4().hex
            files.write_over(_NOTE, json.dumps({"app_id": app_id, **wanted}))
            return app_id
        if "app_id" not in note:
            raise RunError(
                f"checkpoint {self.place} was not made by headrace: it has Spark's files but "
                f"no {_NOTE}; choose an empty directory"
            )
        for name in ("pipeline", "source"):
            if note.get(name) != wanted[name]:
                raise RunError(
                    f"checkpoint {self.place} belongs to {name} {note.get(name)}, not to "
                    f"{wanted[name]}; choose another with --checkpoint or --name, or delete it to "
                    "begin anew"
                )
        # Where no batch was done, other sinks lack nothing: they get it all.
        has_read = _GO_ON_AT in note or bool(files.names("commits"))
        if note["sinks"] != wanted["sinks"] and has_read and not may_change_sinks:
            raise RunError(
                f"the runs of checkpoint {self.place} wrote to {_listed(note['sinks'])}, and this "
                f"one writes to {_listed(wanted['sinks'])}, which would lack all that was read so "
                "far; choose another --name or --checkpoint, or say --new-sinks if they are to "
                "have only what comes from now on"
            )
        self.add_facts(wanted)
        return str(note["app_id"])

    @property
    def is_begun(self) -> bool:
        """Whether Spark goes on from here, rather than from where a source says."""
        return bool(self._open_files().names("offsets")) or self.first_offsets() is not None

    def next_offsets(self) -> Offsets | None:
        """Where the next batch begins; None if that is for the source to say."""
        done = {int(name) for name in self._open_files().names("commits") if name.isdecimal()}
        if done and f"{max(done)}" not in self._open_files().names("offsets"):
            raise RunError(
                f"checkpoint {self.place} has commits/{max(done)} and no offsets/{max(done)}; put "
                "back a copy of it, or delete its commits/ too: the run then reads again what "
                "sinks know they have"
            )
        return self._offsets(max(done)) if done else self.first_offsets()

    def ranges(self, number: int) -> dict[Partition, tuple[int, int]] | None:
        """The offsets of a batch that Spark has planned; None if they are not those of topics."""
        ends = self._offsets(number)
        if ends is None:
            return None
        starts = self._offsets(number - 1) if number else self.first_offsets()
        if starts is None:
            raise RunError(
                f"checkpoint {self.place} does not say where batch {number} begins: "
                f"{f'offsets/{number - 1}' if number else _FIRST_OFFSETS} is missing; put back a "
                "copy of the checkpoint, or choose another with --checkpoint or --name"
            )
        # A partition that was not there before is read from its beginning.
        return {
            (topic, int(partition)): (starts.get(topic, {}).get(partition, 0), end)
            for topic, partitions in ends.items()
            for partition, end in partitions.items()
        }

    def set_aside(self, kept: Collection[str] = ()) -> str:
        """Put Spark's files out of its way, so that it begins anew; return where they are.

        The topics in `kept` go on where they were, and that is noted first: whoever was
        interrupted does it again.
        """
        facts = self.facts
        is_noted = facts.get(_IS_MOVING) or not self.is_begun
        offsets = (facts.get(_GO_ON_AT) if is_noted else self.next_offsets()) or {}
        noted = {name: offsets[name] for name in kept if name in offsets}
        self.add_facts({_GO_ON_AT: noted, _IS_MOVING: True})
        place = self._put_aside(_SPARKS_OWN)
        self.add_facts({_IS_MOVING: False})
        return place

    def planned_topics(self) -> set[str]:
        """The topics of which the batch that Spark has planned and not done holds records."""
        number = self._planned()
        ranges = {} if number is None else self.ranges(number) or {}
        return {topic for (topic, _), (start, end) in ranges.items() if start < end}

    def forget_plan(self) -> str:
        """Let Spark plan the batch that is not done anew; return where the plan is now.

        What a sink has of it, it knows by the records, so that nothing is written twice.
        """
        number = self._planned()
        assert number is not None
        return self._put_aside([f"offsets/{number}"])

    def _planned(self) -> int | None:
        files = self._open_files()
        planned, done = (
            {int(name) for name in files.names(folder) if name.isdecimal()}
            for folder in ("offsets", "commits")
        )
        return max(planned) if planned and max(planned) not in done else None

    def _put_aside(self, names: Iterable[str]) -> str:
        folder = f"before-{datetime.now(UTC):%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:4]}"
        for name in names:
            self._open_files().move(name, f"{folder}/{name}")
        return f"{self.place}/{folder}"

    def _offsets(self, number: int) -> Offsets | None:
        text = self._open_files().read_if_there(f"offsets/{number}")
        # A version, the query's own facts, then one line a source.
        lines = (text or "").splitlines()
        return _parse_offsets(lines[2]) if len(lines) > 2 else None

    def kept_offsets(self) -> Offsets | None:
        """Where the topics that `set_aside` kept go on; None: it was not, or Spark has begun."""
        return None if self.is_begun else self.facts.get(_GO_ON_AT)

    def first_offsets(self) -> Offsets | None:
        """Where the first batch began, if Spark has noted that."""
        text = self._open_files().read_if_there(_FIRST_OFFSETS)
        # Before them stand a version and, from Sparks of long ago, a zero byte.
        return _parse_offsets(text[text.find("{") :]) if text and "{" in text else None

    def _open_files(self) -> "_LocalFiles | HadoopFiles":
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


def _parse_offsets(line: str) -> Offsets | None:
    """Offsets of topics; None for what another source's offsets may be."""
    try:
        offsets = json.loads(line)
    except ValueError:
        return None
    is_of_topics = isinstance(offsets, dict) and all(
        isinstance(partitions, dict)
        and all(key.isdecimal() and isinstance(value, int) for key, value in partitions.items())
        for partitions in offsets.values()
    )
    return offsets if is_of_topics else None


def _listed(sinks: list[str]) -> str:
    return " and ".join(sinks) or "nothing"


class _LocalFiles:
    """As HadoopFiles, before there is a Spark."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def read_if_there(self, name: str) -> str | None:
        try:
            return (self._root / name).read_text("utf-8")
        except FileNotFoundError:
            return None

    def write_over(self, name: str, text: str) -> None:
        path = self._root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.new")
        temporary.write_text(text, "utf-8")
        temporary.replace(path)

    def move(self, name: str, target: str) -> None:
        """Give something another name; nothing to do if it is not there."""
        path = self._root / target
        path.parent.mkdir(parents=True, exist_ok=True)
        # Hadoop keeps a checksum beside each file; left behind, it is taken for another's.
        whole = self._root / name
        for source in (whole, whole.with_name(f".{whole.name}.crc")):
            with contextlib.suppress(FileNotFoundError):
                source.rename(path.with_name(source.name))

    def names(self, directory: str) -> list[str]:
        path = self._root / directory
        return [each.name for each in path.iterdir()] if path.is_dir() else []
