import pytest

from headrace.kafka.errors import NodeError
from headrace.kafka.formatting import format_like, is_formatted

META = (
    "#\n#Mon Nov 16\nnode.id=1\ndirectory.id=AAAAAAAAAAAAAAAAAAAAAA\nversion=1\ncluster.id=mine\n"
)


@pytest.fixture
def formatted(tmp_path):
    directory = tmp_path / "one"
    directory.mkdir()
    (directory / "meta.properties").write_text(META)
    (directory / "bootstrap.checkpoint").write_bytes(b"\x00\xff features")
    return directory


def test_another_node_gets_the_same_files_with_ids_of_its_own(formatted, tmp_path):
    format_like(formatted, tmp_path / "two", 2)

    lines = (tmp_path / "two" / "meta.properties").read_text().splitlines()
    assert [line for line in lines if "directory" not in line] == [
        "#",
        "#Mon Nov 16",
        "node.id=2",
        "version=1",
        "cluster.id=mine",
    ]
    (directory_id,) = (line for line in lines if line.startswith("directory.id="))
    assert len(directory_id) == len("directory.id=") + 22
    assert directory_id != "directory.id=AAAAAAAAAAAAAAAAAAAAAA"
    assert (tmp_path / "two" / "bootstrap.checkpoint").read_bytes() == b"\x00\xff features"
    assert is_formatted(tmp_path / "two")


def test_a_format_of_another_kind_is_not_guessed_at(formatted, tmp_path):
    (formatted / "meta.properties").write_text("version=2\nnode.id=1\n")

    with pytest.raises(NodeError, match=r"does not name node\.id and directory\.id"):
        format_like(formatted, tmp_path / "two", 2)

    assert not is_formatted(tmp_path / "two")
