"""One run of `headrace produce`: from the bytes of files to messages that are acknowledged.

Nothing is lost silently: each line becomes an acknowledged message, a message that failed with
its reason, or a line that was refused with its place.
"""

import time
from pathlib import Path
from typing import NamedTuple

from headrace.cli.endings import CommandError, tell
from headrace.cli.interruption import Interruption
from headrace.cli.produce.input_files import blocks, name_of, opened
from headrace.cli.produce.lines import LineSplitter
from headrace.cli.produce.messages import BadLineError, Parser
from headrace.cli.produce.progress import Progress
from headrace.cli.produce.sending import ProducerGoneError, Sender

_JSON_GROWTH = 8  # a byte takes at most six in JSON (\u0000), and there are other fields
_TOLD_REFUSALS = 10


class Cut(NamedTuple):
    """How the input is cut into messages: at `delimiter`, or not at all when that is None."""

    delimiter: bytes | None
    message_max_bytes: int

    @property
    def max_line_bytes(self) -> int:
        """More than this makes no message that the producer takes."""
        growth = 1 if self.delimiter is None else _JSON_GROWTH
        return self.message_max_bytes * growth


class Production:
    """Sends until the input ends, a signal comes, or something fails and is not to be skipped."""

    def __init__(
        self,
        sender: Sender,
        parse: Parser,
        cut: Cut,
        progress: Progress,
        interruption: Interruption,
        *,
        is_skipping: bool,
    ) -> None:
        self.refused = 0
        self.is_stopped = False
        self._sender = sender
        self._parse = parse
        self._cut = cut
        self._progress = progress
        self._interruption = interruption
        self._is_skipping = is_skipping
        self._started_at = time.monotonic()
        self._read_bytes = 0
        self._is_wait_told = False

    @property
    def seconds(self) -> float:
        """How long it has been under way."""
        return time.monotonic() - self._started_at

    def run(self, paths: list[Path]) -> None:
        """Send all there is, then wait until nothing is on its way."""
        try:
            for path in paths:
                if not self._is_over:
                    self._send_file(path)
        except CommandError as error:
            self._stop(str(error))
        self._sender.finish(self._while_finishing)

    @property
    def _is_over(self) -> bool:
        return self.is_stopped or bool(self._interruption)

    def _send_file(self, path: Path) -> None:
        splitter = LineSplitter(self._cut.delimiter, self._cut.max_line_bytes)
        number = 0
        with opened(path) as descriptor:
            for block in blocks(path, descriptor):
                self._read_bytes += len(block)
                # Lines that were read are sent even after a signal: nobody can read them again.
                number = self._send(splitter.feed(block), path, number)
                if self._is_over:
                    break
            else:
                number = self._send(splitter.finish(), path, number)
        if self._interruption and splitter.pending_bytes:
            tell(
                f"{name_of(path)}:{number + 1}: {splitter.pending_bytes} bytes were read and not "
                "sent, since the end of the line had not come"
            )

    def _send(self, lines: list[bytes], path: Path, number: int) -> int:
        """Send lines that follow line `number`; return the number of the last."""
        max_line_bytes, parse, send = self._cut.max_line_bytes, self._parse, self._sender.send
        for line in lines:
            number += 1
            try:
                if len(line) > max_line_bytes:
                    raise BadLineError(f"longer than {max_line_bytes} bytes")
                if message := parse(line):
                    send(message)
            except BadLineError as error:
                self._refuse(f"{self._place(path, number)}: {error}")
                if self.is_stopped:
                    return number
            except ProducerGoneError as error:
                self._stop(f"{self._place(path, number)}: {error}")
                return number
        self._sender.poll()
        if self._sender.failed and not self._is_skipping and not self.is_stopped:
            self._stop(f"stopped after {self._place(path, number)}: messages were not acknowledged")
        self._show()
        return number

    def _refuse(self, reason: str) -> None:
        self.refused += 1
        if not self._is_skipping:
            self._stop(f"{reason}; neither this nor what follows was sent")
        elif self.refused <= _TOLD_REFUSALS:
            tell(f"skipped {reason}")
        elif self.refused == _TOLD_REFUSALS + 1:
            tell("what else is skipped is only counted")

    def _stop(self, reason: str) -> None:
        self.is_stopped = True
        tell(reason)

    def _place(self, path: Path, number: int) -> str:
        is_line = self._cut.delimiter is not None
        return f"{name_of(path)}:{number}" if is_line else name_of(path)

    def _while_finishing(self) -> None:
        self._show()
        if self._interruption and not self._is_wait_told:
            self._is_wait_told = True
            waiting = self._sender.waiting
            tell(f"waiting for {waiting:,} messages to be acknowledged; once more gives them up")

    def _show(self) -> None:
        self._progress.update(self._read_bytes, self._sender, self.seconds)
