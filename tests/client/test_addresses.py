import pytest

from headrace.client.addresses import parse_addresses
from headrace.client.errors import PropertyError


def test_addresses_are_hosts_and_ports() -> None:
    assert parse_addresses("a:1, [::1]:2,SSL://b:3") == [("a", 1), ("::1", 2), ("b", 3)]


@pytest.mark.parametrize("word", ["nonsense", ":1", "a:", "a:0", "a:65536", "a:x", ""])
def test_what_is_none_is_named_with_where_it_stands(word: str) -> None:
    with pytest.raises(PropertyError, match=f"^--to {word}: write HOST:PORT, such as"):
        parse_addresses(f"a:1,{word}", "--to")
