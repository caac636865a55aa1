"""The samples of a run that hands them out: the bundled heart set, or any file that we read."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from dlag_node.data import Table, read_table
from dlag_node.errors import ConfigError
from dlag_node.problems import Array, Rows

LIBSVM_SETS = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/"
_HEART = Path(__file__).with_name("bundled") / "heart_scale"


@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """n0 samples with their labels, as the file has them, under a name."""

    name: str
    table: Table
    labels: Array

    @property
    def rows(self) -> Rows:
        """The samples."""
        return self.table.rows

    @property
    def sha256(self) -> str:
        """Of the file as it is stored."""
        return self.table.sha256


def load_dataset(
    source: str,
    *,
    data_dir: Path | None = None,
    label: str | None = None,
    dim: int | None = None,
) -> Dataset:
    """The dataset `heart`, or that of a file: a path, or a bare name to be found in `data_dir`.

    `label` and `dim` are as `read_table` takes them. (A file called `heart` is reached as
    `./heart`.)
    """
    path = _HEART if source == "heart" else _find(source, data_dir)
    table = read_table(path, label=label, dim=dim)
    name = source if source == "heart" else path.name
    return Dataset(name, table, table.known_labels(str(path)))


def _find(source: str, data_dir: Path | None) -> Path:
    places = [Path(source)]
    if data_dir is not None and places[0].name == source:
        places.append(data_dir / source)
    for place in places:
        with suppress(OSError):  # a folder we may not enter: say below that we looked there
            if place.is_file():
                return place
    looked = " and ".join(str(place.absolute()) for place in places)
    raise ConfigError(
        f"no dataset {source!r}: expected heart (bundled), a file (LIBSVM text, .csv, .npz, .npy, "
        f".parquet), or nodes, which hold their own; looked for {looked}. "
        f"LIBSVM's own sets are at {LIBSVM_SETS}; name their folder by --data-dir or DLAG_DATA_DIR"
    )
