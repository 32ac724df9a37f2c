"""What stays of a demo that came to its end, and how to look at it: its broker is gone by then."""

import shutil
import sys
from pathlib import Path

TOPIC = "readings"
BROKER, LAKE, DATABASE = "broker", "lake", "readings.db"
_FOLDER = "data"


def keep(directory: Path, results: Path) -> Path:
    """Move the data to the results, in place of the last demo's; return where it is."""
    kept = results / _FOLDER
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir(parents=True)
    for name in (BROKER, LAKE, DATABASE):
        shutil.move(directory / name, kept / name)
    return kept


def how_to_look(kept: Path) -> str:
    """Commands that work now, and those for which a broker has to serve the data first."""
    headrace = our_command()
    return (
        f"\nlog, lake and table are kept in {kept} until the next demo; look at them with\n"
        f"  {headrace} sql 'select date, hour, count(*) from parquet.`{kept / LAKE}` "
        "group by all order by all'\n"
        f"  sqlite3 {kept / DATABASE} 'select * from {TOPIC} limit 5'\n"
        "or with a broker on the log, in another terminal\n"
        f"  {headrace} serve --data-dir {kept / BROKER}\n"
        "at the topics themselves\n"
        f"  {headrace} topics list\n"
        f"  {headrace} pipeline dead-letters table --summary"
    )


def our_command() -> str:
    """`headrace` as the user's shell finds it, or where it is installed."""
    if shutil.which("headrace"):
        return "headrace"
    beside = Path(sys.executable).with_name("headrace")
    is_below = beside.is_relative_to(Path.cwd())
    return str(beside.relative_to(Path.cwd()) if is_below else beside)
