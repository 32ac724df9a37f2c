"""What a mirror is asked to do."""

import re
from pathlib import Path
from typing import Final, NamedTuple

CHECKSUMS, COUNTS, NOTHING = "checksums", "counts", "none"
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
