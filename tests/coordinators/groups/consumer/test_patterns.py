import pytest
from tests.coordinators.groups.consumer.model import GROUP, Bench, Topics

from headrace.coordinators.errors import InvalidRegexError
from headrace.coordinators.groups.consumer.patterns import (
    NAMES_AT_ONCE,
    TopicMatcher,
    compile_pattern,
)
from headrace.coordinators.groups.limits import ConsumerLimits
from headrace.coordinators.groups.messages import ConsumerHeartbeatReply
from headrace.coordinators.groups.records import ResolvedRegex, Tombstone


@pytest.fixture
def bench() -> Bench:
    return Bench(Topics(apples=2, apricots=1, pears=1))


def join(bench: Bench, member_id: str, regex: str) -> ConsumerHeartbeatReply:
    return bench.heartbeat(member_id, 0, topic_regex=regex, owned={}, rebalance_timeout_ms=60_000)


def joined(bench: Bench, member_id: str, regex: str) -> ConsumerHeartbeatReply:
    """Join, and come back when the topics have been looked for."""
    first = join(bench, member_id, regex)
    bench.resolve()
    return bench.heartbeat(member_id, first.member_epoch)


def test_an_expression_subscribes_to_all_it_matches(bench: Bench) -> None:
    reply = joined(bench, "a", "ap.*")

    assert reply.assignment == {
        bench.topics.id("apples"): (0, 1),
        bench.topics.id("apricots"): (0,),
    }
    (resolved,) = (one for one in bench.log if isinstance(one, ResolvedRegex))
    assert (resolved.regex, resolved.topics) == ("ap.*", ("apples", "apricots"))


def test_the_heartbeat_that_brings_it_is_answered_before_topics_are_looked_for(
    bench: Bench,
) -> None:
    first = join(bench, "a", "ap.*")

    # As from Kafka 4.3.1: the group has no epoch of its own yet, and nothing to give.
    assert (first.member_epoch, first.assignment) == (1, {})
    assert bench.group.epoch == 1
    assert not any(isinstance(one, ResolvedRegex) for one in bench.log)


def test_what_is_subscribed_to_by_name_is_given_first(bench: Bench) -> None:
    first = bench.heartbeat(
        "a", 0, topic_names=["pears"], topic_regex="apr.*", owned={}, rebalance_timeout_ms=1
    )
    bench.resolve()
    then = bench.heartbeat("a", 2)

    assert (first.member_epoch, first.assignment) == (2, {bench.topics.id("pears"): (0,)})
    assert then.member_epoch == 3
    assert then.assignment == {bench.topics.id("pears"): (0,), bench.topics.id("apricots"): (0,)}
    assert bench.group.subscribed_topics() == {"pears", "apricots"}
    assert bench.group.is_subscribed_to("apricots")


def test_internal_topics_match_like_any_other(bench: Bench) -> None:
    offsets = bench.topics.create("__consumer_offsets", 1)

    assert joined(bench, "a", "__.*").assignment == {offsets: (0,)}


def test_it_has_to_match_the_whole_name(bench: Bench) -> None:
    first = join(bench, "a", "appl")
    bench.resolve()

    # Nothing was found, so nothing has changed: no epoch.
    assert first.assignment == {}
    assert bench.group.epoch == 1
    assert bench.heartbeat("a", 1).assignment is None


def test_one_that_is_resolved_already_needs_no_search(bench: Bench) -> None:
    joined(bench, "a", "pe.*")

    reply = join(bench, "b", "pe.*")

    assert reply.member_epoch == 3
    assert bench.resolve().records == []


def test_a_search_whose_news_were_not_written_is_due_again(bench: Bench) -> None:
    join(bench, "a", "ap.*")
    bench.writes_fail = True
    bench.resolve()
    bench.writes_fail = False

    assert bench.group.resolution.is_due(bench.topics)
    bench.resolve()
    assert bench.heartbeat("a", 1).assignment


def test_a_search_that_was_broken_off_is_due_again(bench: Bench) -> None:
    join(bench, "a", "ap.*")
    bench.group.resolution.begin(bench.topics)
    assert not bench.group.resolution.is_due(bench.topics)

    bench.group.resolution.abandon()

    assert bench.group.resolution.is_due(bench.topics)


def test_an_expression_given_up_during_the_search_is_not_written(bench: Bench) -> None:
    join(bench, "a", "ap.*")
    search = bench.group.resolution.begin(bench.topics)
    bench.heartbeat("a", 1, topic_regex="", topic_names=["pears"])
    for _ in search.steps:
        pass

    assert bench.group.resolution.outcome(search, bench.topics, bench.now_ms).records == []


def test_a_group_that_was_loaded_looks_at_the_topics_once_and_writes_nothing(
    bench: Bench,
) -> None:
    joined(bench, "a", "ap.*")
    bench.group = bench.replayed()

    assert bench.group.resolution.is_due(bench.topics)
    assert bench.resolve().records == []
    assert not bench.group.resolution.is_due(bench.topics)


@pytest.mark.parametrize(
    ("regex", "fault"),
    [
        ("(apples", "missing closing )"),
        ("[a", "missing closing ]"),
        ("a)", "regexp/syntax: internal error"),
        ("*", "missing argument to repetition operator"),
        ("a**", "invalid nested repetition operator"),
        ("a{1001}", "invalid repeat count"),
        ("a\\", "trailing backslash at end of expression"),
        ("(?=a)", "invalid or unsupported Perl syntax"),
        ("(?P<n", "invalid named capture"),
        ("[z-a]", "invalid character class range"),
        ("\\8", "invalid escape sequence"),
    ],
)
def test_a_wrong_expression_is_refused_in_kafkas_words_and_changes_nothing(
    bench: Bench, regex: str, fault: str
) -> None:
    with pytest.raises(InvalidRegexError) as refusal:
        join(bench, "a", regex)

    assert str(refusal.value) == (
        f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {fault}."
    )
    assert bench.log == []


def test_a_new_topic_that_matches_is_assigned(bench: Bench) -> None:
    joined(bench, "a", "ap.*")
    new_id = bench.topics.create("apex", 1)

    bench.heartbeat("a", 2)
    bench.resolve()
    reply = bench.heartbeat("a", 2)

    assert reply.member_epoch == 3
    assert reply.assignment is not None
    assert new_id in reply.assignment


def test_a_new_topic_that_does_not_match_changes_nothing(bench: Bench) -> None:
    joined(bench, "a", "ap.*")
    written = len(bench.log)
    bench.topics.create("plums", 1)

    assert bench.heartbeat("a", 2).member_epoch == 2
    bench.resolve()
    assert bench.heartbeat("a", 2).member_epoch == 2
    assert len(bench.log) == written


def test_a_topic_that_is_gone_costs_one_epoch_not_two(bench: Bench) -> None:
    joined(bench, "a", "ap.*")
    bench.topics.delete("apricots")

    bench.heartbeat("a", 2)
    bench.resolve()

    assert bench.group.epoch == 3
    assert bench.group.subscribed_topics() == {"apples"}


def test_the_last_to_use_an_expression_takes_it_along(bench: Bench) -> None:
    joined(bench, "a", "ap.*")
    join(bench, "b", "ap.*")
    end = Tombstone(ResolvedRegex, (GROUP, "ap.*"))

    bench.heartbeat("a", -1)
    assert end not in bench.log
    bench.heartbeat("b", 3, topic_regex="")

    assert end in bench.log
    assert bench.group.subscribed_topics() == frozenset()


def test_a_leaver_ends_the_expression_that_only_it_used(bench: Bench) -> None:
    joined(bench, "a", "ap.*")
    bench.heartbeat("a", -1)

    assert Tombstone(ResolvedRegex, (GROUP, "ap.*")) in bench.log


def test_an_expression_can_be_changed(bench: Bench) -> None:
    bench.limits = ConsumerLimits(assignment_interval_ms=0)
    assigned = joined(bench, "a", "ap.*").assignment

    # What the new one matches is not known yet: all that the old one gave has to be given up.
    reply = bench.heartbeat("a", 2, topic_regex="pe.*", owned=assigned)
    assert (reply.member_epoch, reply.assignment) == (2, {})
    bench.resolve()
    reply = bench.heartbeat("a", 2, owned={})

    assert reply.assignment == {bench.topics.id("pears"): (0,)}


def test_expressions_that_take_forever_elsewhere_do_not(bench: Bench) -> None:
    hard = "(a+)+b"

    assert compile_pattern(hard).fullmatch("a" * 200) is None


def test_only_names_not_seen_before_are_matched() -> None:
    class Counting:
        seen: list[str] = []  # noqa: RUF012

        def fullmatch(self, text: str) -> object | None:
            self.seen.append(text)
            return text if text.startswith("a") else None

    matcher = TopicMatcher()
    matcher._patterns["a.*"] = Counting()

    def topics(*names: str) -> frozenset[str]:
        for _ in matcher.search(["a.*"], frozenset(names)):
            pass
        return matcher.found("a.*")

    assert topics("ab", "c") == {"ab"}
    assert topics("ad", "c", "ab") == {"ab", "ad"}
    assert topics("ad") == {"ad"}
    assert sorted(Counting.seen) == ["ab", "ad", "c"]


def test_others_have_their_turn_after_every_few_names() -> None:
    class Counting:
        seen = 0

        def fullmatch(self, text: str) -> object | None:
            self.seen += 1
            return text

    matcher, pattern = TopicMatcher(), Counting()
    matcher._patterns[".*"] = pattern
    names = frozenset(f"topic-{number}" for number in range(10_000))
    at_each_turn = [pattern.seen for _ in matcher.search([".*"], names)]

    assert at_each_turn == list(range(NAMES_AT_ONCE, 10_001, NAMES_AT_ONCE))
    assert len(matcher.found(".*")) == 10_000
