"""What a topic's values are taken for; without Spark."""

import pytest

from headrace.pipelines.errors import PipelineDefinitionError
from headrace.pipelines.topic_sample import TopicSample
from headrace.pipelines.topic_view import Shape, find_shape, needs_sample


def sample(*values: bytes) -> TopicSample:
    return TopicSample(values, has_broker_times=False)


@pytest.mark.parametrize(
    ("values", "shape"),
    [
        ([b'{"a": 1}', b'{"a": 2}', b"broken"], Shape("json", "`a` bigint")),
        ([b'{"a": 1}', b"one", b"two"], Shape("text")),
        ([b"[1]", b"2"], Shape("text")),
        ([b"caf\xc3\xa9"], Shape("text")),
        ([b"caf\xe9"], Shape("binary")),
        ([b"a\0b"], Shape("binary")),
        ([b"[" * 100_000], Shape("text")),
        ([], Shape("text")),
    ],
)
def test_a_sample_tells_the_format(values: list[bytes], shape: Shape) -> None:
    assert find_shape("auto", None, sample(*values)) == shape


def test_what_is_said_is_not_guessed() -> None:
    json = sample(b'{"a": 1}')

    assert find_shape("text", None, json) == Shape("text")
    assert find_shape("auto", "a string", json) == Shape("json", "a string")
    assert find_shape("tsv", "a string", None) == Shape("tsv", "a string")
    assert not needs_sample("auto", "a string")
    assert not needs_sample("binary", None)
    assert needs_sample("auto", None)


def test_a_format_that_cannot_be_is_refused() -> None:
    with pytest.raises(PipelineDefinitionError, match="format 'jsn': write auto, json"):
        find_shape("jsn", None, None)
    with pytest.raises(PipelineDefinitionError, match="format tsv needs a schema"):
        find_shape("tsv", None, None)


def test_a_schema_that_is_none_is_told_before_spark_sees_it() -> None:
    with pytest.raises(PipelineDefinitionError, match="'strin' at character 4: wanted a type"):
        find_shape("auto", "id strin", None)
