"""Hosts as threads of one process: frames go from queue to queue.

In:  frames
Out: the same, on the other side; nothing leaves the process
"""

from __future__ import annotations

import queue
from collections.abc import Callable, Sequence

from hocket.engine.host_exchange import TransportError

_LOOK = 0.05


class Exchanges:
    """The queues between some hosts; `transport` is one end of them."""

    def __init__(self, hosts: Sequence[str]):
        self.queues: dict[tuple[str, str], queue.SimpleQueue[bytes | None]] = {
            (source, target): queue.SimpleQueue() for source in hosts for target in hosts if source != target
        }

    def transport(self, host: str) -> InProcess:
        """Return what one host uses."""
        return InProcess(self, host)


class InProcess:
    """The transport of one host."""

    def __init__(self, exchanges: Exchanges, host: str):
        self._queues, self._host = exchanges.queues, host

    def open(self, look: Callable[[], None]) -> None:
        """All are there."""

    def send(self, target: str, frame: bytes, look: Callable[[], None]) -> None:
        """Put a frame into the queue."""
        self._queues[self._host, target].put(frame)

    def end_exchange(self, look: Callable[[], None]) -> None:
        """Frames are there as soon as they are sent."""

    def receive(self, source: str, look: Callable[[], None]) -> bytes:
        """Take the next frame."""
        while True:
            try:
                frame = self._queues[source, self._host].get(timeout=_LOOK)
            except queue.Empty:
                look()
                continue
            if frame is None:
                raise TransportError("its thread has ended")
            return frame

    def close(self) -> None:
        """Let the others know that nothing more will come."""
        for (source, _), waiting in self._queues.items():
            if source == self._host:
                waiting.put(None)
