"""What may stand before an Avro value: nothing, a registry's 5 bytes, or a fingerprint.

`confluent` is a zero byte and the schema's number in the registry, which is compared where the
pipeline was told the number of its schema: nothing else can tell that a value was written with
another. `single-object` is Avro's own: C3 01 and the fingerprint of the schema.
"""

from typing import Any, Literal

AvroHeader = Literal["none", "confluent", "single-object"]
HEADERS: tuple[AvroHeader, ...] = ("none", "confluent", "single-object")

CONFLUENT_SIZE = 5
_SINGLE_OBJECT_MARK = b"\xc3\x01"


def fingerprint(schema: Any) -> bytes:
    """The eight bytes that name a schema (CRC-64-AVRO of its canonical form)."""
    from fastavro.schema import fingerprint as hex_fingerprint
    from fastavro.schema import to_parsing_canonical_form

    return bytes.fromhex(hex_fingerprint(to_parsing_canonical_form(schema), "CRC-64-AVRO"))


def header_for(kind: AvroHeader, schema: Any, schema_id: int = 0) -> bytes:
    """The bytes to put before a value."""
    if kind == "confluent":
        return b"\0" + schema_id.to_bytes(4, "big")
    return _SINGLE_OBJECT_MARK + fingerprint(schema) if kind == "single-object" else b""


def header_size(value: bytes, kind: AvroHeader, wanted: bytes) -> int:
    """How many bytes to skip; ValueError when the header is not as it should be.

    Without a `wanted` one a registry's number may be any.
    """
    if kind == "none":
        return 0
    if kind == "confluent":
        if len(value) < CONFLUENT_SIZE or value[0] != 0:
            raise ValueError(
                f"no registry header: wanted a zero byte and a number, got 0x{value[:5].hex()}"
            )
        if wanted and value[:CONFLUENT_SIZE] != wanted:
            raise ValueError(
                f"written with another schema: its number is {schema_id_of(value)}, "
                f"wanted {schema_id_of(wanted)}"
            )
        return CONFLUENT_SIZE
    if value[:2] != _SINGLE_OBJECT_MARK or len(value) < len(wanted):
        raise ValueError(
            f"no single-object header: wanted 0xc301 and eight bytes, got 0x{value[:10].hex()}"
        )
    if value[: len(wanted)] != wanted:
        raise ValueError(
            f"written with another schema: its fingerprint is 0x{value[2:10].hex()}, "
            f"wanted 0x{wanted[2:].hex()}"
        )
    return len(wanted)


def schema_id_of(value: bytes) -> int:
    """The number in a registry's header."""
    return int.from_bytes(value[1:CONFLUENT_SIZE], "big")
