import pickle

import pytest

from headrace.pipelines.errors import PipelineDefinitionError
from headrace.pipelines.loops import TopicsInUse, refuse_duplicates, refuse_loops
from headrace.pipelines.sinks.console import Console
from headrace.pipelines.sinks.lake.sink import LakeSink
from headrace.pipelines.sinks.lake.source import LakeSource
from headrace.pipelines.sinks.sql.table import SqlTable
from headrace.pipelines.sinks.topic import TopicSink
from headrace.pipelines.source import TopicSource

ORDERS = TopicSource(topics=("orders",))
LIKE_ORDERS = TopicSource(pattern="orders.*")


@pytest.mark.parametrize(
    ("source", "topic"), [(ORDERS, "orders"), (LIKE_ORDERS, "orders"), (LIKE_ORDERS, "orders-eu")]
)
def test_a_topic_that_is_read_is_not_written(source: TopicSource, topic: str) -> None:
    with pytest.raises(PipelineDefinitionError, match=f"topic {topic} would be read and written"):
        refuse_loops(source, [TopicSink("elsewhere"), TopicSink(topic)])


def test_other_topics_and_other_sinks_are_written() -> None:
    refuse_loops(ORDERS, [TopicSink("orders-eu"), TopicSink(None), Console()], "bad")
    refuse_loops(LIKE_ORDERS, [TopicSink("eu-orders")], "bad")
    refuse_loops(LakeSource(path="lake", topics=("orders",)), [TopicSink("orders")], "bad")


def test_what_allows_it_is_named_and_allows_it() -> None:
    with pytest.raises(PipelineDefinitionError, match="or say same_topic=yes"):
        refuse_loops(ORDERS, [TopicSink("orders")], unless="say same_topic=yes")

    refuse_loops(ORDERS, [TopicSink("orders", may_loop=True)])


def test_dead_letters_that_would_be_read_are_refused() -> None:
    with pytest.raises(PipelineDefinitionError, match="dead letters of this run would go to bad"):
        refuse_loops(TopicSource(pattern="ba.*"), [], "bad")
    with pytest.raises(PipelineDefinitionError, match="which it reads"):
        refuse_loops(TopicSource(topics=("r.dead-letters",)), [], "r.dead-letters")


def test_a_pattern_does_not_match_dead_letters_under_their_usual_name() -> None:
    refuse_loops(TopicSource(pattern=".*"), [], "r.dead-letters")


def test_dead_letters_and_rows_do_not_share_a_topic() -> None:
    with pytest.raises(PipelineDefinitionError, match="is where the dead letters of this run go"):
        refuse_loops(ORDERS, [TopicSink("bad")], "bad")


def test_the_check_of_single_rows_travels_to_the_workers() -> None:
    refuse = pickle.loads(pickle.dumps(TopicsInUse.of(LIKE_ORDERS, "bad").refuse))

    assert "it matches orders.*" in refuse("orders-eu")
    assert "--dead-letter-topic" in refuse("bad")
    assert refuse("else") is None


def test_two_sinks_that_are_one_place_are_refused() -> None:
    """Both would keep one note, and each would take what the other wrote for its own."""
    with pytest.raises(PipelineDefinitionError, match="to topic copies twice; name it once"):
        refuse_duplicates(
            [TopicSink("copies"), TopicSink("others"), TopicSink("copies", guard="off")]
        )
    with pytest.raises(PipelineDefinitionError, match="to delta lake lake twice"):
        refuse_duplicates([LakeSink("lake", "parquet"), LakeSink("lake", "delta")])
    with pytest.raises(PipelineDefinitionError, match="to the topics that rows name twice"):
        refuse_duplicates([TopicSink(None), TopicSink(None)])

    url = "postgresql://headrace@db/lake?schema="
    refuse_duplicates([TopicSink("copies"), TopicSink(None), Console(), Console()])
    refuse_duplicates([SqlTable(f"{url}one", "t", "id"), SqlTable(f"{url}two", "t", "id")])


def test_a_row_does_not_name_a_topic_that_has_a_sink_of_its_own() -> None:
    in_use = TopicsInUse.of(ORDERS, "bad", [TopicSink("copies"), TopicSink(None)])

    assert "by a sink of its own" in str(in_use.refuse_row("copies"))
    assert "would be read and written" in str(in_use.refuse_row("orders"))
    assert in_use.refuse_row("else") is None
    assert in_use.refuse("copies") is None, "the sink itself writes there"
