"""Configs as a command sets them: read from words, and refused where nobody knows the name."""

from collections.abc import Iterable, Mapping

from headrace.cli.terminal import UsageError
from headrace.client.admin import Admin


def alter_configs(
    admin: Admin,
    kind: str,
    name: str,
    wanted: Mapping[str, str | None],
    *,
    is_forced: bool,
) -> None:
    """Give configs new values; None returns one to its default. The others stay as they are.

    A name that nobody knows is refused unless `is_forced`: a broker would store it without a word.
    """
    if not is_forced:
        _refuse_unknown(admin, kind, name, wanted)
    admin.alter_configs(kind, name, wanted)


def _refuse_unknown(admin: Admin, kind: str, target: str, names: Iterable[str]) -> None:
    from headrace.settings import catalogue, retired, sources

    known = {"topic": catalogue.TOPIC, "broker": catalogue.BROKER, "group": catalogue.GROUP}[kind]
    unknown = [name for name in names if name not in known]
    if kind == "broker":
        unknown = [
            name
            for name in unknown
            if not catalogue.find_broker_setting(name) and not retired.is_for_plug_in(name)
        ]
    if not unknown:
        return
    # A newer broker knows more than we do, and shows what somebody forced on it before.
    shown = {config.name for config in admin.configs(kind, target)}
    for name in unknown:
        if name not in shown:
            nearest = sources.nearest(name, sorted(shown.union(known)))
            guess = f"; did you mean {nearest}?" if nearest else ";"
            raise UsageError(
                f"{name}: no {kind} config has this name{guess} "
                "--force sends it all the same, for what a plug-in of the broker may know"
            )


def parse_assignments(words: Iterable[str]) -> dict[str, str]:
    """Read NAME=VALUE words; raises UsageError for any other."""
    configs = dict[str, str]()
    for word in words:
        name, separator, value = word.partition("=")
        if not separator or not name:
            raise UsageError(f"{word}: write NAME=VALUE, such as retention.ms=86400000")
        configs[name] = value
    return configs
