import pytest

from headrace.pipelines.json_shape import MAX_NESTED_FIELDS, shape_of


@pytest.mark.parametrize(
    ("objects", "ddl"),
    [
        ([{"id": 1, "name": "a", "is_on": True, "at": 1.5}],
         "`id` bigint, `name` string, `is_on` boolean, `at` double"),
        ([{"a": 1}, {"b": "x"}], "`a` bigint, `b` string"),
        ([{"a": 1}, {"a": 2.5}], "`a` double"),
        ([{"a": None}, {"a": 2}], "`a` bigint"),
        ([{"a": None}], "`a` string"),
        ([{"a": 1}, {"a": "one"}], "`a` string"),
        ([{"a": True}, {"a": 1}], "`a` string"),
        ([{"a": 1 << 63}], "`a` string"),
        ([{"a": [1, 2.5]}, {"a": []}], "`a` array<double>"),
        ([{"a": {"x": 1}}, {"a": {"y": [{"z": "t"}]}}],
         "`a` struct<`x`: bigint, `y`: array<struct<`z`: string>>>"),
        ([{"a": {}}], "`a` string"),
        ([{"a b`c": 1}], "`a b``c` bigint"),
        ([{"id": 1, "ID": "x"}], "`id` bigint"),
        ([{"a": {"id": 1, "ID": 2}}], "`a` string"),
        ([{"a": {str(n): n for n in range(MAX_NESTED_FIELDS + 1)}}], "`a` string"),
    ],
)  # fmt: skip
def test_a_sample_shows_its_schema(objects: list[dict[str, object]], ddl: str) -> None:
    assert shape_of(objects) == ddl


def test_objects_without_members_have_no_schema() -> None:
    assert shape_of([{}, {}]) is None
    assert shape_of([]) is None


def test_a_deep_nest_ends_as_text() -> None:
    value: object = 1
    for _ in range(50):
        value = {"a": value}

    assert str(shape_of([{"a": value}])).count("struct") < 12
