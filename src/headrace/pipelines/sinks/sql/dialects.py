"""The databases there are; the driver of each is loaded when it is first wanted."""

from headrace.pipelines.sinks.sql.address import Address
from headrace.pipelines.sinks.sql.dialect import Dialect


def dialect_of(address: Address) -> Dialect:
    """The dialect an address speaks."""
    if address.kind == "sqlite":
        from headrace.pipelines.sinks.sql.sqlite import Sqlite

        return Sqlite()
    if address.kind == "postgresql":
        from headrace.pipelines.sinks.sql.postgresql import Postgresql

        return Postgresql()
    from headrace.pipelines.sinks.sql.mariadb import Mariadb

    return Mariadb()
