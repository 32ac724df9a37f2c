"""Where a database is: the URL a user writes, taken apart.

    sqlite:readings.db                        relative to the working directory
    sqlite:///var/lib/readings.db             absolute
    postgresql://user:password@host:5432/db
    mariadb://user:password@host:3306/db      mysql:// is the same

An address never shows its password: not in `str`, not in `repr`.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from headrace.pipelines.errors import PipelineDefinitionError

_DEFAULT_PORTS = {"postgresql": 5432, "mariadb": 3306}
_SCHEMES = {
    "sqlite": "sqlite",
    "postgresql": "postgresql",
    "postgres": "postgresql",
    "mariadb": "mariadb",
    "mysql": "mariadb",
}
# What may stand behind the `?` for each, beside the sink's own options.
_SETTINGS = {
    "sqlite": frozenset[str](),
    "postgresql": frozenset({"password-file", "schema", "sslmode", "sslrootcert"}),
    "mariadb": frozenset({"password-file", "ssl-ca"}),
}


@dataclass(frozen=True, slots=True)
class Address:
    """`kind` is sqlite, postgresql or mariadb; for SQLite `database` is the file."""

    kind: str
    database: str
    host: str = ""
    port: int = 0
    user: str = ""
    password: str | None = field(default=None, repr=False)
    settings: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        if self.kind == "sqlite":
            return f"sqlite:{self.database}"
        user = f"{self.user}@" if self.user else ""
        return f"{self.kind}://{user}{self.host}:{self.port}/{self.database}"

    def find_password(self) -> str | None:
        """From the URL, from `?password-file=`, or else from the client's own variable."""
        if self.password is not None:
            return self.password
        file = self.settings.get("password-file")
        if file is None:
            return os.environ.get("PGPASSWORD" if self.kind == "postgresql" else "MYSQL_PWD")
        try:
            return Path(file).expanduser().read_text().rstrip("\r\n")
        except OSError as error:
            raise PipelineDefinitionError(
                f"password-file={file} cannot be read: {error.strerror or error}"
            ) from None


def parse_address(url: str, own_options: frozenset[str]) -> tuple[Address, dict[str, str]]:
    """The address in `url`, and those of `own_options` that stand behind its `?`."""
    scheme, colon, rest = url.partition(":")
    kind = _SCHEMES.get(scheme.lower())
    if kind is None or not colon:
        raise PipelineDefinitionError(
            f"{_without_password(url)} is no database: write sqlite:PATH, "
            "postgresql://user@host/database or mariadb://user@host/database"
        )
    if kind == "sqlite":
        path, _, query = rest.partition("?")
        settings, options = _options_in(query, kind, own_options)
        return Address(kind, _sqlite_path(path), settings=settings), options
    return _server_address(url, kind, own_options)


def _server_address(
    url: str, kind: str, own_options: frozenset[str]
) -> tuple[Address, dict[str, str]]:
    parts = urlsplit(url)
    shown = _without_password(url)
    try:
        port = parts.port or _DEFAULT_PORTS[kind]
    except ValueError:
        raise PipelineDefinitionError(f"{shown}: the port is not a number below 65536") from None
    database = unquote(parts.path.removeprefix("/"))
    if not parts.hostname or not database:
        raise PipelineDefinitionError(
            f"{shown} names no {'host' if not parts.hostname else 'database'}: "
            f"write {kind}://user@host/database"
        )
    settings, options = _options_in(parts.query, kind, own_options)
    address = Address(
        kind,
        database,
        host=parts.hostname,
        port=port,
        user=unquote(parts.username or ""),
        password=None if parts.password is None else unquote(parts.password),
        settings=settings,
    )
    return address, options


def _options_in(
    query: str, kind: str, own_options: frozenset[str]
) -> tuple[dict[str, str], dict[str, str]]:
    settings: dict[str, str] = {}
    options: dict[str, str] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name in own_options:
            options[name] = value
        elif name in _SETTINGS[kind]:
            settings[name] = value
        else:
            known = ", ".join(sorted(own_options | _SETTINGS[kind]))
            raise PipelineDefinitionError(f"?{name}= is unknown for {kind}; known are {known}")
    return settings, options


def _sqlite_path(path: str) -> str:
    # sqlite://host/… has no meaning; sqlite:///p is /p, and SQLAlchemy's sqlite:////p too.
    if path.startswith("//"):
        path = "/" + path.lstrip("/")
    path = unquote(path)
    if path in ("", "/", ":memory:"):
        raise PipelineDefinitionError(
            f"sqlite:{path} names no file; write sqlite:PATH, for instance sqlite:readings.db"
        )
    return path


def _without_password(url: str) -> str:
    head, at, tail = url.rpartition("@")
    if not at:
        return url
    scheme, slashes, login = head.partition("://")
    return f"{scheme}{slashes}{login.partition(':')[0]}@{tail}"
