from collections.abc import Callable

import pytest
from tests.cli.conftest import Answer, Run


def eventually(look: Callable[[], Answer], wanted: Callable[[Answer], bool]) -> Answer:
    """Look until it is so: a broker hears of a change after the controller has answered."""
    while not wanted(answer := look()):
        pass
    return answer


@pytest.fixture
def target(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """The words that name a topic, a broker or a group, by the parameter."""
    if request.param == "topic":
        return ("topic", str(request.getfixturevalue("topic")))
    return ("broker", "1") if request.param == "broker" else ("group", "billing")


@pytest.mark.parametrize(
    ("target", "name", "value"),
    [
        ("topic", "retention.ms", "123456"),
        ("broker", "log.retention.ms", "123456"),
        ("group", "consumer.session.timeout.ms", "50000"),
    ],
    indirect=["target"],
)
def test_a_config_is_set_shown_and_unset(
    run: Run, target: tuple[str, ...], name: str, value: str
) -> None:
    def shown() -> Answer:
        return run("configs", "show", *target)

    assert name not in shown().stdout
    done = run("configs", "set", *target, f"{name}={value}")
    assert (done.code, done.stdout) == (0, f"{' '.join(target)}: set {name}={value}\n")
    answer = eventually(shown, lambda answer: name in answer.stdout)
    assert [name, value] in [line.split()[:2] for line in answer.lines]

    done = run("configs", "unset", *target, name, "--json")
    assert done.objects == [{"kind": target[0], "name": target[1], "configs": {name: None}}]
    eventually(shown, lambda answer: name not in answer.stdout)


def test_all_shows_the_defaults_with_their_source(run: Run, topic: str) -> None:
    configs = run("configs", "show", "topic", topic, "--all", "--json").objects

    by_name = {config["name"]: config for config in configs}
    assert by_name["cleanup.policy"]["value"] == "delete"
    assert by_name["cleanup.policy"]["source"] == "DEFAULT_CONFIG"
    assert list(by_name) == sorted(by_name)


def test_the_only_broker_needs_no_id(run: Run) -> None:
    named = run("configs", "show", "broker", "1")

    assert named.code == 0
    assert "listeners" in named.stdout
    assert run("configs", "show", "broker").stdout == named.stdout
    done = run("configs", "set", "broker", "log.retention.ms=7")
    assert done.stdout == "broker 1: set log.retention.ms=7\n"
    assert run("configs", "unset", "broker", "log.retention.ms").code == 0


def test_a_broker_that_is_not_there_is_told_with_those_that_are(run: Run) -> None:
    answer = run("configs", "show", "broker", "77")

    assert answer.code == 2
    assert answer.stderr == "headrace: no broker has the id 77; there are 1\n"


def test_a_topic_that_is_not_there_is_told(run: Run) -> None:
    answer = run("configs", "show", "topic", "absent")

    assert answer.code == 1
    assert "there is no such topic" in answer.stderr


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["show", "topic"], "name the topic"),
        (["set", "topic", "orders"], "name at least one config"),
        (["set", "topic", "orders", "retention.ms"], "write NAME=VALUE"),
        (["unset", "group", "billing"], "name at least one config"),
    ],
)
def test_wrong_usage_is_told(run: Run, words: list[str], sentence: str) -> None:
    answer = run("configs", *words)

    assert answer.code == 2
    assert sentence in answer.stderr


def test_a_value_kafka_refuses_is_told_in_kafkas_words(run: Run, topic: str) -> None:
    answer = run("configs", "set", "topic", topic, "retention.ms=soon")

    assert answer.code == 1
    assert "retention.ms" in answer.stderr


@pytest.mark.parametrize(
    ("target", "misspelt", "meant"),
    [
        ("broker", "log.retentin.ms", "log.retention.ms"),
        ("topic", "retentin.ms", "retention.ms"),
        ("group", "consumer.sesion.timeout.ms", "consumer.session.timeout.ms"),
    ],
    indirect=["target"],
)
@pytest.mark.parametrize("command", ["set", "unset"])
def test_a_misspelt_name_is_refused_with_the_one_that_was_meant(
    run: Run, target: tuple[str, ...], command: str, misspelt: str, meant: str
) -> None:
    words = [f"{misspelt}=5000"] if command == "set" else [misspelt]

    answer = run("configs", command, *target, *words)

    assert (answer.code, answer.stdout) == (2, "")
    sentence = f"{misspelt}: no {target[0]} config has this name; did you mean {meant}?"
    assert sentence in answer.stderr
    assert "--force" in answer.stderr


def test_a_name_only_a_plug_in_knows_can_be_forced_on_a_broker_and_taken_back(run: Run) -> None:
    def shown() -> Answer:
        return run("configs", "show", "broker")

    assert run("configs", "set", "broker", "some.plug.in=5", "--force").code == 0
    listed = eventually(shown, lambda answer: "some.plug.in" in answer.stdout)
    assert ["some.plug.in", "(hidden)"] in [line.split()[:2] for line in listed.lines]

    assert run("configs", "unset", "broker", "some.plug.in").code == 0
    eventually(shown, lambda answer: "some.plug.in" not in answer.stdout)


def test_a_topic_takes_no_unknown_name_even_when_forced(run: Run, topic: str) -> None:
    answer = run("configs", "set", "topic", topic, "retentin.ms=5", "--force")

    assert answer.code == 1
    assert "Unknown topic config name: retentin.ms" in answer.stderr
