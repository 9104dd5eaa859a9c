"""A HELICS broker for one run, as a process of this machine.

In:  how many federates will come, and where it listens
Out: its address; it is gone when the run is
"""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from hocket.errors import HostError
from hocket.execution.distributed.processes import end_process, live_while_wanted, start_process
from hocket.execution.distributed.processes import watch_standard_input as watch
from hocket.simulators.helics_library import OPTIONS, load_helics

START = 20.0
"""Seconds that a broker may take to begin."""
TRIES = 5


@dataclass(frozen=True)
class Broker:
    """A broker that was begun: where it listens."""

    address: str
    process: subprocess.Popen[bytes]

    def loss(self) -> HostError | None:
        """Return the error for a broker that is gone; None: it is there."""
        if self.process.poll() is None:
            return None
        hint = "run it again; the rows of all hosts are kept"
        error = HostError(
            "the HELICS broker is gone: its process ended", f"broker at {self.address}", "", hint
        )
        error.host = "broker"
        return error


@contextmanager
def local_broker(federates: int, address: str = "") -> Iterator[Broker]:
    """Have a broker on the loopback interface, or at an address of this machine."""
    load_helics()
    process = start_process(__name__, "serve")
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps({"federates": federates, "address": address}).encode() + b"\n")
        process.stdin.flush()
        begun, words = time.monotonic(), b""
        while b"\n" not in words and time.monotonic() - begun < START:
            if select.select([process.stdout], [], [], 0.1)[0]:
                more = os.read(process.stdout.fileno(), 4096)
                if not more:
                    break
                words += more
        told: dict[str, Any] = {}
        with suppress(ValueError):
            told = json.loads(words.partition(b"\n")[0])
        if not told.get("address"):
            where = f"broker{' at ' + address if address else ''}"
            silent = f"nothing was heard of it within {START:g} s"
            why = told.get("error") or (silent if process.poll() is None else "its process ended")
            raise HostError(
                f"no HELICS broker could be begun: {why}", where, "", "another address; `ss -ltn`"
            )
        yield Broker(str(told["address"]), process)
    finally:
        end_process(process)


def serve() -> None:
    """Be the broker, until standard input ends."""
    stopping = live_while_wanted()
    task = json.loads(sys.stdin.buffer.readline() or b"{}")
    watch(stopping)
    h, error = load_helics(), "no port was free"
    for _ in range(TRIES):
        address = task.get("address") or f"tcp://127.0.0.1:{_free_port()}"
        options = f"-f {task['federates']} --local_interface={address} --timeout=600s {OPTIONS}"
        try:
            broker = h.helicsCreateBroker("zmq", "", options)
            if h.helicsBrokerIsConnected(broker):
                break
        except h.HelicsException as found:
            error = str(found)
    else:
        os.write(1, json.dumps({"error": error}).encode() + b"\n")
        os._exit(1)
    os.write(1, json.dumps({"address": address}).encode() + b"\n")
    stopping.wait()
    os._exit(0)  # whoever is still connected is told by nobody: the run is over


def _free_port() -> int:
    """Return a port from which on some are free: brokers and cores take several."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return min(port, 65000)


def is_listening(address: str) -> bool:
    """Return whether something takes connections at an address."""
    host, _, port = address.removeprefix("tcp://").rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=2.0):
            return True
    except (OSError, ValueError):
        return False
