"""A fleet of hosts made from the kit's files: keys, settings, data and services of each.

What an operator does by docs/edge.md, sections 5 and 6: keys and settings are made by the commands,
copied to their host, and there the unit is started. A host has its own folder and address.
"""

from __future__ import annotations

import csv
import json
import os
import selectors
import shutil
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

import numpy as np

import coordinator.cli
import dlag_node.cli
from dlag_lab.mesh import name_of
from dlag_lab.network.namespaces import counters, inside
from dlag_lab.network.network import MANAGEMENT_INTERFACE, MESH_INTERFACE, Network
from dlag_node.data.model import Model, load_model_file
from dlag_node.rounds.record import Record
from tests.cluster.meshes import BIN
from tests.networks.services import Device, start

BOSS = "tcp://10.78.255.254:5555"
NODE_UNIT, BOSS_UNIT = "dlag-node", "dlag-coordinator"
STATE = "/var/lib/dlag-node"
PATIENCE = 240.0  # seconds, for two dozen processes to start, run and end on a busy machine
_COMMANDS = {BOSS_UNIT: coordinator.cli.run, NODE_UNIT: dlag_node.cli.run}


@dataclass(frozen=True, slots=True)
class Sent:
    """What one interface of a host has sent, as the kernel counted."""

    octets: int  # with Ethernet headers
    packets: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the hosts have when all services have ended, in order of id."""

    models: list[Model]
    records: list[list[Record]]
    mesh: list[Sent]
    management: list[Sent]
    logs: list[str]


class Fleet:
    """Hosts in namespaces, one for each part of the data, and one for the coordinator."""

    def __init__(self, folder: Path, network: Network, parts: Sequence[np.ndarray]) -> None:
        self._network = network
        self._parts = parts
        names = ["coordinator", *map(name_of, range(len(parts)))]
        self._devices = {name: Device(folder / name, network.netns[name]) for name in names}
        for device in self._devices.values():
            device.settings.mkdir(parents=True)
        self._keys = folder / "operator"

    @property
    def boss(self) -> Device:
        """The coordinator's host."""
        return self._devices["coordinator"]

    @property
    def hosts(self) -> list[Device]:
        """The nodes', in order of id."""
        return [self._devices[name_of(i)] for i in range(len(self._parts))]

    def provide(
        self,
        names: Sequence[str],
        boss_flags: Sequence[str],
        node_flags: Sequence[str],
        *,
        keys: bool,
    ) -> None:
        """Everything that the hosts need to have in /etc/dlag; the last column is the label."""
        boss = self.boss
        if keys:
            _ran("dlag", "keys", "mesh", self._keys, "--nodes", len(self._parts))
            for name in ("coordinator.key", "admitted"):
                shutil.copy(self._keys / name, boss.settings)
        trusted = ["--admitted", boss.settings / "admitted"] if keys else ["--insecure"]
        boss_flags = ["--bind", BOSS, *trusted, *boss_flags]
        _print_config(boss.settings / "coordinator.toml", BOSS_UNIT, boss_flags)
        for i, (host, part) in enumerate(zip(self.hosts, self._parts, strict=True)):
            if keys:
                shutil.copy(self._keys / f"{name_of(i)}.key", host.settings / "node.key")
                shutil.copy(self._keys / "coordinator.pub", host.settings)
            _write_csv(host.settings / "samples.csv", names, part)
            key = host.settings / "coordinator.pub"
            # which node it is: a key says so, and without one its operator
            trusted = ["--coordinator-key", key] if keys else ["--insecure", "--id", i]
            state = host.at(STATE)
            own = ["--bind", self._network.node(i).replace("*", "5600")]
            own += ["--data", host.settings / "samples.csv", "--label", names[-1]]
            own += ["--model", state / "model.json", "--out", state / "records"]
            flags = ["--coordinator", BOSS, *own, *trusted, *node_flags]
            _print_config(host.settings / "node.toml", NODE_UNIT, flags)

    def run(self, *, keys: bool, patience: float = PATIENCE) -> Outcome:
        """Start every unit, wait for all to end well, and gather what they left."""
        with ExitStack() as stack:
            services = {}
            for name, device in self._devices.items():
                unit = BOSS_UNIT if name == "coordinator" else NODE_UNIT
                services[name] = start(unit, device, drop_ins=keys)
                stack.callback(_end, services[name])
            self._await(services, patience)
        return self._outcome()

    def _await(self, services: dict[str, subprocess.Popen[bytes]], patience: float) -> None:
        deadline = monotonic() + patience
        with selectors.DefaultSelector() as ends, ExitStack() as stack:
            for name, service in services.items():
                descriptor = os.pidfd_open(service.pid)
                stack.callback(os.close, descriptor)
                ends.register(descriptor, selectors.EVENT_READ, name)
            while ends.get_map():
                ready = ends.select(max(0.0, deadline - monotonic()))
                assert ready, (
                    f"after {patience:g} s: {[key.data for key in ends.get_map().values()]}"
                )
                for key, _ in ready:
                    ends.unregister(key.fileobj)
                    code = services[key.data].wait()
                    assert code == 0, (
                        f"{key.data} ended with {code}: {self._log(key.data)[-2_000:]}"
                    )

    def _log(self, name: str) -> str:
        unit = BOSS_UNIT if name == "coordinator" else NODE_UNIT
        return self._devices[name].at(f"/var/log/{unit}.log").read_text(encoding="utf-8")

    def _outcome(self) -> Outcome:
        models, records, mesh, management = [], [], [], []
        for i, host in enumerate(self.hosts):
            models.append(load_model_file(host.at(STATE) / "model.json"))
            lines = (host.at(STATE) / "records" / f"{name_of(i)}.jsonl").read_text().splitlines()
            records.append([Record(**json.loads(line)) for line in lines])
            with inside(host.netns):
                mesh.append(Sent(*counters(MESH_INTERFACE)))
                management.append(Sent(*counters(MANAGEMENT_INTERFACE)))
        logs = [self._log(name_of(i)) for i in range(len(self._parts))]
        return Outcome(models, records, mesh, management, logs)


def _print_config(path: Path, unit: str, flags: Sequence[object]) -> None:
    """`COMMAND flags --print-config > FILE`, without the seconds that two dozen processes take."""
    with path.open("w", encoding="utf-8") as file, redirect_stdout(file):
        assert _COMMANDS[unit]([*map(str, flags), "--print-config"]) == 0


def _ran(command: str, *words: object) -> None:
    subprocess.run([BIN / command, *map(str, words)], check=True, capture_output=True)


def _end(service: subprocess.Popen[bytes]) -> None:
    if service.poll() is None:
        service.kill()
        service.wait()


def _write_csv(path: Path, names: Sequence[str], part: np.ndarray) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        writer.writerows(part.tolist())
