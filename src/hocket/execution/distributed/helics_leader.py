"""Hosts on other machines: who leads waits for them at a broker, and collects what they have kept.

In:  the address of a broker; hosts that were begun with `hocket host`
Out: the folder of each host, as it was there; how each ended
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from hocket.engine.host_exchange import TransportError
from hocket.errors import HostError, list_names
from hocket.execution.distributed.helics_broker import is_listening, local_broker
from hocket.execution.distributed.helics_transport import FEDERATION, unpack_news
from hocket.execution.distributed.one_host import compare_cards
from hocket.simulators.helics_library import OPTIONS, PatientCaller, load_helics

_LARGEST_NAME = 200


@contextmanager
def broker_at(address: str, hosts: int) -> Iterator[None]:
    """Use the broker at an address, or begin one there: for the hosts, and for who leads."""
    if is_listening(address):
        yield
        return
    with local_broker(hosts + 1, address):
        yield


def collect(
    address: str,
    folders: Mapping[str, Path],
    card: Mapping[str, Any],
    patience: float,
    stopping: threading.Event,
    update: Callable[[int], object],
) -> dict[str, Exception | str | None]:
    """Wait for all hosts, and write what they have kept into folders; return how each ended."""
    leader = _Leader(address, folders, card, patience, stopping)
    try:
        leader.join()
        while leader.missing:
            leader.listen()
            update(min(leader.exchanges.values()))
    except HostError as error:
        for host in leader.missing:
            leader.outcomes[host] = error
    finally:
        leader.leave()
    return dict(leader.outcomes)


class _Leader:
    def __init__(
        self,
        address: str,
        folders: Mapping[str, Path],
        card: Mapping[str, Any],
        patience: float,
        stopping: threading.Event,
    ):
        self.address, self.folders, self.card, self.patience = address, folders, card, patience
        self.stopping = stopping
        self.caller = PatientCaller()
        self.federate: Any = None
        self.inputs: dict[str, Any] = {}
        self.outcomes = dict[str, Exception | str | None].fromkeys(folders)
        self.exchanges = dict.fromkeys(folders, 0)
        self.heard = dict.fromkeys(folders, time.monotonic())

    @property
    def missing(self) -> list[str]:
        """The hosts that have not ended yet."""
        return [host for host, outcome in self.outcomes.items() if outcome is None]

    def join(self) -> None:
        """Come to the broker, and wait for all hosts there."""
        commands = "; ".join(f"hocket host {host} FILE --broker {self.address}" for host in self.folders)
        what = f"not all of {list_names(self.folders, 8)} have come to the broker within {self.patience:g} s"
        self._call(self._join, HostError(what, f"broker at {self.address}", "", f"begin them: {commands}"))
        self.heard = dict.fromkeys(self.folders, time.monotonic())

    def _join(self) -> None:
        h = load_helics()
        info = h.helicsCreateFederateInfo()
        h.helicsFederateInfoSetCoreTypeFromString(info, "zmq")
        options = f"--federates=1 --broker={self.address} --timeout=600s {OPTIONS}"
        h.helicsFederateInfoSetCoreInitString(info, options)
        self.federate = h.helicsCreateValueFederate(f"{FEDERATION}/(leader)", info)
        for host in self.folders:
            name = f"{FEDERATION}/{host}/rows"
            self.inputs[host] = h.helicsFederateRegisterSubscription(self.federate, name, "")
        h.helicsFederateEnterExecutingMode(self.federate)

    def listen(self) -> None:
        """Wait for the next news of any host, and take them in."""
        for host, (facts, content) in self._call(self._next, None).items():
            self.heard[host] = time.monotonic()
            self._take(host, facts, content)

    def _next(self) -> dict[str, tuple[dict[str, Any], bytes]]:
        h = load_helics()
        reached = h.helicsFederateRequestTime(self.federate, h.HELICS_TIME_MAXTIME)
        found = {
            host: unpack_news(h.helicsInputGetBytes(source))
            for host, source in self.inputs.items()
            if h.helicsInputIsUpdated(source)
        }
        if not found and reached >= h.HELICS_TIME_MAXTIME:
            raise TransportError("all hosts have left")
        return found

    def _take(self, host: str, facts: Mapping[str, Any], content: bytes) -> None:
        match facts.get("kind"):
            case "card":
                compare_cards(self.card, {host: facts["card"]})
            case "progress":
                self.exchanges[host] = int(facts["exchange"])
            case "file":
                self._write(host, str(facts["name"]), content)
            case "end":
                from hocket.files.run_facts import read_facts

                told = read_facts(self.folders[host]) or {}
                status = str(told.get("status", "failed"))
                error = HostError(f"`{host}`: {told.get('error', '')}", f"host `{host}`")
                error.host = host
                self.outcomes[host] = error if status == "failed" else status

    def _write(self, host: str, name: str, content: bytes) -> None:
        """Add to a file of the folder of a host; names that lead elsewhere are refused."""
        parts = Path(name).parts
        plain = all(part.strip(".") and "\\" not in part for part in parts) and not Path(name).is_absolute()
        if not plain or len(parts) > 2 or len(name) > _LARGEST_NAME:
            raise HostError(
                f"`{host}` has sent a file named {name!r:.60}", f"host `{host}`", "a file of a run"
            )
        path = self.folders[host] / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            file.write(content)

    def _call(self, function: Callable[[], Any], late: HostError | None) -> Any:
        begun = time.monotonic()

        def look() -> None:
            now = time.monotonic()
            if self.stopping.is_set():
                error = HostError("stopped while hosts were waited for; they go on, or stop by themselves")
                error.status = "stopped"
                raise error
            if late is not None and now - begun > self.patience:
                raise late
            silent = [host for host in self.missing if now - self.heard[host] > self.patience]
            if late is None and silent:
                what = f"nothing was heard of `{silent[0]}` for {self.patience:g} s"
                exchange = f"host `{silent[0]}`, exchange {self.exchanges[silent[0]]}"
                error = HostError(what, exchange, "", "look there: its rows so far are kept there")
                error.host = silent[0]
                raise error

        try:
            return self.caller.call(function, look)
        except (load_helics().HelicsException, TransportError) as error:
            raise HostError(f"HELICS says: {str(error).strip()}", f"broker at {self.address}") from None

    def leave(self) -> None:
        """Leave the broker, in a moment."""
        if self.federate is None or self.caller.is_stuck:
            return
        begun = time.monotonic()

        def look() -> None:
            if time.monotonic() - begun > 2.0:
                raise TransportError("HELICS does not let it go")

        h = load_helics()
        with suppress(TransportError, h.HelicsException):
            self.caller.call(lambda: h.helicsFederateDisconnect(self.federate), look)
