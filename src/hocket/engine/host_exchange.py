"""What one host of several does at each exchange: it sends what others use, and stores what they sent.

In:  the messages that the reading of the plan finds due, and a transport
Out: frames of plain numbers; samples, start values and curves of simulators that live elsewhere

Every host reads the same plan, so that all number exchanges alike; a frame says its number, and one that is
out of step is an error. What is wrong with a peer becomes a HostError that names it, the exchange and a cure.
"""

from __future__ import annotations

import json
import struct
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from math import isnan, nan
from typing import Any, Protocol

import numpy as np

from hocket.engine.memory import Ring
from hocket.errors import EndRequestError, HostError, list_names
from hocket.model.protocols import Array
from hocket.plan.messages import Load, Node, Pair, Post

PATIENCE = 60.0
"""Seconds that a host waits for another, if nothing else is said."""
MARK = b"HKX1"
_HEADER = struct.Struct("<4sBxxxIQ")
"""What every frame begins with: mark, kind, bytes that follow, number of the exchange."""


class Kind(IntEnum):
    """What a frame holds."""

    HELLO = 1
    VALUES = 2
    FLAGS = 3
    GOODBYE = 4


class TransportError(Exception):
    """The other end is gone, or what it sent is not well formed: in words."""


class Transport(Protocol):
    """Carries frames between hosts, in the order in which they were sent from one to another.

    `look` is called at least twenty times a second while nothing comes; what it raises ends the wait.
    """

    def open(self, look: Callable[[], None]) -> None:
        """Meet the others; called once, first."""

    def send(self, target: str, frame: bytes, look: Callable[[], None]) -> None:
        """Send a frame to a host; returns before it is received, unless too many wait."""

    def end_exchange(self, look: Callable[[], None]) -> None:
        """All frames of an exchange have been sent by this host; every host calls it for every exchange."""

    def receive(self, source: str, look: Callable[[], None]) -> bytes:
        """Wait for the next frame from a host; raises TransportError if there will be none."""

    def close(self) -> None:
        """Leave; may be called twice."""


class Places(Protocol):
    """Where numbers of outputs are taken from on one host, and put on another."""

    def take(self, node: Node, count: int) -> list[float]:
        """Return so many numbers of an output; what there is not is not a number."""

    def put(self, node: Node, numbers: Sequence[float]) -> None:
        """Store the numbers of an output."""


class ValuePlaces:
    """Outputs while the start is made consistent: one number each."""

    def __init__(self, y: list[Array]):
        self.y = y

    def take(self, node: Node, count: int) -> list[float]:
        """Return the value."""
        return [float(self.y[node[0]][node[1]])] * count

    def put(self, node: Node, numbers: Sequence[float]) -> None:
        """Store the value."""
        self.y[node[0]][node[1]] = numbers[0]


class CurvePlaces:
    """Curves of a start window: coefficients; those that there are not are not numbers."""

    def __init__(self, curves: list[list[list[Any]]]):
        self.curves = curves

    def take(self, node: Node, count: int) -> list[float]:
        """Return the coefficients."""
        curve = [float(each) for each in self.curves[node[0]][node[1]]]
        return curve + [nan] * (count - len(curve))

    def put(self, node: Node, numbers: Sequence[float]) -> None:
        """Store the coefficients."""
        self.curves[node[0]][node[1]] = [each for each in numbers if not isnan(each)]


class SamplePlaces:
    """The newest samples in the exchange memory of a level; room for them was left at the right times."""

    def __init__(self, rings: list[list[Ring]]):
        self.rings = rings

    def take(self, node: Node, count: int) -> list[float]:
        """Return the newest samples, oldest first."""
        ring = self.rings[node[0]][node[1]]
        found = [float(ring[at][1]) for at in range(max(0, len(ring) - count), len(ring))]
        return [nan] * (count - len(found)) + found

    def put(self, node: Node, numbers: Sequence[float]) -> None:
        """Give the newest samples their values."""
        ring = self.rings[node[0]][node[1]]
        for back, number in zip(range(1, min(len(ring), len(numbers)) + 1), reversed(numbers), strict=False):
            tick, _, slope = ring[-back]
            ring[-back] = tick, number, slope


@dataclass
class HostExchange:
    """One host's end of all exchanges of a run."""

    host: str
    peers: Sequence[str]
    transport: Transport
    patience: float = PATIENCE
    """Seconds that a peer is waited for."""
    attend: Callable[[], None] = lambda: None
    """Called while a peer is waited for: to hear a request to stop."""
    where: Callable[[], float] = lambda: 0.0
    """Returns the simulated time, for messages."""
    number: int = 0
    """Of the exchange under way."""
    places: Places | None = None
    sent: dict[Pair, Load] = field(default_factory=dict)
    """What this host has sent, counted where it is handed to the transport."""
    group: list[tuple[Pair, list[Node], list[int]]] = field(default_factory=list)
    _left: set[str] = field(default_factory=set)

    def attach(self, post: Post, places: Places | None = None) -> None:
        """Carry what a reading of the plan finds due."""
        post.carrier, self.places = self, places

    def meet(self, card: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """Open the transport; return the card of each peer: what it says of itself."""
        self.transport.open(self._watch("the start", self.peers))
        frame = json.dumps(dict(card)).encode()
        return {
            peer: json.loads(payload or b"{}") for peer, payload in self._trade(Kind.HELLO, frame).items()
        }

    # the messages of the plan

    def carry(self, pair: Pair, nodes: Sequence[Node], counts: Sequence[int]) -> None:
        """Send numbers, or note that they will come."""
        self.group.append((pair, list(nodes), list(counts)))
        if pair[0] != self.host:
            return
        assert self.places is not None
        numbers: list[float] = []
        for node, count in zip(nodes, counts, strict=True):
            numbers += self.places.take(node, count)
        self.sent[pair] = self.sent.get(pair, Load()) + Load(1, len(numbers))
        self._send(pair[1], Kind.VALUES, np.array(numbers, "<f8").tobytes(), self.number + 1)

    def settle(self) -> None:
        """End the exchange: wait for what was sent to this host, and store it."""
        if not self.group:
            return
        group, self.group = self.group, []
        self._end()
        for pair, nodes, counts in group:
            if pair[1] != self.host:
                continue
            payload = self._receive(pair[0], Kind.VALUES)
            if len(payload) != 8 * sum(counts):
                raise self._out_of_step(pair[0], f"{len(payload) // 8} numbers, {sum(counts)} were expected")
            numbers, at = np.frombuffer(payload, "<f8").tolist(), 0
            assert self.places is not None
            for node, count in zip(nodes, counts, strict=True):
                self.places.put(node, numbers[at : at + count])
                at += count

    def agree(self, flags: Sequence[bool]) -> list[bool]:
        """Return which flags are up on any host."""
        self.settle()
        found = np.array(flags, bool)
        for peer, payload in self._trade(Kind.FLAGS, found.tobytes()).items():
            if len(payload) != len(flags):
                raise self._out_of_step(peer, f"{len(payload)} flags, {len(flags)} were expected")
            found |= np.frombuffer(payload, bool)
        return [bool(each) for each in found]

    def leave(self, status: str, by: str = "", error: str = "") -> None:
        """Tell all peers why nothing more will come, and close the transport."""
        words = json.dumps({"status": status, "by": by, "error": error}).encode()
        try:
            for peer in self.peers:
                if peer not in self._left:
                    self._say_goodbye(peer, words)
        finally:
            self.transport.close()

    def _say_goodbye(self, peer: str, words: bytes) -> None:
        begun = time.monotonic()

        def look() -> None:
            if time.monotonic() - begun > 1.0:
                raise TransportError("it does not take what is sent")

        try:
            frame = _HEADER.pack(MARK, Kind.GOODBYE, len(words), self.number) + words
            self.transport.send(peer, frame, look)
        except TransportError:
            self._left.add(peer)

    # frames

    def _trade(self, kind: Kind, payload: bytes) -> dict[str, bytes]:
        """Send the same to all peers, and return what each of them sent."""
        for peer in self.peers:
            self._send(peer, kind, payload, self.number + 1)
        self._end()
        return {peer: self._receive(peer, kind) for peer in self.peers}

    def _end(self) -> None:
        self.number += 1
        try:
            self.transport.end_exchange(self._watch(f"exchange {self.number}", self.peers))
        except TransportError as error:
            raise self._gone(self.peers[0] if len(self.peers) == 1 else "", str(error)) from None

    def _send(self, peer: str, kind: Kind, payload: bytes, number: int) -> None:
        frame = _HEADER.pack(MARK, kind, len(payload), number) + payload
        try:
            self.transport.send(peer, frame, self._watch(f"exchange {number}", [peer]))
        except TransportError as error:
            raise self._gone(peer, str(error)) from None

    def _receive(self, peer: str, kind: Kind) -> bytes:
        try:
            frame = self.transport.receive(peer, self._watch(f"exchange {self.number}", [peer]))
        except TransportError as error:
            raise self._gone(peer, str(error)) from None
        if len(frame) < _HEADER.size:
            raise self._out_of_step(peer, "a frame without a header")
        mark, found, size, number = _HEADER.unpack_from(frame)
        payload = frame[_HEADER.size :]
        if mark != MARK or size != len(payload):
            raise self._out_of_step(peer, "what hocket has not written")
        if found == Kind.GOODBYE:
            self._left.add(peer)
            raise self._farewell(peer, payload)
        if found != kind or number != self.number:
            raise self._out_of_step(peer, f"exchange {number} where this host is at {self.number}")
        return payload

    def _watch(self, what: str, peers: Sequence[str]) -> Callable[[], None]:
        begun = time.monotonic()

        def look() -> None:
            self.attend()
            if time.monotonic() - begun > self.patience:
                names = list_names(peers, 4)
                late = f"{names} did not answer within {self.patience:g} s"
                hint = (
                    "look there: it hangs, is slow, or was never started; a longer time limit if it is slow"
                )
                raise self._error(peers[0] if len(peers) == 1 else "", late, what, hint)

        return look

    def _farewell(self, peer: str, payload: bytes) -> HostError | EndRequestError:
        """Return the error for a peer that has left in order: how its run ended is how this one does."""
        try:
            told = json.loads(payload)
            status, by, words = (str(told.get(key, "")) for key in ("status", "by", "error"))
        except (ValueError, AttributeError):
            return self._out_of_step(peer, "a farewell that is not well formed")
        if status == "ended":
            request = EndRequestError(f"`{by}` asks to end the simulation")
            request.by = by
            return request
        cause = f"its run has {status}" + (f": {words}" if words else "")
        error = self._error(
            peer, f"`{peer}` has left: {cause}", f"exchange {self.number}", f"look at `{peer}`"
        )
        error.status = status
        return error

    def _gone(self, peer: str, how: str) -> HostError:
        name = f"`{peer}`" if peer else f"one of {list_names(self.peers, 4)}"
        what = f"{name} is gone: {how}"
        hint = f"look at what {name} says; its rows so far are kept there"
        return self._error(peer, what, f"exchange {self.number}", hint)

    def _out_of_step(self, peer: str, what: str) -> HostError:
        hint = "the same scenario and the same version of hocket on all hosts"
        return self._error(peer, f"`{peer}` sent {what}", f"exchange {self.number}", hint)

    def _error(self, peer: str, what: str, place: str, hint: str) -> HostError:
        error = HostError(what, f"host `{self.host}`, {place}, t = {self.where()!r} s", "", hint)
        error.host = peer
        return error
