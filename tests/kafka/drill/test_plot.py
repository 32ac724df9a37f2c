from pathlib import Path

import pytest
from tests.kafka.drill.sample import drill_report

from headrace.kafka.drill import plot
from headrace.kafka.errors import DrillError


def test_a_drill_is_drawn_as_png(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / "pictures" / "drill.png"

    plot.write_plot(drill_report(), path)

    assert path.read_bytes().startswith(b"\x89PNG")


def test_without_matplotlib_the_fix_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plot, "can_plot", lambda: False)

    with pytest.raises(DrillError, match=r"pip install '\.\[bench\]'"):
        plot.write_plot(drill_report(), tmp_path / "drill.png")
