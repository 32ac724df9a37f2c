"""What a drill is to do: scenarios, load, and the limits of its patience."""

from dataclasses import dataclass
from enum import StrEnum

from headrace.kafka.drill.message import MIN_MESSAGE_BYTES
from headrace.kafka.errors import DrillError

REPLICATION_FACTOR = 3
MIN_INSYNC_REPLICAS = 2
MAX_MESSAGE_BYTES = 1_000_000  # librdkafka's `message.max.bytes`, and Kafka's, less the overhead


class Scenario(StrEnum):
    """What can be done to a cluster, in the order of a whole drill."""

    LEADER = "leader"
    FOLLOWER = "follower"
    CONTROLLER = "controller"
    PAUSE = "pause"
    ROLLING = "rolling"
    RESYNC = "resync"


TITLES = {
    Scenario.LEADER: "leader killed",
    Scenario.FOLLOWER: "follower killed",
    Scenario.CONTROLLER: "active controller killed",
    Scenario.PAUSE: "leader paused",
    Scenario.ROLLING: "rolling restart",
    Scenario.RESYNC: "resynchronisation",
}


@dataclass(frozen=True, slots=True)
class Plan:
    """A drill. `rate` is messages a second of all publishers together."""

    scenarios: tuple[Scenario, ...] = tuple(Scenario)
    rate: int = 1000  # Python is told of every acknowledgement; more would measure Python
    message_bytes: int = 100
    publishers: int = 2
    consumers: int = 2
    partitions: int = 6
    resync_messages: int = 200_000
    is_topic_kept: bool = False
    calm_s: float = 2.0  # undisturbed load before each fault, to compare with
    hold_s: float = 2.0  # how long the cluster goes on hurt, once it has dealt with the fault
    whole_timeout_s: float = 180.0  # a JVM on a busy laptop, and a follower's catching up

    def __post_init__(self) -> None:
        least = {
            "rate": 1,
            "message_bytes": MIN_MESSAGE_BYTES,
            "publishers": 1,
            "consumers": 1,
            "partitions": 1,
            "resync_messages": 1,
        }
        for name, minimum in least.items():
            if (value := getattr(self, name)) < minimum:
                option = name.replace("_", "-")
                raise DrillError(f"--{option} {value}: {minimum} is the least")
        if self.message_bytes > MAX_MESSAGE_BYTES:
            raise DrillError(
                f"--message-bytes {self.message_bytes}: {MAX_MESSAGE_BYTES} is the most"
            )
        if not self.scenarios:
            raise DrillError(f"no scenario to run; there are {', '.join(Scenario)}")
