"""One process that serves calls: its pipes, what it writes on standard error, and its end."""

from __future__ import annotations

import queue
import subprocess
import sys
from contextlib import suppress
from threading import Thread
from typing import IO, cast

from bubbleproof.engine_process.loss import EngineLoss, LossKind, loss_of
from bubbleproof.engine_process.served import EngineCall, packed, read_begin, read_frame, write_all

SERVER = "from bubbleproof.engine_process.served import main; main()"
ERRORS_READ = 4_000  # the last bytes of standard error
PATIENCE = 5.0  # seconds for a process that closed its output to be gone


class ServingProcess:
    """Started when made; ``answers`` are what it says, at last None. Raises ``OSError``."""

    def __init__(self) -> None:
        self.process = _started()
        self.errors, self.unreadable = b"", ""
        self.answers: queue.SimpleQueue[tuple[str, object] | None] = queue.SimpleQueue()
        self._to_send: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        pipes = self.process.stdin, self.process.stdout, self.process.stderr
        self.pipes = cast("tuple[IO[bytes], IO[bytes], IO[bytes]]", pipes)
        works = self._write, self._read, self._note
        self.threads = [
            Thread(target=work, args=(pipe,), daemon=True)
            for work, pipe in zip(works, self.pipes, strict=True)
        ]
        for thread in self.threads:
            thread.start()

    @property
    def is_there(self) -> bool:
        """Whether it has not ended."""
        return all(thread.is_alive() for thread in self.threads)

    def send(self, value: object) -> None:
        """Send a value without waiting until it is taken. Raises what ``pickle`` raises."""
        if isinstance(value, EngineCall):
            self.errors = b""
        self._to_send.put(packed(value))

    def loss(self, who: str, memory: int | None) -> EngineLoss:
        """Why it has ended by itself, or what it said is none."""
        if self.unreadable:
            return EngineLoss(who=who, kind=LossKind.CRASHED, detail=self.unreadable)
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(PATIENCE)
        self.threads[-1].join(PATIENCE)
        errors = self.errors.decode("utf-8", "replace")
        return loss_of(who, self.process.returncode or 0, errors, memory)

    def end(self) -> None:
        """Kill it, whatever it does, and see it gone."""
        self.process.kill()
        self.process.wait()
        self._to_send.put(None)
        for thread in self.threads:  # else another file may get a number that they still read
            thread.join(PATIENCE)
        self.forget()

    def forget(self) -> None:
        """Close this side of the pipes."""
        for pipe in self.pipes:
            with suppress(OSError):
                pipe.close()
        self.process.returncode = self.process.returncode or 0  # no longer ours to wait for

    def _write(self, pipe: IO[bytes]) -> None:
        """Send in turn; that nobody reads any more is noticed by the answers."""
        with suppress(OSError, ValueError):
            while (data := self._to_send.get()) is not None:
                write_all(pipe, data)

    def _read(self, pipe: IO[bytes]) -> None:
        try:
            with suppress(EOFError, OSError):
                read_begin(pipe)
                while True:
                    self.answers.put(cast("tuple[str, object]", read_frame(pipe)))
        except Exception as error:  # of whatever kind: the answer is not ours
            self.unreadable = f"its answer cannot be read: {type(error).__name__}: {error}"
        self.answers.put(None)

    def _note(self, pipe: IO[bytes]) -> None:
        """Keep the last of what is written on standard error."""
        with suppress(OSError, ValueError):
            while part := pipe.read(ERRORS_READ):
                self.errors = (self.errors + part)[-ERRORS_READ:]


def _started() -> subprocess.Popen[bytes]:
    """This interpreter, with the same places to import from, serving."""
    if not sys.executable:
        raise OSError("this Python does not know its own program")
    return subprocess.Popen(
        [sys.executable, "-c", f"import sys; sys.path[:] = {sys.path!r}; {SERVER}"],
        bufsize=0,  # in a process that is forked meanwhile, nobody would open a buffer's lock
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,  # a terminal's Ctrl-C is for the caller alone
    )
