import pytest
from confluent_kafka.admin import AdminClient

from headrace.testing import SeenRequest, SeenRequests, running_broker


def seen(api: str, client_id: str = "one") -> SeenRequest:
    return SeenRequest(api, 3, client_id, 1, "127.0.0.1")


def test_requests_are_kept_in_order_and_found_by_api_and_client() -> None:
    requests = SeenRequests()
    for one in (seen("Fetch"), seen("Produce"), seen("Fetch", "two")):
        requests.add(one)

    assert [one.api for one in requests] == ["Fetch", "Produce", "Fetch"]
    assert len(requests.of("fetch")) == len(requests.of(1)) == 2
    assert requests.of("Fetch", client_id="two") == [seen("Fetch", "two")]


def test_a_cleared_record_is_empty_and_still_counts() -> None:
    requests = SeenRequests()
    requests.add(seen("Fetch"))
    requests.clear()

    assert (len(requests), requests.total) == (0, 1)


def test_waiting_for_what_does_not_come_says_how_much_came() -> None:
    requests = SeenRequests()
    requests.add(seen("Fetch"))

    with pytest.raises(TimeoutError, match=r"1 of 2 Fetch requests came within 0\.01 s"):
        requests.wait_for("Fetch", 2, timeout_seconds=0.01)


def test_a_clients_requests_are_seen_with_its_name_and_version() -> None:
    with running_broker(watched=True) as broker:
        admin = AdminClient(
            {"bootstrap.servers": broker.bootstrap, "client.id": "me", "log_level": 0}
        )
        admin.list_topics(timeout=120)

        (request, *_) = broker.requests.wait_for("Metadata", client_id="me")

    assert request.version in range(14)
    assert request.peer == "127.0.0.1"
    assert broker.requests.of("ApiVersions")


def test_an_unwatched_broker_says_how_to_get_a_watched_one() -> None:
    with running_broker() as broker, pytest.raises(RuntimeError, match="watched=True"):
        broker.requests.of("Produce")
