"""Nothing that is secret stands on a command line: every user of the machine can read those."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark

SECRET = 'se"cr\\et=# ö€'  # with all that a file of properties and a shell might trip over
# As the runner opens it; says what arrived, and waits to be looked at.
SESSION = """
import os, sys
from pathlib import Path
from headrace.pipelines.spark.session import close_session, open_session

secret = os.environ["SECRET"]
name = "spark.hadoop.fs.s3a.secret.key"
spark = open_session("secrets", is_quick=True, log_file=Path(sys.argv[1]), conf={name: secret})
print(spark.sparkContext.getConf().get(name) == secret, flush=True)
sys.stdin.readline()
close_session(spark)
"""


def command_lines_below(root: int) -> Iterator[bytes]:
    """Those of a process and of all that it has started, as they are at this moment."""
    pending = [root]
    while pending:
        pid = pending.pop()
        try:
            yield Path(f"/proc/{pid}/cmdline").read_bytes()
            for task in Path(f"/proc/{pid}/task").iterdir():
                pending += map(int, (task / "children").read_text().split())
        except OSError:
            continue  # it has ended


def test_a_secret_setting_is_on_no_command_line_while_spark_starts_and_runs(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", SESSION, tmp_path / "spark.log"],
        env={**os.environ, "SECRET": SECRET, "TMPDIR": str(tmp_path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin
    assert process.stdout
    os.set_blocking(process.stdout.fileno(), False)
    seen, answer = set[bytes](), b""
    while process.poll() is None and not answer:
        seen |= set(command_lines_below(process.pid))
        answer = process.stdout.read() or b""
    seen |= set(command_lines_below(process.pid))
    process.communicate(b"\n")

    assert (process.returncode, answer) == (0, b"True\n")
    assert any(b"org.apache.spark.deploy.SparkSubmit" in line for line in seen)
    assert [line for line in seen if b"cr\\et" in line or b"secret.key=" in line] == []
    assert not list(tmp_path.glob("headrace-spark-*"))
