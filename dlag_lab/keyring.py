"""The keys of a local mesh: made for the run, in a folder of its own, and gone with it."""

from __future__ import annotations

from pathlib import Path

from dlag_node.trust.cli import ADMITTED, COORDINATOR, make_mesh, node_key
from dlag_node.trust.keys import make_pair, public_path, read_admitted

_LABORATORY = "laboratory.key"


class Keyring:
    """Key pairs for the coordinator, the laboratory and every node, as files of the run folder.

    A run that can be resumed needs them again: nodes know their neighbors by their keys.
    """

    def __init__(self, folder: Path, nodes: int) -> None:
        self._folder = folder
        make_mesh(folder, nodes)
        self.laboratory = make_pair(folder / _LABORATORY)
        self.nodes = read_admitted(folder / ADMITTED)

    @property
    def coordinator_flags(self) -> list[str]:
        """For `dlag-coordinator`."""
        key, admitted = self._folder / COORDINATOR, self._folder / ADMITTED
        return ["--key", str(key), "--admitted", str(admitted)]

    def node_flags(self, node: int, *, coordinator: bool) -> list[str]:
        """For `dlag-node`, which may have to call a coordinator or not."""
        flags = ["--key", str(node_key(self._folder, node))]
        flags += ["--observer-key", str(public_path(self._folder / _LABORATORY))]
        if coordinator:
            flags += ["--coordinator-key", str(public_path(self._folder / COORDINATOR))]
        return flags

    def discard(self) -> None:
        """The run is over: nobody needs the keys any more."""
        for pattern in ("*.key", "*.pub", ADMITTED):
            for path in self._folder.glob(pattern):
                path.unlink()
        self._folder.rmdir()
