"""Which client properties hold a secret: their values are for librdkafka and Java alone."""

import re
from collections.abc import Mapping

HIDDEN = "***"
# A private key is one, a token too; `.location` is only the name of a file.
_SECRET = re.compile(
    r"password|passphrase|secret|\.pem$|jaas\.config$|oauthbearer\.config$|keystore\.key$"
)


def is_secret(name: str) -> bool:
    """Whether a property's value must not be shown."""
    return _SECRET.search(name.lower()) is not None


def shown(properties: Mapping[str, str]) -> dict[str, str]:
    """Properties with their secrets hidden."""
    return {name: HIDDEN if is_secret(name) else value for name, value in properties.items()}
