"""A broker on a temporary directory, and a way to ask it through the wire format."""

import asyncio
import dataclasses
import inspect
import io
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from kio.index import load_request_schema, load_response_schema
from kio.serial import entity_reader, entity_writer

from headrace.broker.catalog import Catalog
from headrace.broker.dispatch import APIS
from headrace.broker.groups.offsets_topic import Storage
from headrace.broker.groups.runtime import GroupRuntime
from headrace.broker.state import BrokerState, RequestContext
from headrace.broker.topics import Topics
from headrace.log.directory import LogDirectory
from headrace.metrics import Metrics
from headrace.protocol.codec import decode_request, encode_response
from headrace.records.batch import peek_header
from headrace.records.builder import build_batch
from headrace.records.record import Record
from headrace.settings.broker_settings import BrokerSettings

NODE_ID = 5
NOW_MS = 1_700_000_000_000

# By a handler's module: the versions that the table says.
VERSIONS = {api.module: api.versions for api in APIS.values()}

Ask = Callable[..., Any]
AskAll = Callable[..., list[Any]]
Append = Callable[..., None]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerState]:
    settings = BrokerSettings.load(overrides={"num.partitions": "2"})
    logs = LogDirectory(tmp_path, node_id=NODE_ID)
    logs.open(NOW_MS)
    with closing(Catalog(tmp_path)) as catalog:
        topics = Topics(catalog, logs, settings, lambda: NOW_MS)
        broker = BrokerState(
            node_id=NODE_ID, cluster_id=logs.cluster_id, settings=settings, topics=topics
        )
        broker.advertised_host, broker.advertised_port = "broker.test", 9092
        storage = Storage(lambda: None, lambda log, size: None, None)
        broker.open_groups = lambda: GroupRuntime(
            topics, settings, broker.clock, storage, Metrics()
        )
        yield broker
        broker.clock.stop()
        logs.close(NOW_MS)


@pytest.fixture
def loop() -> Iterator[asyncio.Runner]:
    """The event loop that all requests of a test share: some wait for others."""
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture
def ask(broker: BrokerState, loop: asyncio.Runner) -> Ask:
    """Send a request of the newest type at some version; both ways go through real bytes."""

    def ask(api_key: int, request: Any, version: int | None = None) -> Any:
        return loop.run(_answer(broker, api_key, request, version))

    return ask


@pytest.fixture
def ask_all(broker: BrokerState, loop: asyncio.Runner) -> AskAll:
    """Send several requests `(api key, request, version)` before any answer is waited for."""

    async def answers(asked: tuple[tuple[int, Any, int], ...]) -> list[Any]:
        return await asyncio.gather(*(_answer(broker, *one) for one in asked))

    return lambda *asked: loop.run(answers(asked))


async def _answer(broker: BrokerState, api_key: int, request: Any, version: int | None) -> Any:
    api = APIS[api_key]
    newest = api.schema_version
    version = api.versions[-1] if version is None else version
    sent = _as_sent(request, load_request_schema(api_key, version))
    out = io.BytesIO()
    entity_writer(type(sent))(out, sent)
    lifted = decode_request(api_key, version, newest, out.getvalue(), 0)
    context = RequestContext(api_key, version, "client", "127.0.0.1")
    response = api.handler()(lifted, broker, context)
    if inspect.iscoroutine(response):
        response = await response
    raw = encode_response(api_key, version, response)
    answer, size = entity_reader(load_response_schema(api_key, version))(raw, 0)
    assert size == len(raw)
    return answer


@pytest.fixture
def append(broker: BrokerState) -> Append:
    """Append messages with these timestamps, one batch each."""

    def append(topic: str, partition: int, *timestamps: int) -> None:
        log = broker.topics.log(topic, partition)
        for timestamp in timestamps:
            batch = build_batch([Record(0, timestamp, b"k", b"v", [])])
            header = peek_header(batch)
            assert header is not None
            log.stage(memoryview(batch), header, NOW_MS)
            log.commit(NOW_MS)

    return append


def _as_sent(value: Any, entity_type: Any) -> Any:
    """Copy the fields an older version's type has; DeleteTopics had its names elsewhere."""
    fields = {}
    for field in dataclasses.fields(entity_type):
        if field.name == "topic_names" and not hasattr(value, "topic_names"):
            fields[field.name] = tuple(topic.name for topic in value.topics)
        elif hasattr(value, field.name):
            fields[field.name] = _converted(getattr(value, field.name), entity_type, field)
    return entity_type(**fields)


def _converted(value: Any, entity_type: Any, field: Any) -> Any:
    if isinstance(value, tuple) and value and dataclasses.is_dataclass(value[0]):
        (item_type, *_) = [
            argument
            for kind in (field.type, *getattr(field.type, "__args__", ()))
            for argument in getattr(kind, "__args__", ())
            if dataclasses.is_dataclass(argument)
        ]
        return tuple(_as_sent(item, item_type) for item in value)
    return value
