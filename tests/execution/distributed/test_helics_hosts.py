"""Hosts that are begun by hand meet at a broker; who leads collects what they have kept."""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest

import hocket as hk
from execution.distributed.test_same_bits import assert_same, sent, three_hosts, two_hosts
from hocket.engine.host_exchange import TransportError
from hocket.execution.distributed.helics_leader import _Leader
from hocket.execution.distributed.helics_transport import _split, pack_news, unpack_news

helics = pytest.importorskip("helics")


def free_address():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"tcp://127.0.0.1:{probe.getsockname()[1]}"


def begin(*words):
    return subprocess.Popen(
        [sys.executable, "-m", "hocket", *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


@pytest.mark.slow
def test_hosts_and_a_leader_meet_at_a_broker(tmp_path):
    scene = two_hosts()
    hk.write(scene, tmp_path / "scene.toml")
    address, begun = free_address(), []
    try:
        for name in ("plant", "lab"):
            words = ("host", name, tmp_path / "scene.toml", "--broker", address, "--folder", tmp_path / name)
            begun.append(begin(*words, "--patience", 40))
        done = hk.run_distributed(scene, broker=address, folder=tmp_path / "run", patience=40)
        assert [process.wait(20) for process in begun] == [0, 0]
    finally:
        for process in begun:
            process.kill()
            process.communicate()
    alone = hk.run(scene)
    assert_same(alone, done)
    assert sent(done) == sent(alone)
    for name in ("plant", "lab"):
        there = hk.open_run(tmp_path / name)
        assert_same(there, hk.open_run(tmp_path / "run" / "hosts" / name))


@pytest.mark.slow
def test_a_leader_whose_hosts_do_not_come_says_how_to_begin_them(tmp_path):
    with pytest.raises(hk.HostError, match="have come to the broker within 2 s") as caught:
        hk.run_distributed(three_hosts(), broker=free_address(), folder=tmp_path / "run", patience=2)
    assert "hocket host away FILE --broker tcp://127.0.0.1:" in str(caught.value)


@pytest.mark.slow
def test_a_host_without_a_broker_says_so_in_time(tmp_path):
    hk.write(two_hosts(), tmp_path / "scene.toml")
    words = ("host", "lab", tmp_path / "scene.toml", "--broker", free_address(), "--patience", 3)
    process = begin(*words, "--folder", tmp_path / "lab")
    told = process.communicate(timeout=60)[0].decode()
    assert process.returncode == 1
    assert "`plant` did not answer within 3 s" in told


def test_files_that_a_host_sends_stay_in_its_folder(tmp_path):
    leader = _Leader("", {"lab": tmp_path / "lab"}, {}, 1.0, None)
    leader._write("lab", "samples/000-outermost.arrow", b"ab")
    leader._write("lab", "samples/000-outermost.arrow", b"c")
    assert (tmp_path / "lab" / "samples" / "000-outermost.arrow").read_bytes() == b"abc"
    for name in ("../evil", "/etc/evil", "a/../../evil", "a/b/c", "..", "a\\b", "x" * 300):
        with pytest.raises(hk.HostError, match="has sent a file named"):
            leader._write("lab", name, b"")
    assert {each.name for each in tmp_path.iterdir()} == {"lab"}


def test_what_is_not_well_formed_is_an_error_and_not_a_crash():
    assert unpack_news(pack_news({"kind": "file"}, b"xyz")) == ({"kind": "file"}, b"xyz")
    for blob in (b"", b"12", b"\xff" * 8, pack_news({})[:-1], b"\x02" + bytes(7) + b"[]"):
        with pytest.raises(TransportError):
            unpack_news(blob)
    for blob in (b"12", b"\xff" * 8, b"\x05" + bytes(7) + b"1234"):
        with pytest.raises(TransportError):
            _split(blob)
