"""A folder with the graphs of finished resamples: a run that was killed goes on, and others may add to it.

FOLDER/stability.json             what the fits are of: a fingerprint of rows and estimator, names, places
       half-0-3-1.safetensors     the graphs of one fit, named after its rows (see ``Resample``)
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save

from graphfield.data.saved_arrays import open_arrays
from graphfield.data.saved_files import json_bytes, read_json
from graphfield.data.saved_values import Saved
from graphfield.exceptions import ModelFileError, OutputError
from graphfield.folders import clear_leftovers, holds_others, make_folder, write_file
from graphfield.inference.resamples import Resample

FORMAT, FORMAT_VERSION = "graphfield-stability", 1
HEADER, _ENDING = "stability.json", ".safetensors"


@dataclass(frozen=True)
class About:
    """What the graphs of a folder, or of a result, are about.

    Attributes
    ----------
    fingerprint : str
        Of the rows, the estimator and what is asked of it; results with the same one can be merged.
    estimator : str
        Name of its class.
    node_names : tuple of str
    places : tuple of dict
        Values of the covariates at which graphs were asked for, after the average graph.
    n_rows, n_units : int
        Rows, and rows or groups that were dropped and drawn together.
    """

    fingerprint: str
    estimator: str
    node_names: tuple[str, ...]
    places: tuple[dict[str, Any], ...]
    n_rows: int
    n_units: int

    @property
    def shape(self) -> tuple[int, int]:
        """Of the graphs of one fit: places, pairs."""
        p = len(self.node_names)
        return 1 + len(self.places), p * (p - 1) // 2


class StabilityFolder:
    """Opened for one question; what it already holds must be about the same."""

    def __init__(self, path: str | Path, about: About) -> None:
        self.path, self.about = Path(path), about
        header = self.path / HEADER
        clear_leftovers(header)
        if self.path.exists() and not self.path.is_dir():
            raise OutputError(f"{self.path} is a file. Name a folder.")
        if header.is_file():
            if read_about(self.path).fingerprint != about.fingerprint:
                raise OutputError(
                    f"{self.path} holds resamples of other rows, or of another estimator. Go on with exactly "
                    "what they were begun with, or name another folder."
                )
            return
        if self.path.is_dir() and holds_others(self.path):
            raise OutputError(f"{self.path} holds other files and no resamples. Name another folder.")
        make_folder(self.path)
        values = {"format": FORMAT, "format_version": FORMAT_VERSION, **asdict(about)}
        write_file(header, json_bytes(values), overwrite=True)

    def write(self, resample: Resample, graphs: NDArray[np.float32]) -> None:
        write_file(self.path / (resample.name + _ENDING), save({"graphs": graphs}), overwrite=True)

    def read(self) -> dict[Resample, NDArray[np.float32]]:
        return read_resamples(self.path, self.about)


def read_about(folder: Path) -> About:
    """What the resamples of a folder are about."""
    path = folder / HEADER
    if not path.is_file():
        raise ModelFileError(f"{folder} holds no resamples of 'stability': there is no {HEADER} in it.")
    values = Saved(read_json(path), str(path))
    values["format"].choice((FORMAT,))
    if values["format_version"].whole() != FORMAT_VERSION:
        values["format_version"].refuse(str(FORMAT_VERSION), "another; a newer graphfield may read it")
    places = tuple(
        {name: _plain(value) for name, value in place.items().items()} for place in values["places"].listed()
    )
    return About(
        values["fingerprint"].text(),
        values["estimator"].text(),
        tuple(values["node_names"].names(least=2)),
        places,
        values["n_rows"].whole(1),
        values["n_units"].whole(1),
    )


def _plain(value: Saved) -> Any:
    return value.value if isinstance(value.value, (bool, int, float)) else value.text()


def read_resamples(folder: Path, about: About) -> dict[Resample, NDArray[np.float32]]:
    """The graphs of all finished fits of a folder."""
    found = {}
    for path in sorted(folder.glob("*" + _ENDING)):
        resample = Resample.named(path.name.removesuffix(_ENDING))
        if resample is not None:
            with open_arrays(path) as arrays:
                found[resample] = arrays.read("graphs", about.shape, np.float32, low=-1, high=1)
    return found
