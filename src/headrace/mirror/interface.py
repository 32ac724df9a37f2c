"""What a mirror is asked to do, tells while it works, and has done: all its operator sees of it."""

import re
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from headrace.model import TopicPartition

CHECKSUMS, COUNTS, NOTHING = "checksums", "counts", "none"
COPYING, VERIFYING, FOLLOWING = "copying", "verifying", "following"
DEFAULT_NAME = "mirror"
# A kill costs a second reading of what came in this time; a shorter one costs more state records.
DEFAULT_INTERVAL_S = 2.0
# As a rule the cheapest: the copy is no slower for it, and the target's disk is spared.
DEFAULT_COMPRESSION: Final = "lz4"


class Options(NamedTuple):
    """`groups` None: no positions. `replication_factor` None: the target's default."""

    state_dir: Path
    topics: re.Pattern[str] = re.compile(".*")
    groups: re.Pattern[str] | None = re.compile(".*")
    is_following: bool = False
    is_rewinding: bool = False
    is_anew: bool = False  # copy from the start what was made anew on either side
    replication_factor: int | None = None
    compression: str = DEFAULT_COMPRESSION
    verify: str = CHECKSUMS
    interval_s: float = DEFAULT_INTERVAL_S
    name: str = DEFAULT_NAME


class MirrorProgress(NamedTuple):
    """How far one phase has come. `total` counts offsets, so gaps make it an upper bound."""

    phase: str
    done: int
    total: int
    messages: int
    size_bytes: int
    seconds: float


class MirrorListener(Protocol):
    """Called in the mirror's own thread; must return at once."""

    def note(self, sentence: str) -> None:
        """Something the operator should know."""

    def progress(self, progress: MirrorProgress) -> None:
        """Called several times a second."""


class GroupMove(NamedTuple):
    """One group's place in one partition, on both sides; `target` None: left alone."""

    group: str
    place: TopicPartition
    source: int
    target: int | None


class TopicSummary(NamedTuple):
    """One topic. `messages` and `size_bytes` are those of this run, `total` all that is there."""

    topic: str
    partitions: int
    messages: int
    size_bytes: int
    total: int
    verified: str

    def with_earlier(self, earlier: "TopicSummary | None") -> "TopicSummary":
        """With what an earlier session of the same run has copied."""
        if earlier is None:
            return self
        return self._replace(
            messages=self.messages + earlier.messages,
            size_bytes=self.size_bytes + earlier.size_bytes,
        )


class Summary(NamedTuple):
    """`is_complete` is False when it was stopped before the end."""

    topics: list[TopicSummary]
    groups: list[GroupMove]
    seconds: float  # of copying; reading the target again comes on top
    verify_seconds: float
    is_complete: bool


class Outlook(NamedTuple):
    """What would be done for one topic."""

    topic: str
    action: str
    partitions: int
    messages: int  # as offsets count them
    configs: dict[str, str]
