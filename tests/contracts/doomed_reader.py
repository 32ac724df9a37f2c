"""A group's member as a program of its own, to be killed: it reads, says so, and hangs.

    python doomed_reader.py BOOTSTRAP TOPIC GROUP COUNT before|never

`before`: it commits before it would process, `never`: it did not come to commit.
"""

import sys
import threading

from confluent_kafka import Consumer


def main(bootstrap: str, topic: str, group: str, count: str, commit: str) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": 3000,
            "heartbeat.interval.ms": 200,
        }
    )
    consumer.subscribe([topic])
    seen: list[str] = []
    while len(seen) < int(count):
        for message in consumer.consume(int(count) - len(seen), timeout=1):
            seen.append((message.value() or b"").decode())
    if commit == "before":
        consumer.commit(asynchronous=False)
    print(" ".join(seen), flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
