"""Which Maven repository this machine downloads from.

The first of: HEADRACE_MAVEN_REPOSITORY, a mirror of `central` in
~/.m2/settings.xml, Maven Central where jgo knows it to be.
"""

import os
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from headrace.java.errors import JarError


def repository_url(settings_file: Path | None = None) -> str:
    """Return the base URL under which a jar's repository path is found."""
    if url := os.environ.get("HEADRACE_MAVEN_REPOSITORY"):
        return url
    settings_file = settings_file or Path.home() / ".m2" / "settings.xml"
    return _mirror_of_central(settings_file) or _maven_central()


def _maven_central() -> str:
    try:
        from jgo.constants import MAVEN_CENTRAL_URL
    except ImportError as error:
        raise JarError(
            "nothing says where Maven Central is: install headrace[kafka], "
            "or set HEADRACE_MAVEN_REPOSITORY to the base URL of a Maven repository"
        ) from error
    return str(MAVEN_CENTRAL_URL)


def _mirror_of_central(settings_file: Path) -> str | None:
    try:
        root = ElementTree.fromstring(settings_file.read_text("utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ElementTree.ParseError) as error:
        raise JarError(f"cannot read Maven's settings in {settings_file}: {error}") from error
    for mirror in root.findall("./{*}mirrors/{*}mirror"):
        url = mirror.findtext("{*}url", "").strip()
        if (
            url
            and mirror.findtext("{*}blocked", "").strip() != "true"
            and _covers_central(mirror.findtext("{*}mirrorOf", ""))
        ):
            return url
    return None


def _covers_central(mirror_of: str) -> bool:
    """Read Maven's `mirrorOf`: names, `*`, `external:*`, and `!name` to leave one out."""
    names = {name.strip() for name in mirror_of.split(",")}
    return "!central" not in names and bool(names & {"central", "*", "external:*"})
