import re
from importlib import import_module

import pytest

from headrace.broker.dispatch import APIS, Api
from headrace.protocol.versions import FIRST_FLEXIBLE


@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.name)
def test_a_handler_opens_with_its_name_and_key_and_leaves_its_versions_to_the_table(
    api: Api,
) -> None:
    module = import_module(f"headrace.broker.handlers.{api.module}")

    heading = (module.__doc__ or "").splitlines()[0]

    assert heading.startswith(f"{api.name} ({api.key})")
    assert heading.removeprefix(f"{api.name} ({api.key})")[:1] in (".", ":", ",")
    assert not re.search(r"\bv\d", heading)


def test_of_every_api_served_it_is_known_which_versions_are_flexible() -> None:
    assert FIRST_FLEXIBLE.keys() == APIS.keys()
