"""Hosts as federates of HELICS: a frame is a publication, HELICS time is the number of the exchange.

In:  the address of a broker, and a name that all hosts of the run share
Out: frames; the physical time rides in the plan, so that fractions stay exact and steps may be taken back

Every host asks for the next time at every exchange: what was published before is there when it is granted.
"""

from __future__ import annotations

import json
import struct
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from hocket.engine.host_exchange import TransportError
from hocket.simulators.helics_library import OPTIONS, PatientCaller, load_helics

FEDERATION = "hocket"
"""What federates of hosts begin with that were begun by hand: one run at a time uses a broker."""
PART = 1 << 22
"""Bytes of a file that are sent at once."""
NEWS = 1.0
"""Seconds between two words to a leader."""
_SIZE = struct.Struct("<Q")
_OUT_OF_REACH = "HELICS says: {0}"


class HelicsTransport:
    """The transport of one host."""

    def __init__(
        self,
        broker: str,
        federation: str,
        hosts: Sequence[str],
        host: str,
        folder: Path | None = None,
        card: Mapping[str, Any] | None = None,
    ):
        """`folder` is that of the run of this host: a leader gets it at the end, and `card` first."""
        self._folder, self._card = folder, card
        self._rows: Any = None
        self._told = 0.0
        self._broker, self._federation, self._hosts, self._host = broker, federation, list(hosts), host
        self._caller = PatientCaller()
        self._federate: Any = None
        self._outputs: dict[str, Any] = {}
        self._inputs: dict[str, Any] = {}
        self._out: dict[str, list[bytes]] = {}
        self._in: dict[str, deque[bytes]] = {host: deque() for host in hosts}
        self.number = 0

    def open(self, look: Callable[[], None]) -> None:
        """Join the federation; returns when all hosts have."""
        self._call(self._join, look)

    def _join(self) -> None:
        h = load_helics()
        info = h.helicsCreateFederateInfo()
        h.helicsFederateInfoSetCoreTypeFromString(info, "zmq")
        options = f"--federates=1 --broker={self._broker} --timeout=600s {OPTIONS}"
        h.helicsFederateInfoSetCoreInitString(info, options)
        h.helicsFederateInfoSetTimeProperty(info, h.HELICS_PROPERTY_TIME_DELTA, 1.0)
        name = f"{self._federation}/{self._host}"
        self._federate = h.helicsCreateValueFederate(name, info)
        for peer in self._hosts:
            if peer != self._host:
                out, back = f"{name}/{peer}", f"{self._federation}/{peer}/{self._host}"
                kind = h.HELICS_DATA_TYPE_RAW
                self._outputs[peer] = h.helicsFederateRegisterGlobalPublication(self._federate, out, kind, "")
                self._inputs[peer] = h.helicsFederateRegisterSubscription(self._federate, back, "")
        if self._folder is not None:
            kind = h.HELICS_DATA_TYPE_RAW
            self._rows = h.helicsFederateRegisterGlobalPublication(self._federate, f"{name}/rows", kind, "")
        h.helicsFederateEnterExecutingMode(self._federate)
        if self._rows is not None:
            self._tell({"kind": "card", "card": dict(self._card or {})})
            self._told = time.monotonic()

    def _tell(self, facts: Mapping[str, Any], content: bytes = b"") -> None:
        load_helics().helicsPublicationPublishBytes(self._rows, pack_news(facts, content))

    def send(self, target: str, frame: bytes, look: Callable[[], None]) -> None:
        """Keep a frame until the exchange ends."""
        self._out.setdefault(target, []).append(_SIZE.pack(len(frame)) + frame)

    def end_exchange(self, look: Callable[[], None]) -> None:
        """Publish what waits, ask for the next time, and take in what others have published."""
        self._call(self._exchange, look)

    def _exchange(self) -> None:
        h = load_helics()
        self._publish()
        self.number += 1
        if self._rows is not None and time.monotonic() > self._told + NEWS:
            self._told = time.monotonic()
            self._tell({"kind": "progress", "exchange": self.number})
        granted = h.helicsFederateRequestTime(self._federate, float(self.number))
        if granted != self.number:
            raise TransportError(f"HELICS is at exchange {granted:.6g}, and this host at {self.number}")
        for peer, source in self._inputs.items():
            if h.helicsInputIsUpdated(source):
                self._in[peer].extend(_split(h.helicsInputGetBytes(source)))

    def _publish(self) -> None:
        h, out, self._out = load_helics(), self._out, {}
        for target, frames in out.items():
            h.helicsPublicationPublishBytes(self._outputs[target], b"".join(frames))

    def receive(self, source: str, look: Callable[[], None]) -> bytes:
        """Take the next frame; all of the exchange have come."""
        if not self._in[source]:
            raise TransportError("its message has not come with the exchange: it has left, or it was lost")
        return self._in[source].popleft()

    def _call(self, function: Callable[[], None], look: Callable[[], None]) -> None:
        try:
            self._caller.call(function, look)
        except load_helics().HelicsException as error:
            raise TransportError(_OUT_OF_REACH.format(str(error).strip())) from None

    def close(self) -> None:
        """Publish what waits and leave, in a moment: a library that hangs is left behind."""
        federate, self._federate = self._federate, None
        if federate is None or self._caller.is_stuck:
            return

        def leave() -> None:
            h = load_helics()
            with suppress(h.HelicsException, KeyError):  # it may not have got so far as to register
                self._publish()
                self._deliver(h, federate)
                h.helicsFederateDisconnect(federate)

        left = [1200 if self._rows is not None else 40]  # a twentieth of a second each

        def look() -> None:
            left[0] -= 1
            if not left[0]:
                raise TransportError("HELICS does not let it go")

        with suppress(TransportError):
            self._caller.call(leave, look)
        self._caller.close()

    def _deliver(self, h: Any, federate: Any) -> None:
        """Send a leader all files of the run of this host, a part of one at a time of HELICS each."""
        if self._rows is None or self._folder is None:
            return
        parts: list[tuple[dict[str, Any], bytes]] = []
        for path in sorted(each for each in self._folder.rglob("*") if each.is_file()):
            content, name = path.read_bytes(), path.relative_to(self._folder).as_posix()
            parts += [
                ({"kind": "file", "name": name}, content[at : at + PART])
                for at in range(0, max(1, len(content)), PART)
            ]
        for facts, content in [*parts, ({"kind": "end"}, b"")]:
            self.number += 1
            h.helicsFederateRequestTime(federate, float(self.number))
            self._tell(facts, content)
        h.helicsFederateRequestTime(federate, float(self.number + 1))


def pack_news(facts: Mapping[str, Any], content: bytes = b"") -> bytes:
    """Return what a leader is told: facts as JSON, and bytes."""
    head = json.dumps(dict(facts)).encode()
    return _SIZE.pack(len(head)) + head + content


def unpack_news(blob: bytes) -> tuple[dict[str, Any], bytes]:
    """Return facts and bytes; raises TransportError for what is not well formed."""
    if len(blob) < _SIZE.size:
        raise TransportError("news that are not well formed")
    end = _SIZE.size + int(_SIZE.unpack_from(blob)[0])
    try:
        facts = json.loads(blob[_SIZE.size : end])
    except ValueError:
        raise TransportError("news that are not well formed") from None
    if not isinstance(facts, dict):
        raise TransportError("news that are not well formed")
    return facts, bytes(blob[end:])


def _split(blob: bytes) -> list[bytes]:
    """Return the frames of a publication; raises TransportError for what is not well formed."""
    frames, at = [], 0
    while at < len(blob):
        if at + _SIZE.size > len(blob):
            raise TransportError("a publication is not well formed")
        end = at + _SIZE.size + int(_SIZE.unpack_from(blob, at)[0])
        if end > len(blob):
            raise TransportError("a publication is not well formed")
        frames.append(bytes(blob[at + _SIZE.size : end]))
        at = end
    return frames
