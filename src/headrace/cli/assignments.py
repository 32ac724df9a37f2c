"""NAME=VALUE words of the command line."""

from collections.abc import Iterable

from headrace.cli.endings import UsageError


def parse_assignments(words: Iterable[str]) -> dict[str, str]:
    """Configs to set, as mapping; raises UsageError for any other word."""
    configs = dict[str, str]()
    for word in words:
        name, separator, value = word.partition("=")
        if not separator or not name:
            raise UsageError(f"{word}: write NAME=VALUE, such as retention.ms=86400000")
        configs[name] = value
    return configs


def parse_pairs(
    option: str, texts: Iterable[str], form: str = "NAME=VALUE", *, may_be_empty: bool = True
) -> dict[str, str]:
    """What an option was given, as mapping; `may_be_empty` is about the values."""
    pairs = dict[str, str]()
    for text in texts:
        name, separator, value = text.partition("=")
        name = name.strip()
        if not separator or not name or not (value or may_be_empty):
            raise UsageError(f"{option} {text}: write {form}")
        try:
            text.encode()
        except UnicodeEncodeError:
            # Python has such bytes as lone surrogates, which neither a terminal nor a file takes;
            # the value may be a password.
            shown = name.encode("utf-8", "backslashreplace").decode("utf-8")
            raise UsageError(f"{option} {shown}: write its name and value in UTF-8") from None
        pairs[name] = value
    return pairs
