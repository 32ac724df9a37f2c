"""The innocent client sees what was done to it, and only that."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench.stalls.innocent import TOPIC, InnocentWaits, innocent_client
from bench.topics import admin_of, create_topic
from headrace.testing import running_broker

Harm = Callable[[Any], None]


@pytest.fixture
def wait_beside(tmp_path: Path) -> Callable[[Harm], InnocentWaits]:
    """`wait_beside(harm)`: what an innocent client says of a broker that does this harm."""

    def run(harm: Harm) -> InnocentWaits:
        with running_broker(watched=True) as broker:
            create_topic(admin_of(broker.port), TOPIC)
            with innocent_client(broker.port, tmp_path) as innocent:
                harm(broker)
                innocent.begin()
                broker.requests.wait_for("ApiVersions", broker.requests.total // 3 + 30)
                return innocent.finish()

    return run


def test_a_broker_that_serves_is_pinged_with_everything(wait_beside) -> None:
    waiting = wait_beside(lambda broker: None)

    assert not waiting.is_evicted
    assert waiting.lost == ()
    assert waiting.requests > 30
    assert all(waiting.details[kind]["requests"] for kind in ("produce", "metadata", "echo"))
    assert 0 < waiting.p50_ms <= waiting.p999_ms


@pytest.mark.parametrize(
    ("api", "kind"),
    [("ApiVersions", "api_versions"), ("Produce", "produce"), ("Metadata", "metadata")],
)
def test_a_request_that_is_held_up_is_the_longest_stall(wait_beside, api, kind) -> None:
    waiting = wait_beside(lambda broker: broker.faults.delay(api, 1.5, times=1))

    assert waiting.longest_ms >= 1400
    assert waiting.longest_kind == kind
    # Those that would have been sent meanwhile waited too: not one in a hundred, but one in three.
    assert waiting.p999_ms > 1000


def test_a_member_that_is_evicted_is_told(wait_beside) -> None:
    waiting = wait_beside(
        lambda broker: broker.faults.fail("Heartbeat", "UNKNOWN_MEMBER_ID", times=None)
    )

    assert waiting.is_evicted
    assert waiting.member_error == 25


def test_a_connection_that_is_closed_is_told(wait_beside) -> None:
    waiting = wait_beside(lambda broker: broker.faults.disconnect("Metadata"))

    assert waiting.lost == ("metadata",)
