"""What was changed at run time, per resource, and the flat form in which it is stored.

A flat key is the plain name for this broker's own value, and else the resource in front of it:
`default:NAME` for all brokers, `group:NAME:GROUP`, `client-metrics:NAME:SUBSCRIPTION`. No
setting's name has a colon in it, so the last part may hold any text.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

_DEFAULT, _GROUP, _CLIENT_METRICS = "default", "group", "client-metrics"


@dataclass(frozen=True, slots=True)
class DynamicConfigs:
    """The overrides of each resource but topics. A resource without any is not in its dict."""

    broker: dict[str, str] = field(default_factory=dict)
    default: dict[str, str] = field(default_factory=dict)
    groups: dict[str, dict[str, str]] = field(default_factory=dict)
    client_metrics: dict[str, dict[str, str]] = field(default_factory=dict)

    @classmethod
    def from_flat(cls, flat: Mapping[str, str]) -> "DynamicConfigs":
        """Read the stored form."""
        configs = cls()
        for key, value in flat.items():
            match key.split(":", 2):
                case ["default", name]:
                    configs.default[name] = value
                case ["group", name, group]:
                    configs.groups.setdefault(group, {})[name] = value
                case ["client-metrics", name, subscription]:
                    configs.client_metrics.setdefault(subscription, {})[name] = value
                case _:
                    configs.broker[key] = value
        return configs

    def to_flat(self) -> dict[str, str]:
        """Return the stored form."""
        flat = dict(self.broker)
        flat |= {f"{_DEFAULT}:{name}": value for name, value in self.default.items()}
        for kind, resources in ((_GROUP, self.groups), (_CLIENT_METRICS, self.client_metrics)):
            for resource, configs in resources.items():
                flat |= {f"{kind}:{name}:{resource}": text for name, text in configs.items()}
        return flat
