import json
import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from headrace.cli.app import app
from headrace.kafka.cluster import Cluster
from headrace.kafka.errors import ClusterError


@pytest.fixture
def clusters(tmp_path, monkeypatch):
    """Where clusters of this test lie."""
    directory = tmp_path / "clusters"
    monkeypatch.setenv("HEADRACE_KAFKA_DIR", str(directory))
    monkeypatch.setenv("NO_COLOR", "1")
    yield directory
    for path in directory.glob("*/cluster.json"):
        Cluster.open(path.parent).destroy()


def kafka(*words):
    return CliRunner().invoke(app, ["kafka", *map(str, words)])


def test_where_there_is_no_cluster_the_fix_is_named(clusters, tmp_path):
    for command in (["down"], ["status"], ["destroy", "--yes"], ["kill", 1], ["logs", 1]):
        answer = kafka(*command)
        assert answer.exit_code == 1
        assert "there is no cluster called default; 'headrace kafka up' makes it" in answer.stderr
    assert "'headrace kafka up --name x' makes it" in kafka("down", "--name", "x").stderr
    assert f"there is no cluster in {tmp_path}" in kafka("down", "--dir", tmp_path).stderr


def test_an_empty_list_says_where_it_looked(clusters):
    answer = kafka("list")

    assert (answer.exit_code, answer.stdout) == (0, "")
    assert str(clusters) in answer.stderr


def test_clusters_are_listed_by_name(clusters):
    for name, brokers in (("b", 3), ("a", 1)):
        Cluster.create(clusters / name, name, brokers=brokers)

    rows = [json.loads(line) for line in kafka("list", "--json").stdout.splitlines()]

    assert [(row["cluster"], row["brokers"], row["state"]) for row in rows] == [
        ("a", 1, "stopped"),
        ("b", 3, "stopped"),
    ]
    assert "there are a, b;" in kafka("down", "--name", "c").stderr


def test_a_stopped_cluster_has_a_status_without_asking_kafka(clusters):
    Cluster.create(clusters / "default", brokers=2, controllers=1)

    (status,) = (json.loads(line) for line in kafka("status", "--json").stdout.splitlines())

    assert status["state"] == "stopped"
    assert status["active_controller"] is None
    assert [(each["node"], each["roles"], each["pid"]) for each in status["nodes"]] == [
        (1, ["broker"], None),
        (2, ["broker"], None),
        (3, ["controller"], None),
    ]
    assert "stopped" in kafka("status").stdout


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--brokers", "2"], "is there with --brokers 1, not 2: make another with --name, or"),
        (["--controllers", "1"], "is there with --controllers 0, not 1"),
        (["--version", "4.2"], "is there with --version 4.3.1, not 4.2."),
        (["--set", "num.partitions=3"], "is there with --set nothing, not num.partitions=3"),
        (["--version", "9.9"], "--version 9.9: Kafka 9.9 is not one of the versions"),
        (["--set", "few"], "few: write NAME=VALUE"),
        (["--name", "a/b"], "'a/b' cannot name a cluster"),
        (["--name", "new", "--set", "node.id=7"], "node.id is chosen by headrace"),
    ],
)
def test_what_up_cannot_do_is_refused_before_anything_starts(clusters, options, sentence):
    Cluster.create(clusters / "default", brokers=1)

    answer = kafka("up", *options)

    assert answer.exit_code in (1, 2)
    assert sentence in answer.stderr
    assert [path.name for path in clusters.iterdir()] == ["default"]


def test_up_with_a_path_for_a_name_leaves_the_link_there_alone(clusters, tmp_path):
    (tmp_path / "target").mkdir()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "target")

    for name in (str(link), "../link"):
        for more in ([], ["--dir", tmp_path / "elsewhere"]):
            answer = kafka("up", "--name", name, *more)

            assert answer.exit_code == 1
            assert f"'{name}' cannot name a cluster" in answer.stderr
            assert link.readlink() == tmp_path / "target"
    assert {path.name for path in tmp_path.iterdir()} <= {"clusters", "link", "target"}


def test_nothing_is_left_of_a_cluster_that_never_was_one(clusters, monkeypatch):
    from headrace.java.errors import JavaNotFoundError
    from headrace.kafka import cluster as cluster_module

    def fail():
        raise JavaNotFoundError(17, [])

    monkeypatch.setattr(cluster_module, "find_java", fail)

    answer = kafka("up")

    assert answer.exit_code == 1
    assert "Java 17 or newer is needed" in answer.stderr
    assert [*clusters.iterdir()] == []


def test_destroying_wants_a_yes(clusters):
    Cluster.create(clusters / "default", brokers=1)

    refused = kafka("destroy")
    done = kafka("destroy", "--yes")

    assert refused.exit_code == 2
    assert "say --yes" in refused.stderr
    assert (done.exit_code, done.stdout) == (0, "cluster default is gone\n")
    assert [*clusters.iterdir()] == []


@pytest.fixture
def no_start(monkeypatch):
    """`up` makes a cluster and starts nothing."""
    monkeypatch.setattr(Cluster, "up", lambda *_, **__: None)


def test_a_cluster_elsewhere_is_known_to_all_commands_by_its_name(clusters, tmp_path, no_start):
    place = tmp_path / "else where"

    up = kafka("up", "--brokers", 1, "--name", "mine", "--dir", place)

    assert "headrace kafka status --name mine" in up.stdout
    status = json.loads(kafka("status", "--name", "mine", "--json").stdout)
    assert status["directory"] == str(place)
    assert "was stopped already" in kafka("down", "--name", "mine").stdout
    assert "'headrace kafka start 1 --name mine'" in kafka("kill", 1, "--name", "mine").stderr
    assert json.loads(kafka("list", "--json").stdout)["cluster"] == "mine"
    assert kafka("up", "--name", "mine").exit_code == 0
    assert kafka("destroy", "--dir", place, "--yes").stdout == "cluster mine is gone\n"
    assert [*clusters.iterdir()] == []
    assert not place.exists()


def test_a_cluster_elsewhere_without_a_name_is_known_by_its_directory(clusters, tmp_path, no_start):
    place = tmp_path / "else where"

    up = kafka("up", "--brokers", 1, "--dir", place)

    assert f"headrace kafka status --dir '{place}'" in up.stdout
    assert "there is no cluster called default" in kafka("status").stderr
    assert kafka("status", "--dir", place).exit_code == 0


def test_a_name_is_given_to_one_cluster_and_a_cluster_has_one_name(clusters, tmp_path, no_start):
    kafka("up", "--brokers", 1, "--name", "mine", "--dir", tmp_path / "one")

    taken = kafka("up", "--brokers", 1, "--name", "mine", "--dir", tmp_path / "two")
    other = kafka("up", "--name", "other", "--dir", tmp_path / "one")
    asked = kafka("status", "--name", "other", "--dir", tmp_path / "one")

    assert f"a cluster called mine already, in {tmp_path / 'one'}; choose another" in taken.stderr
    assert not (tmp_path / "two").exists()
    for answer in (other, asked):
        assert f"the cluster in {tmp_path / 'one'} is called mine, not other" in answer.stderr


def test_nothing_is_left_of_a_name_whose_cluster_never_was_one(clusters, tmp_path, monkeypatch):
    def fail(*_, **__):
        raise ClusterError("no luck")

    monkeypatch.setattr(Cluster, "up", fail)

    assert kafka("up", "--name", "mine", "--dir", tmp_path / "one").exit_code == 1

    assert [*clusters.iterdir()] == []
    assert not (tmp_path / "one").exists()


def test_nodes_that_do_not_run_or_are_not_there_are_named(clusters):
    Cluster.create(clusters / "default", brokers=1)

    for command in ("kill", "pause", "resume", "stop"):
        assert "node 1 does not run; 'headrace kafka start 1'" in kafka(command, 1).stderr
    for command in ("kill", "start", "restart", "logs"):
        assert "cluster default has no node 7; its nodes are 1" in kafka(command, 7).stderr
    assert "it has no log" in kafka("logs", 1).stderr


def test_logs_are_the_last_lines_of_the_file(clusters):
    node = Cluster.create(clusters / "default", brokers=1).node(1)
    node.directory.mkdir()
    node.log_file.write_text("".join(f"line {number}\n" for number in range(100)))

    assert kafka("logs", 1, "--lines", 2).stdout == "line 98\nline 99\n"
    assert kafka("logs", 1, "--lines", 0).stdout == ""
    assert len(kafka("logs", 1).stdout.splitlines()) == 50


def test_a_log_is_followed_over_its_rolling(clusters):
    from tests.cli.processes import headrace_process, read_lines

    node = Cluster.create(clusters / "default", brokers=1).node(1)
    node.directory.mkdir()
    node.log_file.write_text("first\n")
    with headrace_process("", "kafka", "logs", 1, "--follow") as process:
        assert read_lines(process.stdout, 1) == ["first"]
        node.log_file.rename(node.log_file.with_suffix(".log.1"))
        node.log_file.write_text("second\n")
        assert read_lines(process.stdout, 1) == ["second"]


def test_tools_are_listed_and_guessed(clusters):
    assert "console-consumer" in kafka("tool", "--list").stdout
    unknown = kafka("tool", "topcs")
    assert unknown.exit_code == 2
    assert "no tool is called topcs; did you mean topics?" in unknown.stderr
    assert "name a tool" in kafka("tool").stderr
    assert "or name the brokers of another" in kafka("tool", "topics", "--list").stderr


def run(*words, stdin=""):
    """As a process: a tool takes the place of the command."""
    return subprocess.run(
        [sys.executable, "-m", "headrace", "kafka", *map(str, words)],
        input=stdin,
        capture_output=True,
        text=True,
        env=os.environ,
    )


@pytest.mark.java
@pytest.mark.timeout(1800)
def test_a_cluster_lives_through_commands_that_come_and_go(clusters):
    up = run("up", "--brokers", 1, "--json")
    assert up.returncode == 0, up.stderr
    made = json.loads(up.stdout)
    (pid,) = (node["pid"] for node in made["nodes"])

    created = run("tool", "topics", "--create", "--topic", "orders")
    assert (created.returncode, created.stdout) == (0, "Created topic orders.\n")
    status = json.loads(kafka("status", "--json").stdout)
    assert (status["state"], status["active_controller"]) == ("running", 1)
    assert status["nodes"][0]["pid"] == pid
    assert [each["topic"] for each in status["partitions"]] == ["orders"]
    assert "cluster default was up already" in kafka("up").stdout

    assert run("kill", 1).stdout == "node 1 is killed\n"
    again = run("up")
    assert "cluster default is up after" in again.stdout
    assert f"export HEADRACE_BOOTSTRAP={made['bootstrap']}" in again.stdout
    assert "Kafka Server started" in kafka("logs", 1, "-n", 1).stdout
    failed = run("tool", "topics", "--describe", "--topic", "no-such")
    assert failed.returncode == 1
    assert "orders" in kafka("status", "--partitions").stdout

    assert run("down").stdout == "cluster default is stopped\n"
    assert kafka("destroy", "--yes").exit_code == 0
    assert not (clusters / "default").exists()
