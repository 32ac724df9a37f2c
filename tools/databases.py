"""PostgreSQL and MariaDB servers for tests and trials: private directory, private port, gone after.

    with running_postgresql() as server:
        psycopg.connect(server.url)

`python -m tools.databases` runs both until Ctrl-C and prints their URLs.
They need the programs of the Debian packages `postgresql` and `mariadb-server`, nothing running.
Both refuse to run as root, so root's servers run as the packages' users `postgres` and `mysql`.
"""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from headrace.errors import HeadraceError
from headrace.kafka.process import free_ports
from headrace.patience import Patience
from headrace.testing import janitor

USER = PASSWORD = DATABASE = "headrace"
# Where PostgreSQL's server programs lie outside PATH: Debian and Ubuntu, then Fedora and RHEL.
_POSTGRESQL_PATTERNS = ("usr/lib/postgresql/*/bin", "usr/pgsql-*/bin")
_POSTGRESQL_PROGRAMS = ("initdb", "pg_ctl", "postgres")
_MARIADB_PROGRAMS = ("mariadbd", "mariadb-install-db")
_SYSTEM_PATH = "/usr/sbin:/sbin:/usr/local/sbin:/usr/libexec"
_READY_SECONDS = 180.0


class DatabaseServerError(HeadraceError):
    """A database server is not installed here, or did not start."""


class DatabaseServer(ABC):
    """One server on a directory of its own; `url` is what a sink takes."""

    scheme: str

    def __init__(self, directory: Path, *, is_durable: bool) -> None:
        self.directory = directory
        self.is_durable = is_durable
        self.port = free_ports(1)[0]
        self._entrusted: int | None = None

    @property
    def url(self) -> str:
        """With user and password."""
        return f"{self.scheme}://{USER}:{PASSWORD}@127.0.0.1:{self.port}/{DATABASE}"

    @abstractmethod
    def create(self) -> None:
        """Make the data directory."""

    @abstractmethod
    def start(self) -> None:
        """Start it on its port and return when it answers."""

    @abstractmethod
    def stop(self) -> None:
        """Stop it in order; connections are cut. Does nothing if it does not run."""

    @abstractmethod
    def kill(self) -> None:
        """Stop it as a crash would: nothing is written out."""

    def _has_started(self, pid: int, sent: signal.Signals) -> None:
        """It ends with us, even if we are killed: by `sent`, which lets it clean up."""
        self._entrusted = janitor.entrust("process", pid, sent)

    def _has_ended(self) -> None:
        if self._entrusted is not None:
            janitor.take_back(self._entrusted)
            self._entrusted = None


class PostgresqlServer(DatabaseServer):
    """PostgreSQL; `is_durable=False` leaves out fsync, as a test may and a measurement may not."""

    scheme = "postgresql"

    def __init__(self, directory: Path, *, is_durable: bool = False) -> None:
        super().__init__(directory, is_durable=is_durable)
        self._programs = find_postgresql()[0]
        self._data = directory / "data"

    def create(self) -> None:
        password_file = self.directory / "password"
        password_file.write_text(PASSWORD)
        _give_to("postgres", self.directory, password_file)
        options = ["-A", "scram-sha-256", "--pwfile", str(password_file), "-U", USER, "--no-sync"]
        options += ["-E", "UTF8", "--locale", "C.UTF-8", "-D", str(self._data)]
        failures = []
        # A server program that was copied elsewhere lacks its other files: try the next one.
        for self._programs in find_postgresql():
            try:
                _run(_as("postgres", str(self._programs / "initdb"), *options))
            except DatabaseServerError as error:
                failures.append(str(error))
                shutil.rmtree(self._data, ignore_errors=True)
            else:
                return
        raise DatabaseServerError("; ".join(failures))

    def start(self) -> None:
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": str(self.directory),
            "fsync": "on" if self.is_durable else "off",
            # In its own directory: what it shares by name in /dev/shm outlives its SIGKILL.
            "dynamic_shared_memory_type": "mmap",
        }
        words = " ".join(f"-c {name}={value}" for name, value in settings.items())
        log = str(self.directory / "log")
        self._control("-w", "-t", str(int(_READY_SECONDS)), "-l", log, "-o", words, "start")
        pid = int((self._data / "postmaster.pid").read_text().splitlines()[0])
        self._has_started(pid, signal.SIGQUIT)
        if not self._has_database():
            self._create_database()

    def stop(self) -> None:
        self._stop("fast")

    def kill(self) -> None:
        self._stop("immediate")

    def _stop(self, mode: str) -> None:
        if (self._data / "postmaster.pid").exists():
            self._control("-m", mode, "-w", "stop")
        self._has_ended()

    def _control(self, *arguments: str) -> None:
        _run(_as("postgres", str(self._programs / "pg_ctl"), "-D", str(self._data), *arguments))

    def _has_database(self) -> bool:
        return (self.directory / "has-database").exists()

    def _create_database(self) -> None:
        import psycopg

        url = self.url.removesuffix(DATABASE) + "postgres"
        with contextlib.closing(psycopg.connect(url, autocommit=True)) as connection:
            connection.execute(f"CREATE DATABASE {DATABASE}")
        (self.directory / "has-database").touch()


class MariadbServer(DatabaseServer):
    """MariaDB; `is_durable=False` flushes its log once a second instead of at each commit."""

    scheme = "mariadb"

    def __init__(self, directory: Path, *, is_durable: bool = False) -> None:
        super().__init__(directory, is_durable=is_durable)
        self._programs = find_mariadb()
        self._data = directory / "data"
        self._socket = directory / "s.sock"
        self._process: subprocess.Popen[bytes] | None = None

    def create(self) -> None:
        _give_to("mysql", self.directory)
        _run(
            [
                str(self._programs["mariadb-install-db"]),
                "--no-defaults",
                *_mysql_user(),
                f"--datadir={self._data}",
                "--auth-root-authentication-method=normal",
                "--skip-test-db",
            ]
        )

    def start(self) -> None:
        log = self.directory / "err.log"
        with (self.directory / "out.log").open("ab") as output:
            self._process = subprocess.Popen(
                [
                    str(self._programs["mariadbd"]),
                    "--no-defaults",
                    *_mysql_user(),
                    f"--datadir={self._data}",
                    "--bind-address=127.0.0.1",
                    f"--port={self.port}",
                    f"--socket={self._socket}",
                    f"--pid-file={self.directory / 'pid'}",
                    f"--log-error={log}",
                    f"--innodb-flush-log-at-trx-commit={1 if self.is_durable else 2}",
                ],
                stdout=output,
                stderr=output,
            )
        self._has_started(self._process.pid, signal.SIGKILL)
        process = self._process
        is_over = Patience(_READY_SECONDS).until(
            lambda: process.poll() is not None or self._prepare()
        )
        if process.poll() is not None or not is_over:
            self.kill()
            text = log.read_text(errors="replace") if log.exists() else "(no log)"
            raise DatabaseServerError(f"mariadbd did not start; it logged:\n{text[-2000:]}")

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def _end(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)
            self._process.wait(_READY_SECONDS)
        self._has_ended()

    def _prepare(self) -> bool:
        """Whether it answers; its user and database are there when it does."""
        import pymysql

        # It opens this port last. PyMySQL leaves a socket behind when it connects too early.
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", self.port)) != 0:
                return False
        connection = pymysql.connect(unix_socket=str(self._socket), user="root")
        with contextlib.closing(connection), connection.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE IF NOT EXISTS {DATABASE}")
            user = f"'{USER}'@'127.0.0.1'"
            cursor.execute(f"CREATE USER IF NOT EXISTS {user} IDENTIFIED BY '{PASSWORD}'")
            cursor.execute(f"GRANT ALL ON *.* TO {user} WITH GRANT OPTION")
        return True


_Server = TypeVar("_Server", bound=DatabaseServer)


@contextlib.contextmanager
def running_postgresql(*, is_durable: bool = False) -> Iterator[PostgresqlServer]:
    """PostgreSQL for the time of the block; DatabaseServerError where it is not installed."""
    find_postgresql()
    with janitor.temporary_directory("headrace-db-") as directory:
        yield from _running(PostgresqlServer(directory, is_durable=is_durable))


@contextlib.contextmanager
def running_mariadb(*, is_durable: bool = False) -> Iterator[MariadbServer]:
    """MariaDB for the time of the block; DatabaseServerError where it is not installed."""
    find_mariadb()
    with janitor.temporary_directory("headrace-db-") as directory:
        yield from _running(MariadbServer(directory, is_durable=is_durable))


def find_postgresql() -> list[Path]:
    """Directories with PostgreSQL's server programs, the newest version first, PATH last."""
    packaged = [path for pattern in _POSTGRESQL_PATTERNS for path in Path("/").glob(pattern)]
    packaged.sort(key=_version_in, reverse=True)
    on_path = shutil.which("postgres")
    candidates = [*packaged, *([Path(on_path).parent] if on_path else [])]
    found = [
        path
        for path in candidates
        if all((path / program).exists() for program in _POSTGRESQL_PROGRAMS)
    ]
    if not found:
        raise DatabaseServerError(
            "no PostgreSQL server programs found; install Debian's package postgresql"
        )
    return found


def find_mariadb() -> dict[str, Path]:
    """MariaDB's server programs by name."""
    path = os.pathsep.join([os.environ.get("PATH", ""), _SYSTEM_PATH])
    found = {name: shutil.which(name, path=path) for name in _MARIADB_PROGRAMS}
    programs = {name: Path(program) for name, program in found.items() if program}
    if len(programs) < len(_MARIADB_PROGRAMS):
        raise DatabaseServerError(
            "no MariaDB server programs found; install Debian's package mariadb-server"
        )
    return programs


def _running(server: _Server) -> Iterator[_Server]:
    server.create()
    try:
        server.start()
        yield server
    finally:
        server.stop()


def _version_in(path: Path) -> tuple[int, ...]:
    digits = "".join(character if character.isdigit() else " " for character in str(path))
    return tuple(map(int, digits.split()))


def _is_root() -> bool:
    return os.geteuid() == 0


def _as(user: str, *command: str) -> list[str]:
    return ["runuser", "-u", user, "--", *command] if _is_root() else list(command)


def _mysql_user() -> list[str]:
    return ["--user=mysql"] if _is_root() else []


def _give_to(user: str, *paths: Path) -> None:
    if _is_root():
        for path in paths:
            shutil.chown(path, user, user)


def _shown(text: str) -> str:
    """The ends of what a program said: the reason stands first, the advice last."""
    return text if len(text) <= 4000 else f"{text[:2000]} … {text[-2000:]}"


def _run(command: list[str]) -> None:
    # Files, not pipes: pg_ctl's server keeps its output open after pg_ctl has ended.
    with tempfile.TemporaryFile() as output:
        ended = subprocess.run(command, stdout=output, stderr=output, cwd="/", check=False)
        if ended.returncode != 0:
            output.seek(0)
            text = output.read().decode(errors="replace").strip()
            raise DatabaseServerError(f"{' '.join(command[:5])}… failed: {_shown(text)}")


def main(arguments: Sequence[str]) -> int:
    """Run what is installed until Ctrl-C; with `--check`, only say what is not."""
    is_complete = True
    with contextlib.ExitStack() as servers:
        for find, running in (
            (find_postgresql, running_postgresql),
            (find_mariadb, running_mariadb),
        ):
            try:
                find()
                if "--check" not in arguments:
                    print(servers.enter_context(running()).url, flush=True)
            except DatabaseServerError as error:
                is_complete = False
                print(error, file=sys.stderr)
        if "--check" not in arguments:
            with contextlib.suppress(KeyboardInterrupt):
                signal.pause()
    return 0 if is_complete else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
