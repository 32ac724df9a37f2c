"""A pytest plugin: how xdist's workers share the tests out (`-n 2 --dist loadfile`).

A file stays in one worker, since its tests share fixtures. So do all files with tests that need
Spark, whose Java process is started once a run, and those that share a node of Kafka. Spark's come
first: they take longest, and the other files are there to fill the other workers meanwhile.

xdist's own groups (`--dist loadgroup`) come to nothing with pytest 9.2: it hands them over in the
names of tests, which that pytest no longer lets it write.
"""

import functools
from pathlib import Path
from typing import Any

import pytest

_SPARK = "spark"
_SHARING_A_NODE = ("tests/bench", "tests/contracts")


@functools.cache
def unit_of(path: Path, root: Path) -> str:
    """What goes to one worker as a whole, together with this file."""
    if "mark.spark" in path.read_text("utf-8"):
        return _SPARK
    for directory in _SHARING_A_NODE:
        if path.is_relative_to(root / directory):
            return directory
    return str(path)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):  # a worker's, which says in what order work is given out
        items.sort(key=lambda item: unit_of(item.path, config.rootpath) != _SPARK)


@pytest.hookimpl(optionalhook=True)  # xdist may be absent
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    from xdist.scheduler import LoadScopeScheduling

    class ByUnit(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            path = config.rootpath / nodeid.partition("::")[0]
            return unit_of(path, config.rootpath)

    config.option.loadscopereorder = False  # in the order of the tests, not by their number
    return ByUnit(config, log)
