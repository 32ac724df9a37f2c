import hashlib

import pytest

from headrace.java.errors import JarError
from headrace.java.jars import Jar, cache_directory, fetch_jars, parse_jar_list

SHA = "ab" * 32


def test_a_list_is_read_line_by_line_without_its_comments():
    text = f"# group:artifact:version sha256 bytes\n\norg.example:thing:1.2 {SHA} 345\n"

    assert parse_jar_list(text) == [Jar("org.example", "thing", "1.2", SHA, 345)]


@pytest.mark.parametrize(
    "line", [f"org.example:thing {SHA} 3", "a:b:c 12ab 3", f"a:b:c {SHA} many", f"a:b:c {SHA}"]
)
def test_a_bad_line_is_named_with_its_number(line):
    with pytest.raises(JarError, match="line 2 of the jar list"):
        parse_jar_list(f"# head\n{line}\n")


def test_jars_are_downloaded_from_their_maven_paths(tmp_path, repository):
    wanted = [repository.add("one", b"first"), repository.add("two", b"second" * 100_000)]

    paths = fetch_jars(wanted, directory=tmp_path, repository=repository.url)

    assert [path.read_bytes() for path in paths] == [b"first", b"second" * 100_000]
    assert "/maven2/org/example/deep/one/1.0/one-1.0.jar" in repository.asked


def test_what_is_cached_is_not_asked_for_again(tmp_path, repository):
    wanted = [repository.add("one", b"first")]
    fetch_jars(wanted, directory=tmp_path, repository=repository.url)
    repository.asked.clear()

    fetch_jars(wanted, directory=tmp_path, repository=repository.url)

    assert repository.asked == []


def test_a_jar_damaged_in_the_cache_is_fetched_again(tmp_path, repository):
    wanted = [repository.add("one", b"first")]
    (tmp_path / "one-1.0.jar").write_bytes(b"fIrst")

    fetch_jars(wanted, directory=tmp_path, repository=repository.url)

    assert (tmp_path / "one-1.0.jar").read_bytes() == b"first"


@pytest.mark.parametrize("served", [b"fIrst", b"fir", b"first and more" * 100_000])
def test_a_download_that_is_not_the_pinned_jar_is_refused_and_not_kept(
    tmp_path, repository, served
):
    jar = repository.add("one", b"first")
    repository.files[f"/maven2/{jar.repository_path}"] = served

    with pytest.raises(JarError, match="is not the pinned jar"):
        fetch_jars([jar], directory=tmp_path, repository=repository.url)

    assert list(tmp_path.iterdir()) == []


def test_a_passing_fault_of_the_server_is_tried_again(tmp_path, repository):
    jar = repository.add("one", b"first")
    repository.failures_left = 2

    fetch_jars([jar], directory=tmp_path, repository=repository.url)

    assert len(repository.asked) == 3


def test_a_missing_jar_is_asked_for_once_and_named(tmp_path, repository):
    jar = Jar("org.example", "gone", "1.0", SHA, 5)

    with pytest.raises(JarError, match=r"gone-1\.0\.jar .* answered 404"):
        fetch_jars([jar], directory=tmp_path, repository=repository.url)

    assert len(repository.asked) == 1


def test_without_network_the_error_says_where_to_put_the_jar(tmp_path, repository):
    jar = repository.add("one", b"first")
    repository.close()

    with pytest.raises(JarError) as caught:
        fetch_jars([jar], directory=tmp_path, repository=repository.url)

    message = str(caught.value)
    assert "one-1.0.jar" in message
    assert f"put the file into {tmp_path}" in message
    assert list(tmp_path.iterdir()) == []


def test_a_jar_put_there_by_hand_serves_without_network(tmp_path):
    jar = Jar("g", "one", "1.0", hashlib.sha256(b"first").hexdigest(), 5)
    (tmp_path / jar.file_name).write_bytes(b"first")

    assert fetch_jars([jar], directory=tmp_path, repository="http://127.0.0.1:1") == [
        tmp_path / "one-1.0.jar"
    ]


def test_a_cache_that_cannot_be_written_is_one_sentence(tmp_path):
    (tmp_path / "file").write_bytes(b"")

    with pytest.raises(JarError, match="HEADRACE_CACHE_DIR"):
        fetch_jars([], directory=tmp_path / "file" / "jars")


def test_the_cache_directory_can_be_chosen(tmp_path, monkeypatch):
    monkeypatch.setenv("HEADRACE_CACHE_DIR", str(tmp_path))

    assert cache_directory() == tmp_path
