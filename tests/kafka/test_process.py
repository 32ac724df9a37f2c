import signal
import subprocess
import sys
from pathlib import Path

from headrace.kafka import process

STUBBORN = (
    "import signal, sys; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
    "print('ready', flush=True); signal.pause()"
)


def run_until_ready(code, output):
    running = process.start([sys.executable, "-c", code], output=output)
    while running.poll() is None and "ready" not in process.tail(output):
        pass
    return running


def test_a_process_that_heeds_sigterm_ends_by_it(tmp_path):
    running = run_until_ready(
        "import signal; print('ready', flush=True); signal.pause()", tmp_path / "log"
    )

    assert process.stop(running, grace_s=120) == -signal.SIGTERM


def test_a_process_that_ignores_sigterm_is_killed(tmp_path):
    running = run_until_ready(STUBBORN, tmp_path / "log")

    assert process.stop(running, grace_s=0.1) == -signal.SIGKILL


def test_a_child_does_not_outlive_a_killed_parent(tmp_path):
    parent = (
        "import sys; from pathlib import Path; from headrace.kafka import process\n"
        "child = process.start([sys.executable, '-c', 'import signal; signal.pause()'],"
        " output=Path(sys.argv[1]))\n"
        "print(child.pid, flush=True); child.wait()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", parent, tmp_path / "log"], stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        pid = int(running.stdout.readline())
        running.kill()

    assert_ends(pid)


def assert_ends(pid):
    import psutil

    try:
        child = psutil.Process(pid)
    except psutil.NoSuchProcess:
        return
    gone, alive = psutil.wait_procs([child], timeout=120)
    assert gone
    assert not alive


def test_both_outputs_go_to_the_log_and_its_tail_is_the_last_lines(tmp_path):
    code = "import sys; print('out'); sys.stdout.flush(); print('err', file=sys.stderr)"
    process.start([sys.executable, "-c", code], output=tmp_path / "log").wait()

    assert process.tail(tmp_path / "log") == "out\nerr"
    assert process.tail(tmp_path / "log", lines=1) == "err"
    assert process.tail(tmp_path / "none") == ""


def test_free_ports_are_all_different():
    ports = process.free_ports(20)

    assert len(set(ports)) == 20


def test_no_connection_is_given_a_port_that_was_found_free():
    first, _last = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()

    assert max(process.free_ports(20)) < int(first)


def test_ports_are_found_where_connections_may_have_all(monkeypatch, tmp_path):
    (tmp_path / "range").write_text("1024\t65535\n")
    monkeypatch.setattr(process, "_PORTS_OF_CONNECTIONS", tmp_path / "range")

    assert len(set(process.free_ports(5))) == 5
