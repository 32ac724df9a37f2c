"""When one type can take the place of another."""

import pytest

from headrace.pipelines.errors import SinkError
from headrace.pipelines.sinks.sql.columns import can_hold, kind_of


@pytest.mark.parametrize(
    ("existing", "wanted"),
    [
        ("bigint", "int"),
        ("double", "int"),
        ("double", "float"),
        ("decimal(10,0)", "int"),
        ("decimal(21,2)", "bigint"),
        ("decimal(12,4)", "decimal(10,2)"),
        ("string", "varchar(10)"),
        ("varchar(20)", "varchar(10)"),
        ("string", "json"),
        ("decimal(1000,500)", "double"),
    ],
)
def test_a_wider_type_holds_a_narrower_one_and_not_the_other_way(
    existing: str, wanted: str
) -> None:
    assert can_hold(existing, wanted)
    assert not can_hold(wanted, existing)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("bigint", "double"),
        ("int", "string"),
        ("int", "boolean"),
        ("date", "timestamp"),
        ("string", "binary"),
        ("decimal(10,2)", "decimal(10,4)"),
        ("decimal(10,2)", "double"),
        # PostgreSQL's numeric without digits: "1", "01" and "1.0" would be one key.
        ("decimal(1000,500)", "string"),
        ("decimal(1000,500)", "boolean"),
        ("decimal(1000,500)", "date"),
    ],
)
def test_types_that_lose_something_do_not_hold_each_other(one: str, other: str) -> None:
    assert not can_hold(one, other)
    assert not can_hold(other, one)


def test_a_type_no_table_has_is_refused_with_the_fix() -> None:
    with pytest.raises(SinkError, match=r"column v is of type variant.*cast it to string"):
        kind_of("v", "variant")
