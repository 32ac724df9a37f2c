"""Changes to the configs of a topic, the broker, a group or a metrics subscription.

AlterConfigs replaces all overrides of a resource, IncrementalAlterConfigs edits them; both come
down to "the overrides it would have then", which is checked, stored, and only then put to use: one
change in the broker's line of changes.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple, Protocol, TypeVar

from headrace.broker import loggers
from headrace.broker.error_codes import code_for
from headrace.broker.errors import UnknownTopicError
from headrace.broker.state import BrokerState
from headrace.broker.topic_names import check_topic_name
from headrace.errors import HeadraceError, InvalidConfigError, RequestError
from headrace.settings import catalogue, rules, security
from headrace.settings.catalogue import ConfigType, Setting, find_broker_setting
from headrace.settings.dynamic import DynamicConfigs
from headrace.settings.values import show, split_list


class ResourceType(IntEnum):
    """What has configs, with its number on the wire."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class Operation(IntEnum):
    """What IncrementalAlterConfigs does with one config."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Edit(NamedTuple):
    """One config of an IncrementalAlterConfigs request. `operation` is unchecked."""

    name: str
    operation: int
    value: str | None


Overrides = dict[str, str]


class ConfigResource(Protocol):
    """What either request says first of a resource."""

    @property
    def resource_type(self) -> int: ...
    @property
    def resource_name(self) -> str: ...


_Asked = TypeVar("_Asked", bound=ConfigResource)
_Answer = TypeVar("_Answer")


async def change_each(
    resources: Sequence[_Asked],
    change: Callable[[_Asked], Awaitable[None]],
    answer: Callable[..., _Answer],
) -> tuple[_Answer, ...]:
    """Change each resource on its own, none that is named twice; an `answer` for each, in order."""
    counts = Counter((each.resource_type, each.resource_name) for each in resources)
    answers = []
    for each in resources:
        failure: HeadraceError | None = None
        try:
            if counts[each.resource_type, each.resource_name] > 1:
                raise RequestError("Each resource must appear at most once.")
            await change(each)
        except HeadraceError as error:
            failure = error
        answers.append(
            answer(
                error_code=code_for(failure),
                error_message=None if failure is None else explain(failure),
                resource_type=each.resource_type,
                resource_name=each.resource_name,
            )
        )
    return tuple(answers)


async def replace_configs(
    broker: BrokerState,
    resource_type: int,
    resource_name: str,
    configs: Iterable[tuple[str, str | None]],
    *,
    validate_only: bool,
) -> None:
    """Give a resource exactly these overrides; raises HeadraceError and changes nothing."""
    configs = list(configs)
    _check_request(configs)
    if resource_type == ResourceType.BROKER_LOGGER:
        raise RequestError(f"Unknown resource type {resource_type}")
    overrides = {name: value for name, value in configs if value is not None}

    async def change() -> None:
        await _resource(broker, resource_type, resource_name).apply(overrides, validate_only)

    await broker.topics.changes.make(change)


async def edit_configs(
    broker: BrokerState,
    resource_type: int,
    resource_name: str,
    edits: Iterable[Edit],
    *,
    validate_only: bool,
) -> None:
    """Edit the overrides of a resource: all edits or, with a HeadraceError, none."""
    edits = list(edits)
    for edit in edits:
        if edit.operation not in list(Operation):
            raise RequestError(f"Unknown operation {edit.operation} for config {edit.name}")
    _check_request(
        (edit.name, "" if edit.operation == Operation.DELETE else edit.value) for edit in edits
    )
    if resource_type == ResourceType.BROKER_LOGGER:
        _check_node_id(broker, resource_name, "Unexpected node id. Expected {}, but received {}")
        levels = [(edit.name, edit.operation, edit.value) for edit in edits]
        loggers.set_levels(levels, validate_only=validate_only)
        return

    async def change() -> None:
        resource = _resource(broker, resource_type, resource_name)
        overrides = dict(resource.overrides)
        for edit in edits:
            _edit(overrides, edit, resource)
        await resource.apply(overrides, validate_only)

    await broker.topics.changes.make(change)


class _Resource(NamedTuple):
    """One resource's overrides now, what stands behind them, and how to replace them."""

    overrides: Mapping[str, str]
    find_setting: Callable[[str], Setting | None]
    effective: Callable[[str], str | None]
    apply: Callable[[Overrides, bool], Awaitable[None]]
    refuse_list_edit: Callable[[str, Operation], InvalidConfigError]


def _resource(broker: BrokerState, resource_type: int, name: str) -> _Resource:
    match resource_type:
        case ResourceType.TOPIC:
            return _topic(broker, name)
        case ResourceType.BROKER:
            return _broker(broker, name)
        case ResourceType.GROUP:
            if not name:
                raise RequestError("Default group resources are not allowed.")
            return _group(broker, name)
        case ResourceType.CLIENT_METRICS:
            if not name:
                raise RequestError("Subscription name can't be empty")
            return _client_metrics(broker, name)
        case _:
            raise RequestError(f"Unknown resource type {resource_type}")


def _topic(broker: BrokerState, name: str) -> _Resource:
    if not name:
        raise RequestError("Default topic resources are not allowed.")
    check_topic_name(name)
    overrides = broker.topics.get(name).configs

    async def apply(new: Overrides, validate_only: bool) -> None:
        broker.settings.check_topic_configs(new)
        if not validate_only and new != overrides:
            await broker.topics.set_configs_now(name, new)

    def effective(key: str) -> str | None:
        return show(broker.settings.topic_value(key, overrides))

    return _Resource(overrides, catalogue.TOPIC.get, effective, apply, _not_a_list)


def _broker(broker: BrokerState, name: str) -> _Resource:
    if name:
        _check_node_id(broker, name, "Unexpected broker id, expected {}, but received {}")
    dynamic = broker.settings.dynamic_configs
    overrides = dynamic.broker if name else dynamic.default

    async def apply(new: Overrides, validate_only: bool) -> None:
        rules.check_broker_update(new, is_default=not name)
        security.refuse_at_run_time(key for key in new if new[key] != overrides.get(key))
        if not validate_only and new != overrides:
            _replace(overrides, new)
            await broker.topics.store_settings(dynamic.to_flat())

    def effective(key: str) -> str | None:
        return show(broker.settings[key])

    def refuse(key: str, operation: Operation) -> InvalidConfigError:
        verb = operation.name.lower()
        message = f"Config value {verb} is not allowed for config key: {key}"
        return InvalidConfigError(key, None, message)

    return _Resource(overrides, find_broker_setting, effective, apply, refuse)


def _group(broker: BrokerState, name: str) -> _Resource:
    dynamic = broker.settings.dynamic_configs
    return _stored_resource(
        broker,
        dynamic,
        dynamic.groups,
        name,
        catalogue.GROUP,
        broker.settings.check_group_configs,
    )


def _client_metrics(broker: BrokerState, name: str) -> _Resource:
    dynamic = broker.settings.dynamic_configs
    return _stored_resource(
        broker,
        dynamic,
        dynamic.client_metrics,
        name,
        catalogue.CLIENT_METRICS,
        rules.check_client_metrics,
    )


def _stored_resource(
    broker: BrokerState,
    dynamic: DynamicConfigs,
    resources: dict[str, Overrides],
    name: str,
    known: Mapping[str, Setting],
    check: Callable[[Overrides], None],
) -> _Resource:
    overrides = resources.get(name, {})

    async def apply(new: Overrides, validate_only: bool) -> None:
        check(new)
        if validate_only or new == overrides:
            return
        resources.pop(name, None)
        if new:
            resources[name] = new
        await broker.topics.store_settings(dynamic.to_flat())

    def effective(key: str) -> str | None:
        return overrides.get(key, known[key].default)

    return _Resource(overrides, known.get, effective, apply, _not_a_list)


def _edit(overrides: Overrides, edit: Edit, resource: _Resource) -> None:
    if edit.operation == Operation.DELETE:
        overrides.pop(edit.name, None)
        return
    value = edit.value or ""
    if edit.operation == Operation.SET:
        overrides[edit.name] = value
        return
    setting = resource.find_setting(edit.name)
    if setting is None or setting.type != ConfigType.LIST:
        raise resource.refuse_list_edit(edit.name, Operation(edit.operation))
    entries = split_list(resource.effective(edit.name) or "")
    changed = split_list(value)
    if edit.operation == Operation.APPEND:
        entries += [entry for entry in changed if entry not in entries]
    else:
        entries = [entry for entry in entries if entry not in changed]
    overrides[edit.name] = ",".join(entries)


def _not_a_list(name: str, operation: Operation) -> InvalidConfigError:
    message = f"Can't {operation.name} to key {name} because its type is not LIST."
    return InvalidConfigError(name, None, message)


def _check_request(configs: Iterable[tuple[str, str | None]]) -> None:
    seen: set[str] = set()
    for name, value in configs:
        if name in seen:
            raise RequestError("Error due to duplicate config keys")
        seen.add(name)
        if value is None:
            raise RequestError(f"Null value not supported for : {name}")


def _check_node_id(broker: BrokerState, name: str, message: str) -> None:
    try:
        node_id = int(name)
    except ValueError:
        raise RequestError(f"Node id must be an integer, but it is: {name}") from None
    if node_id != broker.node_id:
        raise RequestError(message.format(broker.node_id, node_id))


def _replace(overrides: Overrides, new: Overrides) -> None:
    overrides.clear()
    overrides.update(new)


def explain(error: Exception) -> str:
    """Return the sentence for the client: Kafka's own for a topic that is not there."""
    if isinstance(error, UnknownTopicError):
        return f"The topic '{error.topic}' does not exist."
    return str(error)
