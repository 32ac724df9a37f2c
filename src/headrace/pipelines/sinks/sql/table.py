"""The SQL sink: one table in SQLite, PostgreSQL or MariaDB, written by key.

A row with a new key is inserted, one with a known key updates, a tombstone deletes. A batch is one
transaction, and a batch that was written before changes nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from headrace.pipelines.definition import OpenSink, Run, Sink
from headrace.pipelines.errors import PipelineDefinitionError
from headrace.pipelines.sinks.sql.address import Address, parse_address

OPTIONS = frozenset({"table", "key", "provenance"})
# headrace's own; the last two, made for a batch, would stand before a table of that name.
RESERVED_NAMES = ("headrace_batches", "headrace_schema", "headrace_load", "headrace_load_keys")
_YES, _NO = ("yes", "true", "on", "1"), ("no", "false", "off", "0")


@dataclass(frozen=True)
class SqlTable(Sink):
    """`table` and `key` may be left to the pipeline, which then fills them in."""

    address: Address
    table: str | None
    key: tuple[str, ...]
    has_provenance: bool

    def __init__(
        self,
        url: str | Address,
        table: str | None = None,
        key: tuple[str, ...] | str = (),
        *,
        has_provenance: bool = True,
    ) -> None:
        if isinstance(url, Address):
            address, options = url, dict[str, str]()
        else:
            address, options = parse_address(url, OPTIONS)
        table = options.get("table", table)
        key = parse_key(options["key"]) if "key" in options else key
        if "provenance" in options:
            has_provenance = parse_provenance(options["provenance"])
        if table is not None and (not table or "\0" in table):
            raise PipelineDefinitionError(f"{table!r} cannot be the name of a table")
        if table is not None and table.casefold() in RESERVED_NAMES:
            raise PipelineDefinitionError(
                f"{table} is a table of headrace's own; choose another name"
            )
        # Frozen for everyone but the one who makes it.
        object.__setattr__(self, "address", address)
        object.__setattr__(self, "table", table)
        object.__setattr__(self, "key", parse_key(key) if isinstance(key, str) else tuple(key))
        object.__setattr__(self, "has_provenance", has_provenance)

    def describe(self) -> str:
        table = f"table {self.table}" if self.table else "a table"
        key = f" by {', '.join(self.key)}" if self.key else ""
        return f"{table}{key} in {self.address}"

    def identity(self) -> str:
        """The same, whatever directory the command was typed in."""
        if self.address.kind != "sqlite":
            schema = self.address.settings.get("schema")
            return f"{self.describe()} schema {schema}" if schema else self.describe()
        return f"table {self.table} in sqlite:{Path(self.address.database).absolute()}"

    def key_limit(self) -> int | None:
        """The greatest length of text in a key column; None: no limit worth a name."""
        if self.address.kind != "mariadb":
            return None
        from headrace.pipelines.sinks.sql.columns import Column
        from headrace.pipelines.sinks.sql.dialects import dialect_of

        column = Column("key", "string", is_key=True)
        return dialect_of(self.address).key_limit(column, len(self.key))

    def open(self, run: Run) -> OpenSink:
        if not self.table:
            raise PipelineDefinitionError(
                f"no table is named in {self.address}: add ?table=NAME to the URL "
                "or give --option table=NAME"
            )
        if not self.key:
            raise PipelineDefinitionError(
                f"table {self.table} has no key: add ?key=COLUMN to the URL "
                "or give --option key=COLUMN"
            )
        # Arrow and the drivers take a moment to import; a definition is only looked at.
        from headrace.pipelines.sinks.sql.writer import OpenSqlTable

        return OpenSqlTable(run, self.address, self.table, self.key, self.has_provenance)


def from_uri(uri: str, options: Mapping[str, str] | None = None) -> SqlTable:
    """The sink a user names with `--to`; what stands in the URI wins over `options`."""
    options = options or {}
    provenance = options.get("provenance")
    return SqlTable(
        uri,
        options.get("table") or None,
        options.get("key", ""),
        has_provenance=True if provenance is None else parse_provenance(provenance),
    )


def parse_key(text: str) -> tuple[str, ...]:
    """`a,b` as two columns."""
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if len(set(names)) < len(names):
        raise PipelineDefinitionError(f"key={text} names a column twice")
    return names


def parse_provenance(text: str) -> bool:
    """Whether the columns that say where a row came from are wanted."""
    if text.lower() not in _YES + _NO:
        raise PipelineDefinitionError(f"provenance={text}: write yes or no")
    return text.lower() in _YES
