"""How what is missing is installed: the end of every sentence about a package that is not there.

headrace is on no index yet, so its extras cannot be had by its name: what works is a checkout, or
the packages by their own names.
"""

import re
from importlib import metadata


def how_to_install(extra: str, *packages: str) -> str:
    """The commands that bring these packages of an extra; all of it without any."""
    from_checkout = f"pip install '.[{extra}]' in a checkout of headrace"
    wanted = [
        requirement
        for requirement in _requirements(extra)
        if not packages or re.split(r"[^\w.-]", requirement, maxsplit=1)[0] in packages
    ]
    if not wanted:
        return from_checkout
    by_name = " ".join(f"'{each}'" for each in wanted)
    return f"{from_checkout}, or pip install {by_name}"


def _requirements(extra: str) -> list[str]:
    try:
        listed = metadata.requires("headrace") or []
    except metadata.PackageNotFoundError:  # a source tree on the path, or a worker's zip
        return []
    halves = [each.partition(";") for each in listed]
    return [name.strip() for name, _, marker in halves if f'extra == "{extra}"' in marker]
