"""Which topic is gone on with, begun or refused: decided from ids, in every case there is."""

from hypothesis import given
from hypothesis import strategies as st

from headrace.mirror.endpoint import MirroredTopic
from headrace.mirror.errors import MirrorIdentityError, MirrorRefusedError
from headrace.mirror.identity import SOURCE, TARGET, is_other, made_anew
from headrace.mirror.plan import TopicPlan, plan_topic
from headrace.mirror.state import COPYING, STATE_TOPIC, TopicNote
from headrace.model import known_topic_id

topic_ids = st.sampled_from(["", "first", "second"])
clusters = st.sampled_from(["A", "B"])
notes = st.builds(
    TopicNote,
    name=st.just("mirror"),
    source_topic_id=topic_ids,
    target_topic_id=topic_ids,
    chain=st.just(("A",)),
    phase=st.just(COPYING),
    presets=st.just({}),
    target_cluster_id=st.sampled_from(["", "T", "U"]),
)


@given(
    source_topic_id=topic_ids,
    target_topic_id=st.none() | topic_ids,
    notes=st.dictionaries(clusters, notes),
    is_empty=st.booleans(),
    is_anew=st.booleans(),
)
def test_no_copy_is_gone_on_with_for_another_topic_nor_begun_over_messages(
    source_topic_id: str,
    target_topic_id: str | None,
    notes: dict[str, TopicNote],
    is_empty: bool,
    is_anew: bool,
) -> None:
    source = MirroredTopic("orders", source_topic_id, 1, 1, {})
    target = None if target_topic_id is None else source._replace(topic_id=target_topic_id)
    own = notes.get("A")
    plan = _plan(source, target, notes, is_empty=is_empty, is_anew=is_anew)

    if isinstance(plan, MirrorRefusedError):
        assert "orders" in str(plan)
        assert "--anew" in str(plan) or "delete it there" in str(plan)
        assert notes or not is_empty, "a first copy to an empty topic is never refused"
        return
    if plan.note is not None:
        assert target is not None
        assert plan.note is own
        assert not is_other(plan.note.source_topic_id, source.topic_id)
        assert not is_other(plan.note.target_topic_id, target.topic_id)
        assert not is_other(plan.note.target_cluster_id, "T")
    else:
        assert target is None or is_empty
        assert own is None or is_anew, "what was copied once is begun again only when asked for"


def _plan(
    source: MirroredTopic,
    target: MirroredTopic | None,
    notes: dict[str, TopicNote],
    *,
    is_empty: bool,
    is_anew: bool,
) -> TopicPlan | MirrorRefusedError:
    try:
        return plan_topic(
            source,
            target,
            notes,
            source_id="A",
            target_id="T",
            name="mirror",
            chain=("A",),
            is_target_empty=is_empty,
            is_anew=is_anew,
        )
    except MirrorRefusedError as refusal:
        return refusal


def test_an_id_that_is_not_known_is_not_compared() -> None:
    nothing = known_topic_id("AAAAAAAAAAAAAAAAAAAAAA")

    assert not is_other(nothing, "first")
    assert not is_other("first", nothing)
    assert is_other("first", "second")


def test_the_sentence_names_topic_ids_and_the_way_out() -> None:
    for side in (SOURCE, TARGET):
        sentence = str(made_anew(side, "orders", "id-then", "id-now"))
        assert f"topic orders was deleted at the {side} and made anew" in sentence
        assert "topic id id-then then, id-now now" in sentence
        assert "delete topic orders at the target and run again with --anew" in sentence


def test_lost_notes_are_not_taken_for_a_lost_copy() -> None:
    error = made_anew(TARGET, STATE_TOPIC, "then", "now")

    assert isinstance(error, MirrorIdentityError)
    assert "what was known of the copies is gone" in str(error)
