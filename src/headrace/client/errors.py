"""What the client raises.

HeadraceError
└── ConfigError
    └── PropertyError    a client property, or an address, that cannot work
"""

from headrace.errors import ConfigError, HeadraceError
from headrace.properties import Assignment


class PropertyError(ConfigError):
    """A client property that cannot work; the sentence begins with where it was written."""

    def __init__(self, given: Assignment, wanted: str) -> None:
        HeadraceError.__init__(self, f"{given.source}: {wanted}")
        self.name, self.value, self.wanted = given.name, given.value, wanted
