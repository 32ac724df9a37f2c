import io

from confluent_kafka import Producer
from rich.console import Console

from demo.letters import all_letters, by_reason, reasons_table
from headrace.testing import running_broker


def send_letter(producer: Producer, offset: int, reason: str, value: bytes) -> None:
    headers = {
        "headrace.pipeline": "table",
        "headrace.reason": reason,
        "headrace.topic": "readings",
        "headrace.partition": "3",
        "headrace.offset": str(offset),
        "headrace.timestamp": "1794817251956",
    }
    producer.produce("dead", value, b"key", headers=list(headers.items()))


def test_letters_are_counted_by_reason_and_shown_with_an_example():
    with running_broker() as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap})
        send_letter(producer, 1, "not JSON at character 17", b"ERR [bold]17")
        send_letter(producer, 2, "not JSON at character 3", b"ERR 18")
        send_letter(producer, 2, "not JSON at character 3", b"ERR 18")
        send_letter(producer, 3, "no field 'at'", b"{}")
        producer.flush(120)
        letters = all_letters(broker.bootstrap, "dead")

    assert sorted(letter.source.offset for letter in letters) == [1, 2, 3]
    assert [len(alike) for alike in by_reason(letters).values()] == [2, 1]
    out = io.StringIO()
    Console(file=out, width=140).print(reasons_table(letters))
    assert "no field 'at'" in out.getvalue()
    assert "readings-3@3" in out.getvalue()
