from importlib import import_module

import pytest

from headrace.broker.dispatch import APIS, Api


def served(api: Api) -> str:
    module = import_module(f"headrace.broker.handlers.{api.module}")
    first, last = getattr(module, "FIRST_SERVED", api.versions[0]), api.versions[-1]
    return f"v{first}" if first == last else f"v{first}-{last}"


@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.name)
def test_a_handler_opens_with_its_name_its_key_and_the_versions_of_the_table(api: Api) -> None:
    module = import_module(f"headrace.broker.handlers.{api.module}")

    heading = (module.__doc__ or "").splitlines()[0]

    assert heading.startswith(f"{api.name} ({api.key}), {served(api)}")
    assert heading.removeprefix(f"{api.name} ({api.key}), {served(api)}")[:1] in ("", ".", ":", " ")
