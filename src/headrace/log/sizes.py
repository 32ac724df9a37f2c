"""How much room partitions take whose logs nobody has opened: asked of the disk, in any thread."""

import os
from collections.abc import Iterable
from pathlib import Path

from headrace.log.names import LOG_SUFFIX
from headrace.model import TopicPartition


def sizes_on_disk(
    data_dir: Path, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, int]:
    """Bytes in `.log` files of each; 0 where there is no directory yet."""
    return {partition: _size(data_dir / str(partition)) for partition in partitions}


def _size(directory: Path) -> int:
    try:
        with os.scandir(directory) as entries:
            return sum([one.stat().st_size for one in entries if one.name.endswith(LOG_SUFFIX)])
    except FileNotFoundError:
        return 0
