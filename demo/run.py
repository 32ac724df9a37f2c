"""The demo from its start to its end: what happens, and what is told of it.

The feed sends, two pipelines follow it live; when both have caught up, the topic, the lake and
the table are asked the same questions, and the feed's own books as well.
"""

import contextlib
import sqlite3
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from demo.comparison import (
    LATEST,
    RECORDS,
    TABLE,
    Answers,
    answers_of_books,
    check_equal,
    side_by_side,
)
from demo.kept_data import BROKER, DATABASE, LAKE, TOPIC, our_command
from demo.letters import all_letters, reasons_table
from demo.pipelines import DemoPipeline, RunningPipelines
from demo.plot import can_plot, write_plot
from demo.sending import FeedSender
from demo.sensors import SCHEMA, Books
from demo.view import view
from demo.watch import Watcher
from headrace.client.admin import Admin
from headrace.client.bus import Bus
from headrace.errors import HeadraceError
from headrace.installing import how_to_install
from headrace.patience import Patience
from headrace.testing import BrokerProcess, broker_process

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARTITIONS = 4
DEAD_LETTER_TOPIC = "table.dead-letters"
_LOOK_SECONDS = 0.5
# Once the feed is over, what is left is seconds of work; this long means that something hangs.
_CATCH_UP_SECONDS = 180.0
_KEPT_RATE = 50.0


class DemoError(HeadraceError):
    """The demo saw something that must not happen."""


@dataclass(frozen=True, kw_only=True)
class DemoOptions:
    """What the user asked for."""

    seconds: float
    rate: float
    plot: Path
    is_kept: bool


class DemoRun:
    """One run of the demo in one directory."""

    def __init__(self, console: Console, directory: Path, options: DemoOptions) -> None:
        self._console, self._options = console, options
        self._state_dir = directory / "state"
        self._broker_dir = directory / BROKER
        self._lake, self._database = directory / LAKE, directory / DATABASE
        table = {"format": "json", "schema": SCHEMA, "table": TOPIC, "key": "sensor"}
        self._pipelines = (
            DemoPipeline(name="archive", topic=TOPIC, to=f"parquet:{self._lake}"),
            DemoPipeline(name="table", topic=TOPIC, to=f"sqlite:{self._database}", options=table),
        )

    def run(self) -> None:
        """Run it; raises HeadraceError when something is not as it must be."""
        with contextlib.ExitStack() as stack:
            broker = stack.enter_context(broker_process(self._broker_dir))
            self._say(
                f"a broker on {broker.bootstrap}, ready {broker.ready_seconds:.2f} s after its "
                f"start; sensors send JSON to its topic {TOPIC}, about one in a hundred is bad"
            )
            Admin(Bus(broker.bootstrap)).create_topic(TOPIC, PARTITIONS)
            self._say("two pipelines follow them, on one Spark session; as commands they are")
            for each in self._pipelines:
                self._say(f"  {each.command(broker.bootstrap, self._state_dir)}")
            running = stack.enter_context(
                RunningPipelines(broker.bootstrap, self._state_dir, self._pipelines, self._say)
            )
            watcher = Watcher(
                broker.bootstrap,
                TOPIC,
                groups=[each.name for each in self._pipelines],
                dead_letter_topic=DEAD_LETTER_TOPIC,
            )
            books = self._follow(broker, watcher, running)
            self._compare(running.spark, broker, books)
            self._show_letters(broker, books)
            self._plot(watcher)
            if self._options.is_kept:
                self._keep(broker, running)
            self._say("stopping the pipelines, Spark and the broker")
        self._say("stopped")

    def _follow(self, broker: BrokerProcess, watcher: Watcher, running: RunningPipelines) -> Books:
        """Show the feed and the pipelines until these have all of it; return the feed's books."""
        options = self._options
        with (
            FeedSender(broker.bootstrap, TOPIC, rate=options.rate, seconds=options.seconds) as feed,
            view(self._console, watcher) as show,
        ):
            patience = None  # from the end of the feed on
            while True:
                running.check()
                is_sending = feed.is_running
                look = watcher.look()
                lag = max(look.lag(group) for group in watcher.groups)
                show(_what(is_starting=running.is_starting, is_sending=is_sending, lag=lag))
                if not is_sending and lag == 0:
                    return feed.wait()
                if not is_sending:
                    patience = patience or Patience(_CATCH_UP_SECONDS)
                    if patience.is_over:
                        raise DemoError(
                            f"the pipelines have not caught up {_CATCH_UP_SECONDS:g} s after the "
                            f"last message: {lag:,} are left"
                        )
                time.sleep(_LOOK_SECONDS)

    def _compare(self, spark: "SparkSession", broker: BrokerProcess, books: Books) -> None:
        from headrace.pipelines import read_topic

        self._say(
            "\nThe lake keeps every record of the topic, bad ones and tombstones too. The table "
            "has a row for each sensor:\nits last good reading, unless a tombstone came after it."
        )
        topic = read_topic(spark, TOPIC, format="binary", bootstrap=broker.bootstrap)
        topic.createOrReplaceTempView("topic")
        spark.read.parquet(str(self._lake)).createOrReplaceTempView("lake")
        dead_letters = read_topic(
            spark, DEAD_LETTER_TOPIC, format="binary", bootstrap=broker.bootstrap
        )
        dead_letters.createOrReplaceTempView("dead_letters")
        self._say(f"\ntopic and lake, in Spark SQL:\n{RECORDS.format(place='topic | lake')}")
        self._say(f"{LATEST.format(place='topic | lake')}")
        self._say(f"table, in SQLite:\n{TABLE.format(place=TOPIC)}\n")
        places = {
            "topic": _ask_spark(spark, "topic"),
            "lake": _ask_spark(spark, "lake"),
            "table": self._ask_table(),
            "dead letters": Answers(bad=dead_letters.count()),
            "sent": answers_of_books(books),
        }
        self._console.print(side_by_side(places))
        check_equal(places)
        self._console.print("every answer is the same everywhere", style="green")

    def _ask_table(self) -> Answers:
        with contextlib.closing(sqlite3.connect(self._database)) as database:
            sensors, hundredths = database.execute(TABLE.format(place=TOPIC)).fetchone()
        return Answers(sensors=sensors, hundredths=hundredths)

    def _show_letters(self, broker: BrokerProcess, books: Books) -> None:
        letters = all_letters(broker.bootstrap, DEAD_LETTER_TOPIC)
        self._console.print(reasons_table(letters))
        sent = ", ".join(f"{count:,} {kind}" for kind, count in sorted(books.bad.items()))
        self._say(f"the feed had spoilt {books.bad.total():,}: {sent}")

    def _plot(self, watcher: Watcher) -> None:
        if not can_plot():
            self._say(f"no plot: it needs matplotlib: {how_to_install('bench', 'matplotlib')}")
            return
        write_plot(watcher.looks, watcher.groups, self._options.plot)
        self._say(f"\nthe rates as a picture: {self._options.plot.absolute()}")

    def _keep(self, broker: BrokerProcess, running: RunningPipelines) -> None:
        """Leave all running, with a slow feed, until Ctrl-C."""
        bootstrap, state_dir = broker.bootstrap, self._state_dir
        lake, database, headrace = self._lake, self._database, our_command()
        self._say(
            f"\nall of it runs on, with {_KEPT_RATE:g} messages a second; look at it with\n"
            f"  {headrace} top --bootstrap {bootstrap}\n"
            f"  {headrace} groups describe archive --bootstrap {bootstrap}\n"
            f"  {headrace} pipeline status --state-dir {state_dir}\n"
            f"  {headrace} pipeline dead-letters table --summary --bootstrap {bootstrap}\n"
            f"  {headrace} sql 'select count(*) from {TOPIC}' --bootstrap {bootstrap}\n"
            f"  {headrace} sql 'select count(*) from parquet.`{lake}`'\n"
            f"  sqlite3 {database} 'select * from {TOPIC} limit 5'\n"
            "Ctrl-C ends it and removes everything but the picture"
        )
        with FeedSender(broker.bootstrap, TOPIC, rate=_KEPT_RATE, seconds=float("inf")):
            while True:
                running.check()
                time.sleep(_LOOK_SECONDS)

    def _say(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)


def _what(*, is_starting: bool, is_sending: bool, lag: int) -> str:
    if is_starting:
        return "Spark starts; the feed does not wait for it"
    if is_sending:
        return "the sensors send, the pipelines follow"
    return "the feed is over, the pipelines catch up" if lag else "all caught up"


def _ask_spark(spark: "SparkSession", place: str) -> Answers:
    records = spark.sql(RECORDS.format(place=place)).collect()[0]
    latest = spark.sql(LATEST.format(place=place)).collect()[0]
    return Answers(
        records=records["records"],
        tombstones=records["tombstones"],
        sensors=latest["sensors"],
        hundredths=latest["hundredths"],
    )
