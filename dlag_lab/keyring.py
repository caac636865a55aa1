"""The keys of a local mesh: made for the run, in a folder of its own, and gone with it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from coordinator.admission import Admission
from dlag_node.trust.cli import ADMITTED, COORDINATOR, make_mesh, node_key
from dlag_node.trust.keys import KeyPair, make_pair, public_path, read_public

_LABORATORY = "laboratory.key"
_WATCHER = "watch.key"


class Keyring:
    """Key pairs for the coordinator, the laboratory and every node, as files of the run folder.

    A run that can be resumed needs them again: nodes know their neighbors by their keys.
    """

    def __init__(self, folder: Path, nodes: int) -> None:
        self._folder = folder
        make_mesh(folder, nodes)
        speakers = Speakers(Admission(folder / ADMITTED))
        self.laboratory = LaboratoryKeys(make_pair(folder / _LABORATORY), speakers)
        make_pair(folder / _WATCHER)

    @property
    def coordinator_flags(self) -> list[str]:
        """For `dlag-coordinator`."""
        key, admitted = self._folder / COORDINATOR, self._folder / ADMITTED
        return ["--key", str(key), "--admitted", str(admitted)]

    @property
    def watcher_flags(self) -> list[str]:
        """For `dlag watch`."""
        key, admitted = self._folder / _WATCHER, self._folder / ADMITTED
        return ["--key", str(key), "--admitted", str(admitted)]

    @property
    def watched_flags(self) -> list[str]:
        """For a `dlag-node` that is watched."""
        return ["--watch-key", str(public_path(self._folder / _WATCHER))]

    def node_flags(self, node: int, *, coordinator: bool) -> list[str]:
        """For `dlag-node`, which may have to call a coordinator or not."""
        flags = ["--key", str(node_key(self._folder, node))]
        flags += ["--observer-key", str(public_path(self._folder / _LABORATORY))]
        if coordinator:
            flags += ["--coordinator-key", str(public_path(self._folder / COORDINATOR))]
        return flags

    def public(self, node: int) -> bytes:
        """What a node's neighbors know it by."""
        return read_public(public_path(node_key(self._folder, node)))

    def discard(self) -> None:
        """The run is over: nobody needs the keys any more."""
        for pattern in ("*.key", "*.pub", ADMITTED):
            for path in self._folder.glob(pattern):
                path.unlink()
        self._folder.rmdir()


class Speakers:
    """Which key speaks for which node: as the list of admitted keys says, or who came first."""

    def __init__(self, admission: Admission) -> None:
        self.admits = admission.admits
        self._admission = admission
        self._key_of: dict[int, bytes] = {}
        self._node_of: dict[bytes, int] = {}

    def may(self, key: bytes | None, node: int) -> bool:
        """Whether what this key tells of that node is to be taken."""
        if key is None or not self.admits(key):
            return False
        bound = self._admission.bound_to(key)
        if bound is not None or node in self._admission.others_than(key):
            return bound == node
        if key in self._node_of or node in self._key_of:
            return self._node_of.get(key) == node
        self._node_of[key], self._key_of[node] = node, key
        return True


@dataclass(frozen=True, slots=True)
class LaboratoryKeys:
    """What a laboratory proves itself by, and whom it believes."""

    pair: KeyPair
    speakers: Speakers
