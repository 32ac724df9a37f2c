"""What ends a mirror."""

from headrace.errors import HeadraceError


class MirrorError(HeadraceError):
    """A mirror cannot go on, or its copy differs; the message names the fix."""


class MirrorRefusedError(MirrorError):
    """It would go in circles, or into a topic that is not its own; nothing is written."""


class MirrorIdentityError(MirrorRefusedError):
    """A topic or a cluster is not the one that was copied, though it has the same name."""
