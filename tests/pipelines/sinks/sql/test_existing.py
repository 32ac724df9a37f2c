"""Tables made by others: written without harm to any row, or refused before the first one."""

import pytest
from tests.pipelines.sinks.sql.tables import KEY, VALUE, TestTable

from headrace.pipelines.errors import SinkError
from headrace.pipelines.sinks.sql.columns import Column

COLUMNS = (KEY, VALUE)

# Database (empty: each), columns, statements that follow, what is said of it.
REFUSED = [
    ("", "k $text PRIMARY KEY, v INT UNIQUE", (), r"unique index .* on \(v\), which this pipeline"),
    (
        "",
        "k $text PRIMARY KEY, v INT, w INT, UNIQUE (w, v)",
        (),
        r"unique index .* on \(v, w\), which this pipeline fills",
    ),
    (
        "",
        "k $text PRIMARY KEY, v INT, u INT DEFAULT 7 UNIQUE",
        (),
        r"unique index .* on \(u\), whose default is not unique",
    ),
    (
        "",
        "k $text PRIMARY KEY, v INT, g INT GENERATED ALWAYS AS (v + 1) STORED UNIQUE",
        (),
        r"unique index .* on \(g\), which this pipeline fills",
    ),
    (
        "",
        "k $text PRIMARY KEY, v INT GENERATED ALWAYS AS (1) STORED",
        (),
        "column v is computed by the database",
    ),
    (
        "SQLite PostgreSQL",
        "k $text, v INT",
        ("CREATE UNIQUE INDEX $t_i ON $t (k) WHERE v > 0",),
        r"by the key \(k\): its unique index t\d+_i is partial",
    ),
    (
        "SQLite PostgreSQL",
        "k $text PRIMARY KEY, v INT",
        ("CREATE UNIQUE INDEX $t_i ON $t (abs(v))",),
        r"unique index t\d+_i on \(an expression\), which this pipeline fills",
    ),
    ("SQLite", "k TEXT COLLATE NOCASE PRIMARY KEY, v INT", (), r"\(COLLATE NOCASE\)"),
    ("SQLite", "k TEXT, v INT", ("CREATE UNIQUE INDEX $t_i ON $t (k COLLATE RTRIM)",), "RTRIM"),
    (
        "PostgreSQL",
        "k text PRIMARY KEY DEFERRABLE, v INT",
        (),
        r"by the key \(k\): its unique index t\d+_pkey is deferrable",
    ),
    (
        "PostgreSQL",
        "k text, v INT",
        (
            "CREATE COLLATION IF NOT EXISTS folding "
            "(provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
            "ALTER TABLE $t ALTER COLUMN k TYPE text COLLATE folding",
            "CREATE UNIQUE INDEX ON $t (k)",
        ),
        r'such as A and a, for one key; .*ALTER COLUMN "k" TYPE text COLLATE "C"',
    ),
    (
        "PostgreSQL",
        "k text PRIMARY KEY, v INT, EXCLUDE (v WITH =)",
        (),
        r"unique index t\d+_v_excl on \(v\)",
    ),
    (
        "PostgreSQL",
        "k text PRIMARY KEY, v INT",
        ("CREATE RULE r AS ON INSERT TO $t DO INSTEAD NOTHING",),
        "has rules",
    ),
    (
        "PostgreSQL",
        "k text, v INT",
        ("CREATE UNIQUE INDEX ON $t (v) INCLUDE (k)",),
        r"no unique index on the key \(k\) but on \(v\)",
    ),
    (
        "MariaDB",
        "k VARCHAR(50) COLLATE utf8mb4_general_ci PRIMARY KEY, v INT",
        (),
        r"such as A and a, for one key \(utf8mb4_general_ci\).*COLLATE utf8mb4_nopad_bin NOT NULL",
    ),
    (
        "MariaDB",
        "k VARCHAR(50) COLLATE utf8mb4_bin PRIMARY KEY, v INT",
        (),
        r"such as 'a' and 'a ', for one key \(utf8mb4_bin\)",
    ),
    ("MariaDB", "k $text, v INT, UNIQUE (k(3))", (), "has only the first 3 characters of k"),
    (
        "MariaDB",
        "k $text PRIMARY KEY, v INT, s VARCHAR(50), UNIQUE (s(3))",
        (),
        r"on \(s\), which this pipeline fills",
    ),
    (
        "MariaDB",
        "k $text PRIMARY KEY, v INT",
        ("ALTER TABLE $t ENGINE = MyISAM",),
        "is kept by MyISAM, which has no transactions",
    ),
]


@pytest.mark.parametrize(("database", "columns", "more", "sentence"), REFUSED)
def test_a_table_that_would_lose_rows_is_refused_and_not_touched(
    table: TestTable, database: str, columns: str, more: tuple[str, ...], sentence: str
) -> None:
    if database and table.dialect.name not in database:
        pytest.skip(f"a trap of {database}")
    table.make(columns, *more)
    written = (*COLUMNS, Column("s", "string")) if " s " in columns else COLUMNS
    before = table.declared()

    with pytest.raises(SinkError, match=sentence):
        table.write(written, [])

    assert table.declared() == before


def test_a_view_is_named_as_one(table: TestTable) -> None:
    table.execute(f"CREATE TABLE behind_{table.name} (k {table.key_type} PRIMARY KEY, v INT)")
    table.execute(f"CREATE VIEW {table.name} AS SELECT * FROM behind_{table.name}")

    with pytest.raises(SinkError, match="is a view, which cannot be written by key"):
        table.sink()


# What may stand beside the key, and how another owner's column is filled by itself.
TAKEN = [
    ("SQLite", "id INTEGER PRIMARY KEY, k TEXT UNIQUE, v INT"),
    ("SQLite", "k TEXT PRIMARY KEY, v INT, g INT GENERATED ALWAYS AS (v + 1) STORED"),
    ("PostgreSQL", "id serial PRIMARY KEY, k text UNIQUE, v INT"),
    ("PostgreSQL", "id INT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, k text UNIQUE, v INT"),
    ("PostgreSQL", "id uuid DEFAULT gen_random_uuid() PRIMARY KEY, k text UNIQUE, v INT"),
    ("PostgreSQL", 'k text COLLATE "C" PRIMARY KEY, v INT'),
    ("MariaDB", "id INT AUTO_INCREMENT PRIMARY KEY, k $text UNIQUE, v INT"),
    ("MariaDB", "id UUID DEFAULT uuid() PRIMARY KEY, k $text UNIQUE, v INT"),
    ("", "k $text PRIMARY KEY, v INT, UNIQUE (v, k)"),
    ("", "k $text PRIMARY KEY, v INT, mine INT UNIQUE"),
    ("", "k $text PRIMARY KEY, v INT, created TIMESTAMP DEFAULT CURRENT_TIMESTAMP"),
]


@pytest.mark.parametrize(("database", "columns"), TAKEN)
def test_a_table_that_does_no_harm_is_taken(table: TestTable, database: str, columns: str) -> None:
    if database and table.dialect.name not in database:
        pytest.skip(f"a table of {database}")
    table.make(columns)
    table.write(COLUMNS, [("a", 1), ("A", 1), ("b", 1)])

    table.write(COLUMNS, [("a", 2), ("b", None), ("c", 1)], deleted=[1])

    assert table.rows(COLUMNS) == [("A", 1), ("a", 2), ("c", 1)]


def test_the_keys_of_headraces_own_tables_are_compared_as_bytes(table: TestTable) -> None:
    table.write(COLUMNS, [("A", 1), ("a ", 1)])

    table.write(COLUMNS, [("A", None), ("a", 2), ("a ", None), ("\u00e1", 3)], deleted=[0, 2])

    assert table.rows(COLUMNS) == [("a", 2), ("\u00e1", 3)]


@pytest.mark.parametrize(
    ("database", "name", "sentence"),
    [
        ("PostgreSQL", "x" * 64, "has a name of 64 bytes; PostgreSQL's longest has 63"),
        ("PostgreSQL", "\u00fc" * 32, "has a name of 64 bytes"),
        ("MariaDB", "x" * 65, "has a name of 65 characters; MariaDB's longest has 64"),
        ("MariaDB", "wave \U0001f30a", "characters beyond U"),
        ("MariaDB", "blank ", "no name ends with a blank"),
    ],
)
def test_a_name_that_the_database_cannot_hold_is_refused_before_the_first_write(
    table: TestTable, database: str, name: str, sentence: str
) -> None:
    if table.dialect.name != database:
        pytest.skip(f"a limit of {database}")

    with pytest.raises(SinkError, match=f"column .*{sentence}.*: rename|column .*{sentence}"):
        table.write((KEY, Column(name, "int")), [("a", 1)])
    assert table.declared() is None
    table.name = name
    with pytest.raises(SinkError, match=f"table .*{sentence}"):
        table.sink()


@pytest.mark.parametrize(("database", "size"), [("PostgreSQL", 63), ("MariaDB", 64)])
def test_the_longest_names_work_again_and_again(table: TestTable, database: str, size: int) -> None:
    if table.dialect.name != database:
        pytest.skip(f"a limit of {database}")
    columns = (KEY, Column("x" * size, "int"))
    table.name = (table.name + "y" * size)[:size]
    table.write(columns, [("a", 1)])

    table.write(columns, [("a", 2)])

    assert table.rows(columns) == [("a", 2)]
