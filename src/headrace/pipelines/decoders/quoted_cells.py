r"""CSV as RFC 4180 has it: what a line of quoted cells is made of, and where one is not.

Spark's reader takes a quote that is never closed for closed at the end, and text behind a closing
quote, or a line end outside of quotes, for text. A quote inside of a cell that began without one
stands for itself, as everywhere.
"""

import re

# In Java: possessive, since else each cell takes a frame of its stack.
_QUOTED = '"[^"]*+(?:""[^"]*+)*+"'
_LINE_END = re.compile(r"\r?\n\Z")
_QUOTED_CELL = re.compile(r'"((?:[^"]|"")*+)"')


def grammar(separator: str, count: int) -> str:
    """A regular expression of Java's for a line of so many cells."""
    other = f"[^\\x{{{ord(separator):x}}}\\r\\n"
    cell = f'(?:{_QUOTED}|(?:{other}"]{other}]*+)?+)'
    return f"\\A{cell}(?:\\x{{{ord(separator):x}}}{cell}){{{count - 1}}}+\\z"


def split_quoted(text: str, separator: str) -> list[str | None] | str:
    """The cells, an empty one None; or a sentence on where the quotes go wrong."""
    text = _LINE_END.sub("", text)
    cells, at = list[str | None](), 0
    while text:
        where = f"column {len(cells) + 1}"
        if text.startswith('"', at):
            match = _QUOTED_CELL.match(text, at)
            if match is None:
                return f"{where}: its quote is never closed"
            cells.append(match[1].replace('""', '"'))
            at = match.end()
            if at < len(text) and text[at] != separator:
                return f"{where}: there is text behind its closing quote"
        else:
            end = text.find(separator, at)
            cell = text[at:] if end < 0 else text[at:end]
            if "\n" in cell or "\r" in cell:
                return f"{where}: a line end outside of quotes"
            cells.append(cell or None)
            at += len(cell)
        if at >= len(text):
            break
        at += 1
    return cells
