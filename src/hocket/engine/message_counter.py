"""What passes from host to host, counted where it happens: whenever something is stepped, read or fed.

In:  the steps, readings and feedings of a run, one after the other
Out: messages and bytes per pair of hosts; nothing is taken back when simulators roll back
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import hocket._native as _native
from hocket.engine.protocol import LiveLevel
from hocket.plan.messages import Load, Post
from hocket.planning.cost import hosts_of, step_post


def level_post(level: LiveLevel, start: Post) -> Post:
    """Return what passes in the steps of a started level; what was sent at its start is kept with it."""
    level.sent_at_start = start.loads()
    return step_post(level.tree)


def hand_over(post: Post, to: _native.Level) -> None:
    """Tell a native level of its links, and of each child which inputs and outputs they are about."""
    models, drives = post.wiring.models, post.wiring.drives
    first = post.wiring.first_outputs
    number = {pair: index for index, pair in enumerate(post.used)}
    links = [[first[child] + port for child, port in nodes] for nodes in post.used.values()]
    members: list[_native.Member] = []
    for child, model in enumerate(models):
        places: dict[str, int] = {}
        inputs: list[_native.LinkedInput] = []
        for index, (port, drive) in enumerate(zip(model.inputs, drives[child], strict=True)):
            if drive is None or drive.child < 0:
                continue
            places[port.name] = len(inputs)
            pair, node = (post.homes[drive.child], post.homes[child]), (drive.child, drive.port)
            signal = first[drive.child] + drive.port
            if pair in post.used and node in post.used[pair]:
                place = post.used[pair].index(node)
                made = _native.LinkedInput(signal=signal, port=index, link=number[pair], place=place)
            else:
                made = _native.LinkedInput(signal=signal, port=index)
            inputs.append(made)
        known = places if model.capabilities.reevaluates else {}
        outputs = [
            _native.LinkedOutput(
                signal=first[child] + index,
                reacts=[known[name] for name in port.feedthrough if name in known],
            )
            for index, port in enumerate(model.outputs)
        ]
        members.append(_native.Member(inputs=inputs, outputs=outputs))
    depths = [
        post.depths.get((child, port), 1)
        for child, model in enumerate(models)
        for port in range(len(model.outputs))
    ]
    to.set_messages(signals=first[-1], links=links, members=members, depths=depths)


def message_counts(levels: Iterable[LiveLevel]) -> dict[str, Any]:
    """Return messages and bytes per pair of hosts: of the start, and of all."""
    for level in levels:
        if level.traffic is None:
            continue
        hosts = hosts_of(level.tree)
        found = {}
        for pair, run in level.traffic.loads().items():
            begun = level.sent_at_start.get(pair, Load())
            whole = begun + run
            found[" to ".join(pair)] = {
                "start": begun.messages,
                "messages": whole.messages,
                "bytes": hosts.between(*pair).header * whole.messages + 8 * whole.values,
            }
        return found
    return {}
