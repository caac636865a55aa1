"""Nodes that hold their own files: the pooled optimum is reached, and no sample is handed out."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

from coordinator.datasets import Dataset
from coordinator.plan import Plan, RunSettings
from dlag_lab.folder import RunFolder
from dlag_lab.referee import optimum
from dlag_node.data import Table
from dlag_node.problems import rows_of
from dlag_node.wire.observing import Farewell
from tests.cluster.laboratory import LOOPBACK, laboratory
from tests.cluster.meshes import command, read_until

DEADLINE = 120.0  # seconds for a few processes to start and end, on a busy machine

RNG = np.random.default_rng(11)
SIZES = (40, 15, 25)
DIM = 5
# raw features of very different sizes: without scaling the problem is hopeless
X = np.array([0, 100, -3e4, 1, 5]) + RNG.normal(size=(80, DIM)) * [1e-3, 50, 1e4, 1, 9]
LABELS = np.where((X[:, 3] + X[:, 1] / 50 + RNG.normal(size=80)) > 3.0, 2.0, 1.0)
LABELS[:40] = 1.0  # node 0 has one class only
CUTS = np.cumsum(SIZES)[:-1]
SHARDS = list(zip(np.split(X, CUTS), np.split(LABELS, CUTS), strict=True))


def write_files(folder: Path) -> list[list[str]]:
    """One file a node, of three formats, and the flags that go with it."""
    (a, a_labels), (b, b_labels), (c, c_labels) = SHARDS
    lines = [
        " ".join([repr(y), *(f"{k}:{v!r}" for k, v in enumerate(x, 1))])
        for x, y in zip(a.tolist(), a_labels.tolist(), strict=True)
    ]
    (folder / "a.libsvm").write_text("\n".join(lines))
    np.savez_compressed(folder / "b.npz", X=b, ill=b_labels.astype(int))
    np.save(folder / "c.npy", c)
    np.save(folder / "labels.npy", c_labels)
    return [
        ["--data", str(folder / "a.libsvm")],
        ["--data", str(folder / "b.npz"), "--label", "ill"],
        ["--data", str(folder / "c.npy"), "--label", str(folder / "labels.npy")],
    ]


def pooled_optimum(settings: RunSettings) -> np.ndarray:
    table = Table(rows_of(X), LABELS)
    return optimum(Plan(settings, Dataset("pooled", table, LABELS)).pooled())[0]


@pytest.mark.parametrize(
    ("scale", "problem", "intercept", "method"),
    [
        ("standard", "logistic", 1.0, "tree"),
        ("minmax", "ridge", 0.0, "lazy-admm"),
    ],
)
def test_nodes_with_files_of_their_own_reach_the_pooled_optimum(
    tmp_path: Path, scale: str, problem: str, intercept: float, method: str
) -> None:
    settings = {"topology": "path:3", "problem": problem, "intercept": intercept, "scale": scale}
    flags = [f"--{name}={value}" for name, value in settings.items()]
    flags += ["--data=nodes", "--rounds=300", f"--method={method}", "--bind", LOOPBACK]
    files = write_files(tmp_path)
    with ExitStack() as stack:
        coordinator = stack.enter_context(command("dlag-coordinator", *flags))
        line = read_until(coordinator, "listening on tcp://")
        address = line.split("listening on ")[1].split()[0]
        common = ["--coordinator", address, "--out", str(tmp_path), "--scale", scale]
        nodes = [
            stack.enter_context(command("dlag-node", *common, "--id", str(i), *own))
            for i, own in enumerate(files)
        ]
        for process in (*nodes, coordinator):
            assert process.wait(DEADLINE) == 0, process.communicate()[1]
    theta_star = pooled_optimum(RunSettings(**settings))  # type: ignore[arg-type]
    for node in range(3):
        thetas = np.fromfile(tmp_path / f"node-{node:03d}.theta", "<f8")
        theta = thetas.reshape(-1, len(theta_star))[-1]
        np.testing.assert_allclose(theta, theta_star, atol=1e-8)


def test_a_mesh_that_does_not_agree_ends_and_names_the_nodes(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("age,dose,y\n1,2,0\n3,4,1\n")
    (tmp_path / "b.csv").write_text("dose,age,y\n1,2,0\n3,4,1\n")
    flags = ["--topology=path:2", "--data=nodes", "--bind", LOOPBACK]
    with command("dlag-coordinator", *flags) as coordinator, ExitStack() as stack:
        line = read_until(coordinator, "listening on tcp://")
        address = line.split("listening on ")[1].split()[0]
        nodes = []
        for i, name in enumerate("ab"):
            own = ["--data", str(tmp_path / f"{name}.csv"), "--label", "y", "--id", str(i)]
            argv = ["dlag-node", "--coordinator", address, *own]
            nodes.append(stack.enter_context(command(*argv)))
        for process in (*nodes, coordinator):
            _, text = process.communicate(timeout=DEADLINE)
            assert process.returncode == 1
            assert "the nodes do not agree on the features' names: sha256 " in text
            assert "on node 0; sha256 " in text


def test_a_node_comes_back_to_its_own_file_and_keeps_no_copy_of_it(tmp_path: Path) -> None:
    files = write_files(tmp_path)
    flags = [[*own, "--scale", "standard"] for own in files]
    asked = {"topology": "path:3", "rounds": 40, "method": "ssda"}
    with laboratory(tmp_path / "run", data="nodes", scale="standard", **asked) as lab:
        for i in range(3):
            lab.start(i, *flags[i])
        lab.run_to(5)
        lab.kill(1, 2)
        for i in (1, 2):
            place = (lab.state(i) / "place").read_bytes()
            assert SHARDS[i][0][0].tobytes() not in place
            assert str(tmp_path).encode() in place
            lab.start(i, *flags[i])
        lab.run_to(9)
        lab.kill(2)
        np.save(tmp_path / "c.npy", 2 * SHARDS[2][0])
        broken = lab.start(2, *flags[2])
        assert "c.npy has changed since the run began: sha256 " in read_until(broken, "changed")
        assert broken.wait(DEADLINE) == 1
        np.save(tmp_path / "c.npy", SHARDS[2][0])
        lab.start(2, *flags[2])
        lab.grant(40)
        lab.until(Farewell, {0, 1, 2})
        for node, process in lab.nodes.items():
            assert process.wait(DEADLINE) == 0, f"node {node}: {process.communicate()[1]}"
        folder = RunFolder(lab.folder)
        assert [len(folder.thetas(i, DIM)) for i in range(3)] == [40] * 3
