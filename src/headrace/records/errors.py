"""Why what a producer sent cannot be appended."""

from collections.abc import Sequence

from headrace.errors import HeadraceError


class RecordError(HeadraceError):
    """What a producer sent cannot be appended."""


class CorruptMessageError(RecordError):
    """The batch's bytes do not match its checksum or its size."""


class InvalidRecordError(RecordError):
    """The batch's content breaks a rule; `record_errors` has (index, why) if not of all records."""

    def __init__(self, reason: str, record_errors: Sequence[tuple[int, str]] = ()) -> None:
        super().__init__(reason)
        self.record_errors = record_errors


class UndecodableRecordsError(RecordError):
    """The codec of the batch is unknown or its payload does not decompress."""


class DecompressedTooLargeError(UndecodableRecordsError):
    """Compressed records would take more memory than they may."""

    def __init__(self, codec: str, limit_bytes: int) -> None:
        super().__init__(f"{codec} data is over {limit_bytes} bytes decompressed")
        self.codec, self.limit_bytes = codec, limit_bytes


class UnsupportedCompressionError(RecordError):
    """The codec of the batch is not for the version of the request that brought it."""


class MessageTooLargeError(RecordError):
    """The batch is larger than `max.message.bytes`."""

    def __init__(self, size: int, limit: int, setting: str = "max.message.bytes") -> None:
        super().__init__(f"batch of {size} bytes is over {setting}={limit}")
        self.size, self.limit = size, limit


class BatchTooLargeError(MessageTooLargeError):
    """The batch is larger than a segment may be."""


class InvalidTimestampError(InvalidRecordError):
    """Timestamps are too far from the clock for the topic, or not the client's to set."""
