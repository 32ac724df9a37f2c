import io

import pytest
from kio.schema.fetch.v12.request import FetchPartition
from kio.serial import entity_writer
from kio.static.primitive import i32, i64

from bench.stalls import frames


def element_of(partition: int) -> bytes:
    out = io.BytesIO()
    asked = FetchPartition(
        partition=i32(partition), fetch_offset=i64(0), partition_max_bytes=i32(1024)
    )
    entity_writer(FetchPartition)(out, asked)
    return out.getvalue()


@pytest.mark.parametrize("count", [1, 3, 126, 127, 300])
def test_a_stretched_request_is_what_kio_writes_of_so_many(count: int) -> None:
    mark = 0x7A7B7C7D
    one = frames.fetch({"t": [(mark, 0)]}, max_bytes=1024)

    stretched = frames.stretch(one, element_of(mark), map(element_of, range(count)))

    assert stretched == frames.fetch({"t": [(index, 0) for index in range(count)]}, max_bytes=1024)


def test_an_element_that_is_not_alone_is_refused() -> None:
    two = frames.fetch({"t": [(1, 0), (2, 0)]}, max_bytes=1024)

    with pytest.raises(ValueError, match="alone in a compact array"):
        frames.stretch(two, element_of(1), [])
