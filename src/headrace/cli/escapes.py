"""What \\n, \\t and \\xHH stand for in an option."""

import re

_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|.)", re.S)
_ESCAPED = {"n": b"\n", "r": b"\r", "t": b"\t", "0": b"\0", "\\": b"\\"}


def unescape(text: str) -> bytes:
    r"""The bytes that \n, \r, \t, \0, \xHH and \\ in `text` stand for; ValueError for others."""
    parts, end = list[bytes](), 0
    for match in _ESCAPE.finditer(text):
        parts.append(_utf8(text[end : match.start()]))
        word, end = match[1], match.end()
        if len(word) == 3:
            parts.append(bytes.fromhex(word[1:]))
        elif word in _ESCAPED:
            parts.append(_ESCAPED[word])
        else:
            raise ValueError(rf"\{word} means nothing; there are \n, \r, \t, \0, \xHH and \\")
    rest = text[end:]
    if rest.endswith("\\"):
        raise ValueError(r"a lone \ at the end means nothing; write \\ for it")
    return b"".join([*parts, _utf8(rest)])


def _utf8(text: str) -> bytes:
    # Arguments that are no UTF-8 come with their bytes as surrogates.
    return text.encode("utf-8", "surrogateescape")
