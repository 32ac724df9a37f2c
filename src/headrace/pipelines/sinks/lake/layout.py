"""Where the files of a lake lie: `date=…/hour=…`, beside what is hidden by its first letter."""

from collections.abc import Iterator

from headrace.pipelines.errors import SinkError
from headrace.pipelines.hadoop_files import FileStatus, HadoopFiles
from headrace.pipelines.sinks.lake.notes import COMMITS

DELTA_LOG = "_delta_log"


def is_lake(files: HadoopFiles) -> bool:
    """Whether there is a directory of a day."""
    return any(_is_day(entry) for entry in files.list())


def refuse_delta(files: HadoopFiles) -> None:
    """Raise SinkError where a Delta table lies: compaction would take away its files."""
    if files.exists(DELTA_LOG):
        raise SinkError(f"{files.path()} is a Delta table; write delta:PATH, or choose another")


def refuse_parquet(files: HadoopFiles) -> None:
    """Raise SinkError where a lake of plain Parquet lies: its files are in no log of Delta's."""
    if files.list(COMMITS):
        raise SinkError(
            f"{files.path()} is a lake of plain Parquet; write parquet:PATH, or choose another"
        )


def hour_folders(files: HadoopFiles) -> Iterator[str]:
    """All directories of hours, by day."""
    for day in files.list():
        if _is_day(day):
            for hour in files.list(day.name):
                yield f"{day.name}/{hour.name}"


def data_files(files: HadoopFiles, folder: str) -> list[FileStatus]:
    """The files of an hour that any tool would read."""
    return [
        entry
        for entry in files.list(folder)
        if not entry.is_directory
        and entry.name.endswith(".parquet")
        and not entry.name.startswith(("_", "."))
    ]


def all_data_files(files: HadoopFiles) -> list[str]:
    """The names of all files that any tool would read."""
    return [
        f"{folder}/{entry.name}"
        for folder in hour_folders(files)
        for entry in data_files(files, folder)
    ]


def _is_day(entry: FileStatus) -> bool:
    return entry.name.startswith("date=")
