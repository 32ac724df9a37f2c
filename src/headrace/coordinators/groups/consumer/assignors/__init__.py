"""Who gets which partition: the assignors that run in the broker, by name.

Each is a pure function of the members and the partition counts. Every partition of a topic that
someone subscribes to goes to exactly one of its subscribers.
"""

from collections.abc import Callable, Mapping, Sequence

from headrace.coordinators.groups.consumer.assignors.range import assign_ranges
from headrace.coordinators.groups.consumer.assignors.spec import MemberSpec, PartitionCounts
from headrace.coordinators.groups.consumer.assignors.uniform import assign_uniformly
from headrace.coordinators.groups.records import Assignment

Assignor = Callable[[Sequence[MemberSpec], PartitionCounts], dict[str, Assignment]]

ASSIGNORS: Mapping[str, Assignor] = {"uniform": assign_uniformly, "range": assign_ranges}
