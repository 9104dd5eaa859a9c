"""The process of an isolated FMU: run as a script by `isolated.py`, once per FMU.

In:  shared memory with the facts of the FMU, and then with questions
Out: answers, until it is closed or its parent ends

Questions are pickled: this process trusts its parent. Answers are plain data: the parent does not trust it.
"""

import gc
import json
import os
import pickle
import signal
import struct
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import module_from_spec
from typing import Any


def main(fd: int, parent: int, at: int, length: int) -> None:
    """Open the FMU that is told of in the memory, and serve it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    boot = pickle.loads(os.pread(fd, length, at))
    sys.path[:] = boot["path"]
    sys.meta_path.insert(0, SameFiles)
    for name, path in boot["packages"].items():
        _stand_in(name, path)
    import hocket._native as _native

    server = _native.Server(fd, parent)
    os.close(fd)
    try:
        live = _open_live(pickle.loads(boot["model"]))
    except Exception as error:
        server.refuse(_encode_error(error))
        return
    server.answer(json.dumps(live.native is not None).encode())
    service = Service(server, live)
    del live  # it is the service's alone
    service.run()


class SameFiles(PathFinder):
    """Finds hocket where the parent found it, whatever is installed."""

    @classmethod
    def find_spec(cls, name: str, path: Sequence[str] | None = None, target: Any = None) -> ModuleSpec | None:
        return super().find_spec(name, path, target) if name.startswith("hocket.") else None


def _stand_in(name: str, path: list[str]) -> None:
    """Make a package empty: what it imports for its users takes longer than all the rest here."""
    spec = ModuleSpec(name, None, is_package=True)
    spec.submodule_search_locations = path
    sys.modules[name] = module_from_spec(spec)


def _open_live(model: Any) -> Any:
    from hocket.simulators.fmu import live

    if not model.exchange:
        return live.open_simulator(model)
    from hocket.simulators.fmu import exchange

    return exchange.open_simulator(model)


class Service:
    """Answers what compiled code cannot; what has no method here is asked of the live FMU."""

    def __init__(self, server: Any, live: Any):
        self.server = server
        self.live = live
        self.states: dict[int, Any] = {}
        self.count = 0
        self.closed = False

    def run(self) -> None:
        while not self.closed:
            try:
                question = self.server.serve(self.live.native)
            except Exception as error:
                self.server.refuse(_encode_error(error, "its code threw an exception: "))
                continue
            try:
                self._answer(question)
            except Exception as error:
                self.server.refuse(_encode_error(error))

    def _answer(self, question: str) -> None:
        server, live = self.server, self.live
        if question == "step":
            server.answer_number(live.step(server.t, server.h, server.u))
        elif question == "output":
            server.answer_numbers(live.output(server.t, server.u))
        elif question == "slope":
            server.answer_numbers(live.slope(server.t, server.u))
        else:
            name, arguments = pickle.loads(server.question)
            asked = self if hasattr(self, name) else live
            del live  # so that `close` can let go of it
            value = getattr(asked, name)(*arguments)
            server.answer(value if isinstance(value, bytes) else json.dumps(value).encode())

    def start(self, t: float, stop: float | None, early: bool, name: str) -> None:
        self.live.early, self.live.stop_time, self.live.instance_name = early, stop, name
        self.states.clear()
        self.live.start(t)

    def save(self, forgotten: list[int]) -> int:
        """Keep the state; return its number."""
        for number in forgotten:
            self.states.pop(number, None)
        self.count += 1
        self.states[self.count] = self.live.save()
        return self.count

    def restore(self, number: int | None) -> None:
        if number not in self.states:
            from hocket.errors import SimulatorError

            raise SimulatorError("the state was saved before the last start")
        self.live.restore(self.states[number])

    def dump(self, number: int) -> bytes:
        """Return a state for another process, as plain data."""
        from hocket.model.plain_state import encode

        return encode(self.states[number])

    def load(self, state: bytes) -> None:
        """Go on from a state that another process has dumped."""
        from hocket.model.plain_state import decode

        self.live.restore(decode(state))

    def jacobian(self, t: float, u: Any) -> bytes:
        """Return the number of states and, row by row, the matrix [A B; C D]."""
        import numpy as np

        a, b, c, d = self.live.jacobian(t, u)
        return struct.pack("=Q", len(a)) + np.block([[a, b], [c, d]]).astype(float).tobytes()

    def run_beside(self, t: float, h: float, steps: int, inputs: list[list[float]]) -> Any:
        """Return rows of another instance alone, and of one that takes turns with a third.

        None if nothing moves; the words of an error, if one fails. The third is a step ahead, under other
        inputs, or the same where it fails under those.
        """
        import numpy as np

        from hocket.errors import HocketError

        for each, other in zip(inputs, reversed(inputs), strict=True):
            try:
                alone = self._take_turns(t, h, steps, [each])
            except HocketError as error:
                return error.faults[0].what[:_LONGEST] if each is inputs[0] else None
            if np.array_equal(alone[1:], alone[:-1], equal_nan=True):
                continue
            words = ""
            for beside in (other, each):
                try:
                    return alone, self._take_turns(t, h, steps, [each, beside])
                except HocketError as error:
                    words = error.faults[0].what[:_LONGEST]
            return words
        return None

    def changes_arithmetic(self) -> bool:
        """Return whether the FMU has changed how its process computes with floating-point numbers."""
        from hocket import _native

        return _native.changes_arithmetic()

    def _take_turns(self, t: float, h: float, steps: int, inputs: list[list[float]]) -> list[list[float]]:
        """Return the outputs of the first of so many new instances, before and after its steps."""
        import numpy as np

        us = [np.array([each], dtype=float) for each in inputs]
        lives: list[Any] = []
        try:
            for u in us:
                lives.append(_open_live(self.live.model))
                lives[-1].start(t)
                lives[-1].output(t, u)
                lives[-1].ready()
            rows = [list(map(float, lives[0].output(t, us[0])))]
            for n in range(steps):
                for live, u in reversed(list(zip(lives, us, strict=True))):  # the first is the last
                    live.step(t + n * h, h, u)
                    y = live.output(t + (n + 1) * h, u)
                rows.append(list(map(float, y)))
            return rows
        finally:
            for live in lives:
                live.close()

    def fault(self) -> None:
        raise self.live.fault()

    def close(self, unload: bool) -> None:
        """Let go of everything; the process ends. In a trial the binary is unloaded first: that can crash."""
        self.closed = True
        self.states.clear()
        self.live.close()
        if unload:
            del self.live
            gc.collect()


_LONGEST = 50_000
"""Characters of a text of an error."""


def _encode_error(error: Exception, before: str = "") -> bytes:
    """Return what, where, expected and hint of an error."""
    from hocket.errors import HocketError

    if isinstance(error, HocketError):
        fault = error.faults[0]
        words = [before + fault.what, fault.where, fault.expected, fault.hint]
    else:
        words = [(before or f"{type(error).__name__}: ") + str(error), "", "", ""]
    return json.dumps([word[:_LONGEST] for word in words]).encode()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
