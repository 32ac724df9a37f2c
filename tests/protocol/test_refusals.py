import pytest
from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode

from headrace.broker.dispatch import APIS
from headrace.protocol.entity_reader import Cursor, entity_reader
from headrace.protocol.entity_writer import entity_writer
from headrace.protocol.refusals import encode_refusal
from headrace.protocol.schema import fields_of

CODE = ErrorCode.request_timed_out


def read(api_key: int, version: int, body: bytes) -> object:
    schema = load_response_schema(api_key, version)
    cursor = Cursor(body, 0)
    response = entity_reader(schema, schema)(cursor)
    assert cursor.position == len(body)
    return response


class Empty:
    """Has no field, so that each takes its default."""


@pytest.mark.parametrize(
    ("api_key", "version"),
    [
        (api.key, version)
        for api in APIS.values()
        for version in api.versions
        if (api.key, version) not in {(0, 0), (0, 1), (0, 2)}
    ],
)
def test_every_api_and_version_can_be_refused(api_key: int, version: int) -> None:
    request = bytearray()
    entity_writer(load_request_schema(api_key, version))(request, Empty())

    response = read(api_key, version, encode_refusal(api_key, version, bytes(request), CODE))

    for field in fields_of(type(response)):
        if field.kafka_type == "error_code":
            assert getattr(response, field.name) is CODE


def test_topics_and_partitions_are_those_asked_for() -> None:
    class Partition:
        index = 7
        records = None

    class Topic:
        name = "orders"
        partition_data = (Partition(),)

    class Request:
        topic_data = (Topic(),)

    request = bytearray()
    entity_writer(load_request_schema(0, 9))(request, Request())

    response = read(0, 9, encode_refusal(0, 9, bytes(request), CODE))

    topic = response.responses[0]  # type: ignore[attr-defined]
    assert topic.name == "orders"
    assert [(one.index, one.error_code) for one in topic.partition_responses] == [(7, CODE)]


def test_plain_names_become_the_names_of_the_answers_parts() -> None:
    class Request:
        groups_names = ("one", "two")

    request = bytearray()
    entity_writer(load_request_schema(42, 2))(request, Request())

    response = read(42, 2, encode_refusal(42, 2, bytes(request), CODE))

    results = response.results  # type: ignore[attr-defined]
    assert [(one.group_id, one.error_code) for one in results] == [("one", CODE), ("two", CODE)]
