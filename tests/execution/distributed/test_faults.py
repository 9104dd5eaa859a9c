"""A host that is lost, hangs, or is not the same: a named error in time, rows kept, no process left."""

from __future__ import annotations

import os
import signal
import threading
import time
from dataclasses import replace

import numpy as np
import pytest

import hocket as hk
from execution.distributed.test_same_bits import two_hosts
from hocket.errors import HostError
from hocket.execution.distributed import helics_broker, lead, one_host
from hocket.execution.distributed.in_process import Exchanges
from hocket.execution.distributed.one_host import run_host, whole_job
from hocket.files.experiments import vary_experiment
from systems import lag, slow_after

LONG = replace(two_hosts(), stop=two_hosts().stop * 1000)


@pytest.fixture
def begun(monkeypatch):
    """The processes that a run begins, by the names of hosts; `broker` is one of them."""
    found = {}
    as_it_was, start = lead.HostProcess.__init__, helics_broker.start_process

    def begin(self, host, task, folder):
        as_it_was(self, host, task, folder)
        found[host] = self.process

    def begin_broker(*arguments):
        found["broker"] = start(*arguments)
        return found["broker"]

    monkeypatch.setattr(lead.HostProcess, "__init__", begin)
    monkeypatch.setattr(helics_broker, "start_process", begin_broker)
    return found


def lose(begun, who, number, when=1, after=0.0):
    """Send a signal to a process once all hosts have exchanged something; return how the run ended."""
    at = []

    def progress(t, _stop):
        if t > when * 0.2 and not at:
            at.append(time.monotonic() + after)
        if at and time.monotonic() > at[0]:
            at[0] = float("inf")
            at.append(time.monotonic())
            os.kill(begun[who].pid, number)

    return progress, at


def assert_no_process_is_left(begun):
    assert [name for name, process in begun.items() if process.poll() is None] == []


@pytest.mark.parametrize("who", slow_after(1, ["plant", "lab"]))
@pytest.mark.parametrize("after", slow_after(1, np.linspace(0, 1.5, 10)))
def test_a_host_that_is_killed_is_named_and_rows_are_kept(begun, tmp_path, who, after):
    progress, at = lose(begun, who, signal.SIGKILL, after=float(after))
    with pytest.raises(HostError, match=f"`{who}` is gone") as caught:
        hk.run_distributed(LONG, folder=tmp_path / "run", progress=progress)
    assert time.monotonic() - at[1] < 15
    assert "SIGKILL" in str(caught.value)
    assert f"host `{who}`, exchange" in str(caught.value)
    assert_no_process_is_left(begun)
    kept = hk.open_run(tmp_path / "run")
    assert kept.status == "failed"
    assert len(kept["plant.left.x"]) > 1
    for host in ("plant", "lab"):
        assert hk.open_run(tmp_path / "run" / "hosts" / host).ports
    other = {"plant": "lab", "lab": "plant"}[who]
    assert kept.info["hosts"][other]["status"] == "failed"
    assert kept.info["hosts"][who]["status"] == "killed"


def test_a_host_that_hangs_is_named_within_the_time_that_was_said(begun, tmp_path):
    progress, at = lose(begun, "lab", signal.SIGSTOP)
    with pytest.raises(HostError, match="`lab` did not answer within 3 s"):
        hk.run_distributed(LONG, folder=tmp_path / "run", progress=progress, patience=3)
    assert time.monotonic() - at[1] < 25
    assert_no_process_is_left(begun)


@pytest.mark.parametrize("who", slow_after(1, ["broker", "lab"]))
def test_helics_hosts_and_brokers_that_are_killed_are_named(begun, tmp_path, who):
    pytest.importorskip("helics")
    progress, at = lose(begun, who, signal.SIGKILL)
    with pytest.raises(HostError, match=rf"{who}.? is gone"):
        hk.run_distributed(LONG, means="helics", folder=tmp_path / "run", progress=progress, patience=20)
    assert time.monotonic() - at[1] < 25
    assert_no_process_is_left(begun)
    assert len(hk.open_run(tmp_path / "run")["plant.left.x"]) > 1


def meet(tmp_path, **jobs):
    """Run a job on each host, as threads; return what each of them raised."""
    exchanges, raised = Exchanges(list(jobs)), {}

    def serve(host, job):
        try:
            run_host(job, host, exchanges.transport(host), tmp_path / host, patience=10)
        except Exception as error:
            raised[host] = error

    threads = [threading.Thread(target=serve, args=each) for each in jobs.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    return raised


def test_another_scenario_is_refused_before_it_begins(tmp_path):
    scene = two_hosts()
    other = vary_experiment(scene, {"plant.left.A[2,1]": -1.5})
    raised = meet(tmp_path, plant=whole_job(scene, None, False), lab=whole_job(other, None, False))
    assert "`lab` has other values" in str(raised["plant"])
    assert "`plant` has other values" in str(raised["lab"])
    assert raised["plant"].host == "lab"


def test_another_version_is_refused_before_it_begins(tmp_path, monkeypatch):
    made = one_host.identity_card

    def card(job, host):
        return made(job, host) | ({"hocket": "0.0.1"} if host == "lab" else {})

    monkeypatch.setattr(one_host, "identity_card", card)
    job = whole_job(two_hosts(), None, False)
    raised = meet(tmp_path, plant=job, lab=job)
    assert "`lab` has another version of hocket" in str(raised["plant"])


def test_a_host_that_never_comes_is_named(tmp_path):
    exchanges = Exchanges(["plant", "lab"])
    job = whole_job(two_hosts(), None, False)
    begun = time.monotonic()
    with pytest.raises(HostError, match="`lab` did not answer within 1 s"):
        run_host(job, "plant", exchanges.transport("plant"), tmp_path, patience=1)
    assert time.monotonic() - begun < 5


class Breaks:
    """Fails at half a second."""

    inputs, outputs = ("u",), ("y",)

    def start(self, t):
        pass

    def step(self, t, h, u):
        if t > 0.45:
            raise ValueError("it broke")

    def output(self, t):
        return [t]


def test_the_error_of_a_simulator_is_that_of_the_run_and_the_others_are_told(tmp_path):
    models = {"good": lag(), "bad": hk.Python(Breaks)}
    hosts = {"here": ["good"], "there": ["bad"]}
    scenario = hk.Scenario(models, {"good.u": "bad.y", "bad.u": "good.y"}, hosts=hosts)
    with pytest.raises(hk.SimulatorError, match="it broke"):
        hk.run_distributed(hk.Composite(scenario, "0.1 s"), 2, means="threads", folder=tmp_path / "run")
    told = hk.open_run(tmp_path / "run").info["hosts"]
    assert told["there"]["status"] == told["here"]["status"] == "failed"
    assert "`there` has left: its run has failed" in told["here"]["error"]
