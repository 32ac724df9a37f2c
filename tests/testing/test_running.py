from pathlib import Path

import pytest

from headrace.errors import HeadraceError
from headrace.log.errors import DirectoryInUseError
from headrace.testing import broker_process, running_broker, setting_names


def test_underscores_are_dots_and_truth_is_lower_case() -> None:
    assert setting_names({"log_segment_bytes": 5, "auto.create.topics.enable": False}) == {
        "log.segment.bytes": "5",
        "auto.create.topics.enable": "false",
    }


def test_a_broker_in_this_process_has_an_address_and_leaves_nothing() -> None:
    with running_broker() as broker:
        data_dir = broker.data_dir
        assert broker.bootstrap == f"127.0.0.1:{broker.port}"
        assert broker.server.is_ready
        assert data_dir.is_dir()

    assert not broker.server.is_ready
    assert not data_dir.exists()


def test_a_given_directory_is_kept_and_can_be_used_again(tmp_path: Path) -> None:
    with running_broker(tmp_path) as broker:
        cluster_id = broker.server.service.broker.cluster_id

    with running_broker(tmp_path) as broker:
        assert broker.server.service.broker.cluster_id == cluster_id
        assert broker.server.open_report.was_clean


def test_its_settings_are_kafkas() -> None:
    with running_broker(num_partitions=7) as broker:
        assert broker.server.settings.int("num.partitions") == 7


def test_a_broker_started_again_has_the_same_address_and_data() -> None:
    with running_broker(in_memory=True) as broker:
        address, cluster_id = broker.bootstrap, broker.server.service.broker.cluster_id
        broker.restart()

        assert broker.bootstrap == address
        assert broker.server.service.broker.cluster_id == cluster_id
        assert broker.server.is_ready


def test_what_the_start_raises_comes_out_of_the_context_manager(tmp_path: Path) -> None:
    with (
        running_broker(tmp_path),
        pytest.raises(DirectoryInUseError),
        running_broker(tmp_path),
    ):
        pass


def test_a_setting_that_is_not_there_is_refused() -> None:
    with pytest.raises(HeadraceError, match=r"no\.such"), running_broker(no_such=1):
        pass


def test_code_can_run_in_the_brokers_own_loop() -> None:
    with running_broker() as broker:

        async def count_topics() -> int:
            return len(broker.server.service.broker.topics.all())

        assert broker.run(count_topics) == 0


def test_a_killed_process_leaves_a_directory_that_opens_again(tmp_path: Path) -> None:
    with broker_process(tmp_path) as broker:
        broker.kill()
        assert broker.process.returncode == -9

    with broker_process(tmp_path) as broker:
        assert broker.terminate() == 0
