"""A folder with the methods of a comparison that are done, so that one that was killed goes on.

FOLDER/NAME/method.json        a fingerprint of rows and parameters, gains, seconds
            rows.safetensors   what it leaves of held-out rows, and its graphs
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save

from graphfield.data.fingerprints import fingerprint
from graphfield.data.saved_arrays import AtMost, open_arrays
from graphfield.data.saved_files import check_seal, json_bytes, read_json, sealed
from graphfield.data.saved_values import Saved
from graphfield.exceptions import OutputError
from graphfield.folders import clear_leftovers, make_folder, write_folder
from graphfield.folders.leftovers import is_leftover
from graphfield.inference.method_fits import MethodFit, MethodTask
from graphfield.inference.model_gain import ModelGain
from graphfield.inference.resample_fits import fitted_parameters
from graphfield.inference.verdict_facts import Fitted

HEADER, ARRAYS = "method.json", "rows.safetensors"
_MOST_ROWS = 2**31
_FORMAT = 2  # methods in files of another one are fitted again


class MethodFolder:
    """Opened for one comparison; methods of other rows or parameters in it are fitted again."""

    def __init__(self, path: str | Path, task: MethodTask) -> None:
        self.path, self._task = Path(path), task
        there = [one for one in self.path.glob("*") if not is_leftover(one.name)]
        others = [one.name for one in there if not (one / HEADER).is_file()]
        if others:
            raise OutputError(
                f"{self.path} holds other files, such as {others[0]!r}. Name another folder."
            ).about(file=self.path)
        make_folder(self.path)
        inputs, units = task.inputs, task.units
        tables: list[Any] = [inputs.X, inputs.Z.values, units.labels, units.blocks]
        facts = {"nodes": inputs.node_names, "folds": task.n_folds, "unit": units.unit, "format": _FORMAT}
        self._rows = fingerprint(facts, tables)

    def _fingerprint(self, name: str) -> str:
        model = self._task.models[name]
        seed = repr(model.get_params().get("random_state"))
        return fingerprint({**fitted_parameters(model), "seed": seed, "rows": self._rows}, [])

    def write(self, fit: MethodFit) -> None:
        values = {
            "fingerprint": self._fingerprint(fit.name),
            "estimator": fit.estimator,
            "seconds": fit.seconds,
            "memory": fit.memory,
            "fitted": asdict(fit.fitted),
            "gain": fit.gain.to_json(),
        }
        arrays = {
            "values": fit.values,
            "left": fit.left,
            "single": fit.left_by_one_graph,
            "units": fit.units.astype(np.int64),
            "fold": fit.fold.astype(np.int64),
            "partial": fit.partial,
            "graph": fit.graph.astype(np.int32),
        }
        contiguous = {name: np.ascontiguousarray(own) for name, own in arrays.items()}
        files = {HEADER: json_bytes(sealed(values)), ARRAYS: save(contiguous)}
        write_folder(self.path / fit.name, files, overwrite=True)

    def read(self) -> dict[str, Any]:
        """What is done already of what is asked."""
        found = {name: self._read(name) for name in self._task.models}
        return {name: fit for name, fit in found.items() if fit is not None}

    def _read(self, name: str) -> MethodFit | None:
        path = self.path / name / HEADER
        clear_leftovers(path.parent)
        if not path.is_file():
            return None
        plain = read_json(path)
        values = Saved(plain, str(path))
        if values["fingerprint"].text() != self._fingerprint(name):
            return None
        check_seal(plain, path)
        p, over = self._task.inputs.X.shape[1], len(self._task.over)
        with open_arrays(self.path / name / ARRAYS) as arrays:
            left = arrays.read("left", (AtMost(_MOST_ROWS), p))
            shape, pairs = (len(left),), (over, p * (p - 1) // 2)
            return MethodFit(
                name,
                values["estimator"].text(),
                float(values["seconds"].number(0)),
                values["memory"].number_or_nan(),
                _fitted(values["fitted"]),
                ModelGain.from_json(plain["gain"]),
                arrays.read("values", left.shape),
                left,
                arrays.read("single", left.shape),
                arrays.read("units", shape, np.int64, low=0),
                arrays.read("fold", shape, np.int64, low=0),
                arrays.read("partial", pairs, np.float32, low=-1, high=1),
                arrays.read("graph", pairs, np.int32, low=0, high=1).astype(bool),
            )


def _fitted(values: Saved) -> Fitted:
    names = {key: tuple(values[key].names()) for key in ("covariates", "unused", "kept")}
    return Fitted(**names, moves=values["moves"].flag(), compared=values["compared"].whole())
