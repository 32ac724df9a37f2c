"""A pytest plugin: which feature of which client a test proves, kept as a file when asked.

`@pytest.mark.feature("kcat", "static members")` marks a test; braces take the test's own
parameters, as in `feature("{kind.client}", "produce, {codec}")`. With `--feature-results FILE`
only tests with the mark run, on headrace alone, and FILE holds what came of them:
`tools.compatibility_page` makes docs/compatibility.md of it.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

_OPTION = "--feature-results"
_RANK = {"skipped": 0, "passed": 1, "failed": 2}  # the worst of several tests is what counts


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(_OPTION, type=Path, metavar="FILE", help="write what clients can do to FILE")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "feature(client, feature): what this test proves; braces take its parameters"
    )
    if config.getoption(_OPTION):
        if config.getoption("numprocesses", None):
            raise pytest.UsageError(f"{_OPTION} needs all tests in one process: leave out -n")
        config.pluginmanager.register(FeatureResults(config.getoption(_OPTION)))


def features_of(item: pytest.Item) -> Iterator[tuple[str, str]]:
    """The (client, feature) pairs a test proves."""
    callspec = getattr(item, "callspec", None)
    parameters = callspec.params if callspec else {}
    for mark in item.iter_markers("feature"):
        client, feature = (text.format(**parameters) for text in mark.args)
        yield client, feature


class FeatureResults:
    """Collects while tests run; writes the file at the end."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._features: dict[str, list[tuple[str, str]]] = {}
        self._outcomes: dict[tuple[str, str], dict[str, str]] = {}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        wanted, others = [], []
        for item in items:
            callspec = getattr(item, "callspec", None)
            is_ours = not callspec or callspec.params.get("engine") != "kafka"
            self._features[item.nodeid] = list(features_of(item))
            chosen = wanted if is_ours and self._features[item.nodeid] else others
            chosen.append(item)
        items[:] = wanted
        config.hook.pytest_deselected(items=others)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when != "call" and report.passed:
            return
        reason = ""
        if report.skipped and isinstance(report.longrepr, tuple):
            reason = report.longrepr[2].removeprefix("Skipped: ")
        for pair in self._features[report.nodeid]:
            known = self._outcomes.setdefault(pair, {"outcome": "skipped"})
            if _RANK[report.outcome] >= _RANK[known["outcome"]]:
                self._outcomes[pair] = {"outcome": report.outcome} | (
                    {"reason": reason} if reason else {}
                )

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        if exitstatus not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            return  # half a run proves nothing
        from tests.interop.versions import client_versions

        results: dict[str, dict[str, dict[str, str]]] = {}
        for (client, feature), outcome in sorted(self._outcomes.items()):
            results.setdefault(client, {})[feature] = outcome
        document = {"clients": client_versions(), "results": results}
        self._path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", "utf-8")
