"""A schema as people write it, `sensor string not null, celsius double`, read without Spark.

Spark's own reader of it lives in Java; listing and showing pipelines must not start that. What
is read here means what it means there: a test compares the two.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn

from headrace.pipelines.errors import PipelineDefinitionError

# Each name Spark has for a type, with the one it shows.
_ATOMS = {
    "string": "string",
    "boolean": "boolean",
    "tinyint": "tinyint",
    "byte": "tinyint",
    "smallint": "smallint",
    "short": "smallint",
    "int": "int",
    "integer": "int",
    "bigint": "bigint",
    "long": "bigint",
    "float": "float",
    "real": "float",
    "double": "double",
    "date": "date",
    "timestamp": "timestamp",
    "timestamp_ltz": "timestamp",
    "timestamp_ntz": "timestamp_ntz",
    "binary": "binary",
}
_DECIMALS = ("decimal", "dec", "numeric")
_MAX_PRECISION = 38
_PLAIN = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_TOKEN = re.compile(r"\s*(?:(`(?:[^`]|``)+`)|(\w+)|('(?:[^'\\]|\\.|'')*')|([<>(),:])|(\S))")


@dataclass(frozen=True, slots=True)
class Atom:
    """A type without parts."""

    name: str

    @property
    def ddl(self) -> str:
        """The type as Spark reads it."""
        return self.name


@dataclass(frozen=True, slots=True)
class Decimal:
    """A number of so many digits, some of them behind the point."""

    precision: int
    scale: int

    @property
    def ddl(self) -> str:
        """The type as Spark reads it."""
        return f"decimal({self.precision},{self.scale})"


@dataclass(frozen=True, slots=True)
class Array:
    """Any number of one type."""

    element: "Type"

    @property
    def ddl(self) -> str:
        """The type as Spark reads it."""
        return f"array<{self.element.ddl}>"


@dataclass(frozen=True, slots=True)
class Map:
    """Values by key."""

    key: "Type"
    value: "Type"

    @property
    def ddl(self) -> str:
        """The type as Spark reads it."""
        return f"map<{self.key.ddl},{self.value.ddl}>"


@dataclass(frozen=True, slots=True)
class Struct:
    """Named fields."""

    fields: tuple["SchemaField", ...]

    @property
    def ddl(self) -> str:
        """The type as Spark reads it."""
        return f"struct<{','.join(each.ddl for each in self.fields)}>"


Type = Atom | Decimal | Array | Map | Struct


@dataclass(frozen=True, slots=True)
class SchemaField:
    """A name and what is under it; a required one is `not null`."""

    name: str
    type: Type
    is_required: bool = False

    @property
    def quoted(self) -> str:
        """The name as SQL takes it, whatever is in it."""
        return "`" + self.name.replace("`", "``") + "`"

    @property
    def ddl(self) -> str:
        """The field as Spark reads it."""
        name = self.name if _PLAIN.fullmatch(self.name) else self.quoted
        return f"{name}:{self.type.ddl}" + (" not null" if self.is_required else "")


def parse_ddl(text: str) -> tuple[SchemaField, ...]:
    """Read fields; PipelineDefinitionError says where it goes wrong."""
    return _Parser(text).fields()


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(self._read_tokens())
        self._at = 0

    def _read_tokens(self) -> Iterator[tuple[str, int]]:
        for match in _TOKEN.finditer(self._text):
            yield match[match.lastindex or 0], match.start(match.lastindex or 0)

    def fields(self) -> tuple[SchemaField, ...]:
        if not self._tokens:
            self._fail("a field, such as sensor string")
        fields = self._list_of_fields(is_nested=False)
        if self._at < len(self._tokens):
            self._fail("a comma or the end")
        return fields

    def _list_of_fields(self, *, is_nested: bool) -> tuple[SchemaField, ...]:
        fields = [self._field(is_nested=is_nested)]
        while self._take(","):
            fields.append(self._field(is_nested=is_nested))
        names = [each.name.lower() for each in fields]
        for name in names:
            if names.count(name) > 1:
                raise PipelineDefinitionError(
                    f"schema {self._text!r}: field {name} is there twice (case does not matter)"
                )
        return tuple(fields)

    def _field(self, *, is_nested: bool) -> SchemaField:
        token = self._peek()
        if not (token[:1] == "`" or re.fullmatch(r"\w+", token)):
            self._fail("the name of a field")
        self._at += 1
        name = token[1:-1].replace("``", "`") if token.startswith("`") else token
        if is_nested and self._peek() != ":" and not re.fullmatch(r"\w+", self._peek()):
            self._fail("a colon and a type")
        self._take(":")
        kind = self._type()
        is_required = self._take("not")
        if is_required and not self._take("null"):
            self._fail("null behind not")
        if self._take("comment"):
            if not self._peek().startswith("'"):
                self._fail("the comment in single quotes")
            self._at += 1
        return SchemaField(name, kind, is_required)

    def _type(self) -> Type:
        word = self._peek().lower()
        if word in _ATOMS:
            self._at += 1
            return Atom(_ATOMS[word])
        if word in _DECIMALS:
            self._at += 1
            return self._decimal()
        if word not in ("array", "map", "struct"):
            self._fail(f"a type: {', '.join(dict.fromkeys(_ATOMS.values()))}, decimal(p,s), "
                       "array<…>, map<…,…> or struct<…>")  # fmt: skip
        self._at += 1
        self._expect("<")
        kind: Type
        if word == "array":
            kind = Array(self._type())
        elif word == "map":
            key = self._type()
            self._expect(",")
            kind = Map(key, self._type())
        else:
            kind = Struct(self._list_of_fields(is_nested=True))
        self._expect(">")
        return kind

    def _decimal(self) -> Decimal:
        if not self._take("("):
            return Decimal(10, 0)
        precision, scale = self._number(), 0
        if self._take(","):
            scale = self._number()
        if not 1 <= precision <= _MAX_PRECISION or scale > precision:
            self._at -= 1
            self._fail(
                f"a decimal of 1 to {_MAX_PRECISION} digits, not more of them behind the point"
            )
        self._expect(")")
        return Decimal(precision, scale)

    def _number(self) -> int:
        if not self._peek().isdecimal():
            self._fail("a number")
        self._at += 1
        return int(self._tokens[self._at - 1][0])

    def _peek(self) -> str:
        return self._tokens[self._at][0] if self._at < len(self._tokens) else ""

    def _take(self, word: str) -> bool:
        if self._peek().lower() != word:
            return False
        self._at += 1
        return True

    def _expect(self, word: str) -> None:
        if not self._take(word):
            self._fail(word)

    def _fail(self, wanted: str) -> NoReturn:
        if self._at < len(self._tokens):
            token, position = self._tokens[self._at]
            where = f"{token!r} at character {position + 1}"
        else:
            where = "the end"
        raise PipelineDefinitionError(f"schema {self._text!r}: {where}: wanted {wanted}")
