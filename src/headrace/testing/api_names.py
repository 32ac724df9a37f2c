"""Kafka's APIs by name or number, as a test may call them."""

import difflib

from headrace.broker.dispatch import API_NAMES


def api_key(api: str | int) -> int:
    """The number of an API given by its number or by Kafka's name for it."""
    by_name = {name.lower(): key for key, name in API_NAMES.items()}
    key = api if isinstance(api, int) else by_name.get(api.lower())
    if key not in API_NAMES:
        near = difflib.get_close_matches(str(api).lower(), by_name, n=1)
        hint = f"; did you mean {API_NAMES[by_name[near[0]]]!r}?" if near else ""
        raise ValueError(f"headrace serves no API called {api!r}{hint}")
    return key
