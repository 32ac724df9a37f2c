import json
from pathlib import Path

import pytest
from tests.kafka.drill.sample import drill_report, scenario_report

from headrace.kafka.drill.plan import Scenario
from headrace.kafka.drill.report import Resync
from headrace.kafka.errors import DrillError

RESYNC = Resync(
    node=2, messages=1_000_000, missed_bytes=100_000_000, write_s=20, jvm_start_s=4, catch_up_s=1
)


def test_the_figures_of_a_resynchronisation_follow_from_its_facts() -> None:
    assert RESYNC.back_s == 5
    assert RESYNC.mb_per_s == 20
    assert RESYNC.written_per_s == 50_000


def test_the_json_file_has_every_fact(tmp_path: Path) -> None:
    report = drill_report(scenario_report(), scenario_report(Scenario.RESYNC, resync=RESYNC))

    report.write_json(tmp_path / "new" / "report.json")

    facts = json.loads((tmp_path / "new" / "report.json").read_text("utf-8"))
    assert facts["is_passed"] is True
    assert facts["verdict"] == report.verdict
    assert facts["balance"]["acknowledged"] == 100
    assert facts["cluster"]["timeouts"]["session_s"] == 9
    assert facts["scenarios"][0]["events"][1] == {
        "at_s": 3,
        "kind": "fault",
        "text": "node 1 killed",
        "node": 1,
    }
    assert facts["scenarios"][0]["limit"]["seconds"] == 12.02
    assert facts["scenarios"][1]["resync"]["back_s"] == 5
    assert facts["course"][5] == {"at_s": 5, "acknowledged": 0, "longest_wait_s": 0.01}


def test_a_file_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(DrillError, match=f"cannot write {tmp_path}: Is a directory"):
        drill_report().write_json(tmp_path)
