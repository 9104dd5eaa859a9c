"""A hostile FMU in a process of its own: whatever it sends, no code of its own runs in the parent."""

import os
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest

import hocket as hk
from fmus.build import build
from hocket.simulators.fmu import isolated
from hocket.simulators.fmu.probe import probe
from hocket.simulators.fmu.recipe import Fmu
from systems import ENGINES

COMMON = """
import ctypes, json, os, pickle, random, struct, sys, threading, time
class Bomb:
    def __reduce__(self):
        return exec, ("import os; open(%r, 'a').write(f'{os.getpid()} ')",)
BOMB = pickle.dumps(Bomb())
pickle.loads(BOMB)  # it works
def mapping():
    for line in open('/proc/self/maps'):
        if 'memfd:hocket' in line:
            low, high = (int(part, 16) for part in line.split()[0].split('-'))
            return low, high - low
def always(action):
    def loop():
        while True:
            action()
            time.sleep(1e-5)
    threading.Thread(target=loop, daemon=True).start()
"""
"""What attacks share: a pickle that notes which process has loaded it, and where the shared memory lies."""

ATTACKS = {
    "pickle itself": """
def dumps(value, *_, **__): return BOMB
pickle.dumps = json.dumps = dumps
json.dumps = lambda *_: type('T', (), {'encode': lambda self: BOMB})()
""",
    "a text where a number is expected": """
json.dumps = lambda *_: '"' + 'x' * 1000 + '"'
""",
    "numbers without end": """
json.dumps = lambda *_: '9' * 100_000
""",
    "deep nesting": """
json.dumps = lambda *_: '[' * 500_000
""",
    "an answer as large as the memory": """
json.dumps = lambda *_: '[' + '0,' * 30_000_000 + '0]'
""",
    "the payload": """
low, size = mapping()
place = low + size - (64 << 20)
always(lambda: ctypes.memmove(place, BOMB, len(BOMB)))
""",
    "lengths and flags": """
low, size = mapping()
always(lambda: ctypes.memmove(low + 64 * random.randrange(2, 10), os.urandom(64), 64))
""",
    "the layout": """
low, size = mapping()
always(lambda: ctypes.memset(low, 255, 64))
""",
    "the log": """
low, size = mapping()
log = low + size - (65 << 20)
def scribble():
    ctypes.memset(log, random.randrange(256), 1 << 16)
    for at in range(512, 1024, 64):
        ctypes.memmove(low + at, struct.pack('QQ', random.getrandbits(64), random.getrandbits(64)), 16)
always(scribble)
""",
    "everything": """
low, size = mapping()
head = min(size, 1 << 14)
always(lambda: ctypes.memmove(low, os.urandom(head), head))
""",
    "every file descriptor": """
def write():
    for fd in map(int, os.listdir('/proc/self/fd')):
        try: fd > 2 and os.write(fd, BOMB)
        except OSError: pass
write()
always(write)
""",
    "the size of the memory": """
folder = '/proc/self/map_files/'
for name in os.listdir(folder):
    try:
        if os.readlink(folder + name).startswith('/memfd:hocket'): os.truncate(folder + name, 0)
    except OSError: pass
""",
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("attack", ATTACKS)
def test_nothing_that_an_isolated_fmu_sends_runs_in_this_process(tmp_path, monkeypatch, attack, engine):
    marker = tmp_path / "who loaded it"
    monkeypatch.setenv("HOCKET_TEST_ATTACK", COMMON % str(marker) + ATTACKS[attack])
    model = Fmu(build("hostile", 2, folder=tmp_path), isolate=True, time_limit=5, at=9.0)
    composite = hk.Composite(hk.Scenario({"culprit": model}), step=0.01)
    threads = threading.active_count()
    with suppress(hk.SimulatorError):
        hk.run(composite, stop=1, engine=engine)
    loaded = {int(pid) for pid in marker.read_text().split()}
    assert loaded
    assert os.getpid() not in loaded
    assert threading.active_count() == threads


def test_an_answer_that_is_not_well_formed_ends_the_simulator_and_names_it(tmp_path, monkeypatch):
    attack = COMMON % str(tmp_path / "marker") + ATTACKS["pickle itself"]
    monkeypatch.setenv("HOCKET_TEST_ATTACK", attack)
    model = Fmu(build("hostile", 2, folder=tmp_path), isolate=True, at=9.0)
    with pytest.raises(hk.SimulatorError) as caught:
        hk.run(hk.Composite(hk.Scenario({"culprit": model}), step=0.1), stop=1)
    assert "culprit" in str(caught.value)
    assert "its process sent what is not well formed" in str(caught.value)


def test_the_side_that_asks_loads_no_pickle():
    for file in (isolated.__file__, sys.modules[Fmu.__module__].__file__):
        text = Path(file).read_text(encoding="utf-8")
        assert "pickle.load" not in text
        assert "multiprocessing" not in text


@pytest.mark.parametrize(
    "attack",
    [
        "open(found, 'w').write('[' * 100_000)",
        "open(found, 'w').write('null')",
        "open(found, 'w').write(json.dumps({'name': 'steps', 'verdict': [], 'what': {}}))",
        "open(found, 'wb').write(BOMB)",
        "os.remove(found); os.mkfifo(found)",
        "os.remove(found); os.symlink('/etc/passwd', found)",
    ],
)
def test_what_a_probe_is_told_is_plain_data(tmp_path, monkeypatch, attack):
    marker = tmp_path / "marker"
    find = """
for name in os.listdir('/proc/self/fd'):
    found = os.path.realpath('/proc/self/fd/' + name)
    if found.endswith('/found'): break
"""
    monkeypatch.setenv("HOCKET_TEST_ATTACK", COMMON % str(marker) + find + attack + "\nos._exit(0)")
    path = build("hostile", 2, folder=tmp_path)
    with pytest.raises(hk.HocketError, match=r"not well formed|did not come up"):
        probe(Fmu(path, time_limit=5))
    assert str(os.getpid()) not in marker.read_text().split()


@pytest.mark.parametrize(
    "answer", ["BOMB", "b'[' * 100_000", "b'null'", 'b\'{"kind": "share"}\'', "b'x' * (40 << 20)"]
)
def test_what_a_sweep_is_told_is_plain_data(tmp_path, monkeypatch, answer):
    marker = tmp_path / "marker"
    attack = f"""
for fd in map(int, os.listdir('/proc/self/fd')):
    try: fd > 2 and os.write(fd, {answer} + b'\\n')
    except OSError: pass
time.sleep(1)
"""
    monkeypatch.setenv("HOCKET_TEST_ATTACK", COMMON % str(marker) + attack)
    model = Fmu(build("hostile", 2, folder=tmp_path), isolate=False, time_limit=5, at=9.0)
    composite = hk.Composite(hk.Scenario({"culprit": model}), step=0.1)
    with suppress(hk.HocketError):
        hk.sweep(composite, [{"culprit.at": 8.0}, {"culprit.at": 9.0}], stop=1, workers=2)
    assert str(os.getpid()) not in marker.read_text().split()
