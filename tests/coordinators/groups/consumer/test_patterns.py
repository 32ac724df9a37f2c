import pytest
from tests.coordinators.groups.consumer.model import GROUP, Bench, Topics

from headrace.coordinators.groups.consumer.limits import ConsumerLimits
from headrace.coordinators.groups.consumer.patterns import TopicMatcher, compile_pattern
from headrace.coordinators.groups.messages import ConsumerHeartbeatReply
from headrace.coordinators.groups.records import ResolvedRegex, Tombstone
from headrace.errors import InvalidRegexError


@pytest.fixture
def bench() -> Bench:
    return Bench(Topics(apples=2, apricots=1, pears=1))


def join(bench: Bench, member_id: str, regex: str) -> ConsumerHeartbeatReply:
    return bench.heartbeat(member_id, 0, topic_regex=regex, owned={}, rebalance_timeout_ms=60_000)


def test_an_expression_subscribes_to_all_it_matches(bench: Bench) -> None:
    reply = join(bench, "a", "ap.*")

    assert reply.assignment == {
        bench.topics.id("apples"): (0, 1),
        bench.topics.id("apricots"): (0,),
    }
    (resolved,) = (one for one in bench.log if isinstance(one, ResolvedRegex))
    assert (resolved.regex, resolved.topics) == ("ap.*", ("apples", "apricots"))


def test_it_has_to_match_the_whole_name(bench: Bench) -> None:
    assert join(bench, "a", "appl").assignment == {}


def test_names_and_expression_go_together(bench: Bench) -> None:
    reply = bench.heartbeat(
        "a", 0, topic_names=["pears"], topic_regex="apr.*", owned={}, rebalance_timeout_ms=1
    )

    assert reply.assignment is not None
    assert set(reply.assignment) == {bench.topics.id("pears"), bench.topics.id("apricots")}
    assert bench.group.subscribed_topics() == {"pears", "apricots"}
    assert bench.group.is_subscribed_to("apricots")


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
    join(bench, "a", "ap.*")
    new_id = bench.topics.create("apex", 1)

    reply = bench.heartbeat("a", 2)

    assert reply.member_epoch == 3
    assert reply.assignment is not None
    assert new_id in reply.assignment


def test_a_new_topic_that_does_not_match_changes_nothing(bench: Bench) -> None:
    join(bench, "a", "ap.*")
    written = len(bench.log)
    bench.topics.create("plums", 1)

    assert bench.heartbeat("a", 2).member_epoch == 2
    assert len(bench.log) == written


def test_the_last_to_use_an_expression_takes_it_along(bench: Bench) -> None:
    join(bench, "a", "ap.*")
    join(bench, "b", "ap.*")
    end = Tombstone(ResolvedRegex, (GROUP, "ap.*"))

    bench.heartbeat("a", -1)
    assert end not in bench.log
    bench.heartbeat("b", 3, topic_regex="")

    assert end in bench.log
    assert bench.group.subscribed_topics() == frozenset()


def test_a_leaver_ends_the_expression_that_only_it_used(bench: Bench) -> None:
    join(bench, "a", "ap.*")
    bench.heartbeat("a", -1)

    assert Tombstone(ResolvedRegex, (GROUP, "ap.*")) in bench.log


def test_an_expression_can_be_changed(bench: Bench) -> None:
    bench.limits = ConsumerLimits(assignment_interval_ms=0)
    assigned = join(bench, "a", "ap.*").assignment

    bench.heartbeat("a", 2, topic_regex="pe.*", owned=assigned)
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

    assert matcher.topics("a.*", ["ab", "c"]) == {"ab"}
    assert matcher.topics("a.*", ["ad", "c", "ab"]) == {"ab", "ad"}
    assert matcher.topics("a.*", ["ad"]) == {"ad"}
    assert sorted(Counting.seen) == ["ab", "ad", "c"]
