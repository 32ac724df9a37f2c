"""docs/settings.md, made from the tables the broker itself goes by.

`make docs` writes the page; a test fails when it is out of date.
"""

import sys
from collections.abc import Iterable, Iterator

from headrace.cli.serve.options import DEFAULT_HTTP_PORT
from headrace.settings.effects import BROKER_EFFECTS, TOPIC_EFFECTS
from headrace.settings.own import DEFAULTS, OWN_SETTINGS

_HEAD = """\
# Settings

<!-- Made by `make docs` from headrace.settings; change it there. -->

Every setting has Kafka's own name. All of Kafka 4.3.1's are known: those in the tables below act,
the others are accepted and reported as Kafka reports them (`DescribeConfigs`), since one node has
nothing they could change.

A name that Kafka does not know stops the start when it stands in a file or behind `--set`; a
plug-in's (`metrics.…`, `confluent.…`, `rsm.config.…` and the like) does not. Of variables a
misspelt one stops it, with the name that was meant; any other that begins with `HEADRACE_` and is
none of ours is named in a warning. Kubernetes sets such ones in every pod when a service is called
`headrace` or `headrace-…`: `HEADRACE_SERVICE_HOST`, `HEADRACE_PORT_9092_TCP_ADDR`, and for a
service `headrace-http` even `HEADRACE_HTTP_PORT=tcp://10.0.0.1:9644`, which is not taken for the
port. `enableServiceLinks: false` in the pod's spec keeps them away. At run time a client may set
any name for a broker, as in Kafka: it is stored, shown without its value and has no effect.
`headrace configs set` refuses such a name unless told `--force`. Topics, groups and metrics
subscriptions take no unknown name.

Settings that ask for security stop the start, since nothing here could honour them: a listener
that is not PLAINTEXT, `authorizer.class.name`, `ssl.client.auth`,
`security.inter.broker.protocol`, and the classes that check new topics and configs
(`create.topic.policy.class.name`, `alter.config.policy.class.name`). What has no effect in Kafka
either while listeners are plain, such as a keystore, is named in one warning. At run time no
setting about security is taken.

Where a value comes from, the first that has it wins:

1. what a client changed at run time (`IncrementalAlterConfigs`), kept over restarts
2. the command line: `--host`, `--port`, `--data-dir`, `--http-port`, and
   `--set log.segment.bytes=1073741824`
3. the environment: `HEADRACE_LOG_SEGMENT_BYTES=1073741824`. Dots are underscores; of
   `headrace.…` the word is not doubled: `headrace.http.port` is `HEADRACE_HTTP_PORT`
4. the file given with `--config`, in the syntax of Kafka's `server.properties`
5. the default: Kafka's, except where the next table says otherwise
"""

_VARIABLES = (
    (
        "HEADRACE_BOOTSTRAP",
        "which bus the command line and `Bus.from_environment` talk to: addresses, or `kafka://USER:PASSWORD@HOST?property=value`",
    ),
    ("HEADRACE_CACHE_DIR", "where Kafka's and Spark's jars and built programs are kept"),
    (
        "HEADRACE_KAFKA_DIR",
        "where clusters of `headrace kafka up` lie, each in a directory of its name",
    ),
    ("HEADRACE_MAVEN_REPOSITORY", "where the jars come from"),
    ("HEADRACE_SPARK_JARS", "a file with the pinned jars of another Spark than ours"),
    ("HEADRACE_STATE_DIR", "where pipelines keep their state and Spark its log"),
)


def render() -> str:
    """The whole page."""
    own_names = {own.name for own in OWN_SETTINGS}
    defaults = [(name, f"`{value}`") for name, value in DEFAULTS.items()]
    defaults.append(("log.dirs", "with `headrace serve`: the platform's place for user data"))
    defaults.append(("headrace.http.port", f"with `headrace serve`: `{DEFAULT_HTTP_PORT}`"))
    own = [(each.name, f"`{each.default}`", each.doc, each.reason) for each in OWN_SETTINGS]
    acting = [(name, text) for name, text in BROKER_EFFECTS.items() if name not in own_names]
    parts = [
        _HEAD,
        *_table("Defaults that are not Kafka's", ("setting", "default"), defaults),
        *_table(
            "headrace's own",
            ("setting", "default", "what it does", "why Kafka's are not enough"),
            own,
        ),
        *_table("Settings of the broker that act", ("setting", "what it does"), sorted(acting)),
        *_table(
            "Settings of a topic that act",
            ("setting", "what it does"),
            sorted(TOPIC_EFFECTS.items()),
        ),
        *_table("Variables that are not settings", ("variable", "what it does"), _VARIABLES),
    ]
    return "\n".join(parts)


def _table(title: str, columns: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield f"## {title}\n"
    yield "| " + " | ".join(columns) + " |"
    yield "|---" * len(columns) + "|"
    for name, *cells in rows:
        yield "| " + " | ".join([f"`{name}`", *cells]) + " |"
    yield ""


if __name__ == "__main__":
    sys.stdout.write(render())
