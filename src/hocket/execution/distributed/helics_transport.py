"""Hosts as federates of HELICS: a frame is a publication, HELICS time is the number of the exchange.

In:  the address of a broker, and a name that all hosts of the run share
Out: frames; the physical time rides in the plan, so that fractions stay exact and steps may be taken back

Every host asks for the next time at every exchange: what was published before is there when it is granted.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from hocket.engine.host_exchange import TransportError
from hocket.execution.distributed.helics_library import OPTIONS, PatientCaller, load_helics

_SIZE = struct.Struct("<Q")
_OUT_OF_REACH = "HELICS says: {0}"


class HelicsTransport:
    """The transport of one host."""

    def __init__(self, broker: str, federation: str, hosts: Sequence[str], host: str):
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
        h.helicsFederateEnterExecutingMode(self._federate)

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
                h.helicsFederateDisconnect(federate)

        left = [40]  # twice a second twenty times: two seconds

        def look() -> None:
            left[0] -= 1
            if not left[0]:
                raise TransportError("HELICS does not let it go")

        with suppress(TransportError):
            self._caller.call(leave, look)
        self._caller.close()


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
