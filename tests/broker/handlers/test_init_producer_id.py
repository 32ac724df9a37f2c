from typing import Any

import pytest
from kio.schema.errors import ErrorCode
from kio.schema.init_producer_id.v5.request import InitProducerIdRequest
from tests.broker.handlers.conftest import VERSIONS

from headrace.broker.handlers.throttle import NO_THROTTLE
from headrace.broker.state import BrokerState
from headrace.log.errors import StorageError

INIT_PRODUCER_ID = 22


def a_request(
    transactional_id: str | None = None, producer_id: int = -1, producer_epoch: int = -1
) -> InitProducerIdRequest:
    return InitProducerIdRequest(
        transactional_id=transactional_id,
        transaction_timeout=NO_THROTTLE,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
    )


@pytest.mark.parametrize("version", VERSIONS["init_producer_id"])
def test_every_version_gives_each_producer_its_own_id(version: int, ask: Any) -> None:
    first = ask(INIT_PRODUCER_ID, a_request(), version)
    second = ask(INIT_PRODUCER_ID, a_request(), version)

    assert (first.error_code, first.producer_epoch) == (ErrorCode.none, 0)
    assert second.producer_id == first.producer_id + 1


def test_an_idempotent_producer_that_had_an_id_gets_a_new_one(ask: Any) -> None:
    first = ask(INIT_PRODUCER_ID, a_request())

    again = ask(INIT_PRODUCER_ID, a_request(producer_id=first.producer_id, producer_epoch=0))

    assert again.producer_id != first.producer_id
    assert (again.error_code, again.producer_epoch) == (ErrorCode.none, 0)


@pytest.mark.parametrize(("producer_id", "epoch"), [(5, -1), (-1, 5)])
def test_an_id_without_an_epoch_or_the_reverse_is_invalid(
    producer_id: int, epoch: int, ask: Any
) -> None:
    answer = ask(INIT_PRODUCER_ID, a_request(producer_id=producer_id, producer_epoch=epoch))

    assert (answer.error_code, answer.producer_id) == (ErrorCode.invalid_request, -1)


def test_a_transactional_id_finds_no_coordinator_yet(ask: Any) -> None:
    answer = ask(INIT_PRODUCER_ID, a_request("tx"))

    assert answer.error_code == ErrorCode.coordinator_not_available
    assert (answer.producer_id, answer.producer_epoch) == (-1, -1)


def test_an_empty_transactional_id_is_invalid(ask: Any) -> None:
    assert ask(INIT_PRODUCER_ID, a_request("")).error_code == ErrorCode.invalid_request


def test_a_catalog_that_cannot_be_written_is_a_storage_error(
    broker: BrokerState, ask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> int:
        raise StorageError("the disk is full")

    monkeypatch.setattr(broker.topics.catalog, "reserve_producer_ids", fail)

    assert ask(INIT_PRODUCER_ID, a_request()).error_code == ErrorCode.kafka_storage_error
