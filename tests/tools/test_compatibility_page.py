"""docs/compatibility.md says what was recorded, and what a broker answers."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.interop.wire import API_VERSIONS, WireClient

from headrace.testing import running_broker
from tools import compatibility_page

ROOT = Path(__file__).parents[2]
CAPTURED = ROOT / "tests" / "data" / "kafka-4.3.1" / "api_versions.json"
PAGE = (ROOT / "docs" / "compatibility.md").read_text("utf-8")
RECORDED = json.loads((ROOT / "docs" / "compatibility-results.json").read_text("utf-8"))
API_ROWS = {
    int(key): (name, kafka, served)
    for key, name, kafka, served in re.findall(
        r"^\| (\d+) \| (\w+) \| (\S+) \| ([^|]+) \|$", PAGE, re.MULTILINE
    )
}


@pytest.fixture(scope="module")
def answered() -> Iterator[dict[int, str]]:
    """What a running broker says it serves."""
    with running_broker() as broker, WireClient(broker.bootstrap) as wire:
        yield {
            api.api_key: f"{api.min_version}–{api.max_version}"
            for api in wire.call(API_VERSIONS, 0).api_keys
        }


def test_the_page_is_what_was_recorded() -> None:
    assert compatibility_page.render(RECORDED) == PAGE, "run make docs"


def test_kafkas_column_is_what_kafka_answered() -> None:
    captured = {
        api["key"]: (api["name"], f"{api['min']}–{api['max']}")
        for api in json.loads(CAPTURED.read_text())["api_keys"]
    }

    assert {key: row[:2] for key, row in API_ROWS.items()} == captured


@pytest.mark.parametrize("key", API_ROWS)
def test_every_row_of_an_api_is_true(key: int, answered: dict[int, str]) -> None:
    served = API_ROWS[key][2]

    if key in answered:
        assert served == answered[key]
    else:
        assert served in ("not yet", "never: one broker")


def test_no_api_is_served_that_the_page_does_not_have(answered: dict[int, str]) -> None:
    assert answered.keys() <= API_ROWS.keys()


def test_a_cell_says_what_came_of_the_tests() -> None:
    recorded = {
        "clients": {"a": "client A 1.0", "b": "client B 2.0"},
        "results": {
            "a": {"seek": {"outcome": "passed"}, "odd": {"outcome": "failed"}},
            "b": {"seek": {"outcome": "skipped", "reason": "no client B"}},
        },
    }

    page = compatibility_page.render(recorded)

    assert "|  | client A 1.0 | client B 2.0 |" in page
    assert "| seek | yes | not run |\n| odd | no |  |\n" in page
