"""The fixtures as a user's test suite meets them, each in a pytest of its own."""

import re
from pathlib import Path

import pytest

# What our own suite treats as an error is the user's business there.
ARGUMENTS = ("-p", "no:cacheprovider", "-W", "default")


def test_each_test_gets_a_fresh_broker_and_the_session_one_is_shared(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(
        """
        import pytest
        from confluent_kafka.admin import AdminClient, NewTopic

        seen = []

        def topics(bootstrap):
            admin = AdminClient({"bootstrap.servers": bootstrap})
            names = set(admin.list_topics(timeout=120).topics)
            admin.create_topics([NewTopic("mine", 1)])["mine"].result(120)
            return names

        @pytest.mark.parametrize("turn", [1, 2])
        def test_fresh(headrace_bootstrap, turn):
            assert topics(headrace_bootstrap) == set()

        def test_shared(headrace_session_bootstrap):
            assert topics(headrace_session_bootstrap) == set()

        def test_shared_again(headrace_session_bootstrap, headrace_session_broker):
            admin = AdminClient({"bootstrap.servers": headrace_session_broker.bootstrap})
            assert set(admin.list_topics(timeout=120).topics) == {"mine"}
        """
    )

    pytester.runpytest_subprocess(*ARGUMENTS).assert_outcomes(passed=4)


def test_settings_come_from_the_marker_and_the_ini_file(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nheadrace_settings =\n    num.partitions=5\n    log.roll.ms=9000\n")
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.headrace(num_partitions=3)
        def test_marked(headrace_broker):
            assert headrace_broker.server.settings.int("num.partitions") == 3
            assert headrace_broker.server.settings.int("log.roll.ms") == 9000

        def test_unmarked(headrace_broker):
            assert headrace_broker.server.settings.int("num.partitions") == 5
        """
    )

    pytester.runpytest_subprocess("--strict-markers", *ARGUMENTS).assert_outcomes(passed=2)


def test_faults_and_requests_are_there(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        def test_them(headrace_broker):
            headrace_broker.faults.fail("Produce", "NOT_LEADER_OR_FOLLOWER")
            assert len(headrace_broker.requests) == 0
        """
    )

    pytester.runpytest_subprocess(*ARGUMENTS).assert_outcomes(passed=1)


@pytest.mark.parametrize(("store", "is_memory"), [("disk", False), ("memory", True)])
def test_the_store_can_be_chosen(pytester: pytest.Pytester, store: str, is_memory: bool) -> None:
    pytester.makepyfile(
        f"""
        import os

        def test_it(headrace_broker):
            in_memory = str(headrace_broker.data_dir).startswith("/dev/shm")
            assert in_memory is ({is_memory} and os.access("/dev/shm", os.W_OK))
        """
    )

    result = pytester.runpytest_subprocess(f"--headrace-store={store}", *ARGUMENTS)
    result.assert_outcomes(passed=1)


def test_a_bad_line_in_the_ini_file_is_named(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nheadrace_settings = nonsense\n")
    pytester.makepyfile("def test_it(headrace_broker): pass")

    result = pytester.runpytest_subprocess(*ARGUMENTS)

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*'nonsense' is not NAME=VALUE*"])


def test_every_example_in_the_docs_runs(pytester: pytest.Pytester) -> None:
    page = (Path(__file__).parents[1] / "docs" / "testing.md").read_text("utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    tests = [block for block in blocks if "def test_" in block]
    scripts = [block for block in blocks if "def test_" not in block]
    pytester.makepyfile(**{f"test_{number}": block for number, block in enumerate(tests)})

    pytester.runpytest_subprocess(*ARGUMENTS).assert_outcomes(passed=len(tests))
    for number, block in enumerate(scripts):
        script = pytester.makepyfile(**{f"script_{number}": block})
        assert pytester.runpython(script).ret == 0
