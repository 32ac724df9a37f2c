"""`pip` of the pages' tests: what is to be installed is here already, if it is to be had at all.

From a checkout, with extras that there are, is what works; nothing of ours is on an index.
"""

import re
import sys
import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"


def why_not(words: list[str]) -> str | None:
    """What is wrong with `pip WORDS…`; None: it would work."""
    extras = tomllib.loads(PYPROJECT.read_text("utf-8"))["project"]["optional-dependencies"]
    match words:
        case ["install", wanted] if found := re.fullmatch(r"\.(?:\[([\w,]+)\])?", wanted):
            unknown = set((found[1] or "").split(",")) - {"", *extras}
            return f"there is no extra {', '.join(sorted(unknown))}" if unknown else None
    return f"pip {' '.join(words)}: only `pip install .` of a checkout works"


if __name__ == "__main__":
    sys.exit(why_not(sys.argv[1:]))
