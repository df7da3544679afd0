"""A folder with the graphs of finished resamples: a run that was killed goes on, and others may add to it.

FOLDER/stability.json             what the fits are of: a fingerprint of rows and estimator, names, places
       half-0-3-1.safetensors     the graphs of one fit, named after its rows (see ``Resample``)
"""

from __future__ import annotations

import re
from collections.abc import Sequence
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

# All rows; one of two complementary halves; without a share of the rows; drawn with replacement.
KINDS = ("all", "half", "drop", "draw")
_NAME = re.compile(r"(all|half|drop|draw)-(\d{1,20})-(\d{1,9})-(\d{1,2})")
_FIT = 1  # beside what the rows are drawn from


@dataclass(frozen=True, order=True)
class Resample:
    """The rows of one fit, known by what they are drawn from.

    ``part`` is the side of a half, 0 or 1, or the share of rows that are dropped, in percent.

    >>> halves = [Resample("half", 0, 3, side).rows(np.arange(6)) for side in (0, 1)]
    >>> np.sort(np.concatenate(halves)).tolist()
    [0, 1, 2, 3, 4, 5]
    """

    kind: str
    seed: int = 0
    number: int = 0
    part: int = 0

    @property
    def name(self) -> str:
        return f"{self.kind}-{self.seed}-{self.number}-{self.part}"

    @classmethod
    def named(cls, name: str) -> Resample | None:
        """Inverse of :attr:`name`; None for what is no such name."""
        found = _NAME.fullmatch(name)
        return None if found is None else cls(found[1], *(int(number) for number in found.groups()[1:]))

    @property
    def dropped(self) -> float:
        """The share of rows that it is without."""
        return {"half": 0.5, "drop": self.part / 100}.get(self.kind, 0.0)

    @property
    def fit_seed(self) -> int:
        """For what is random in the fit itself."""
        state = np.random.SeedSequence([*self._key, self.part, _FIT]).generate_state(1, np.uint64)
        return int(state[0] >> np.uint64(1))

    def rows(self, codes: NDArray[np.intp]) -> NDArray[np.intp]:
        """Positions of its rows, rows with equal codes (0, 1, 2 and so on) together."""
        counts = self._counts(int(codes.max()) + 1)
        return np.repeat(np.arange(len(codes)), counts[codes])

    @property
    def _key(self) -> list[int]:
        return [self.seed, KINDS.index(self.kind), self.number]

    def _counts(self, n_units: int) -> NDArray[np.intp]:
        """How often each row or group is there."""
        if self.kind == "all":
            return np.ones(n_units, dtype=np.intp)
        key = self._key if self.kind == "half" else [*self._key, self.part]
        rng = np.random.default_rng(key)
        if self.kind == "draw":
            return np.bincount(rng.integers(n_units, size=n_units), minlength=n_units)
        order, half = rng.permutation(n_units), n_units // 2
        chosen = order[: round((1 - self.dropped) * n_units)]
        if self.kind == "half":
            chosen = order[half * self.part : half * (self.part + 1)]
        return np.bincount(chosen, minlength=n_units)


def planned_resamples(
    seed: int, n_pairs: int, n_drops: int, shares: Sequence[float], n_draws: int
) -> list[Resample]:
    """All rows, pairs of halves, and so many of the others; halves are what dropping half the rows is."""
    halves = [Resample("half", seed, number, side) for number in range(n_pairs) for side in (0, 1)]
    percent = [round(100 * share) for share in shares]
    drops = [
        Resample("drop", seed, number, part)
        for part in percent
        for number in range(max(0, n_drops - (2 * n_pairs if part == 50 else 0)))
    ]
    return [Resample("all"), *halves, *drops, *(Resample("draw", seed, number) for number in range(n_draws))]


FORMAT, FORMAT_VERSION = "graphfield-stability", 1
HEADER, _ENDING = "stability.json", ".safetensors"


@dataclass(frozen=True)
class About:
    """What the graphs of a folder, or of a result, are about."""

    fingerprint: str  # of rows, estimator and what is asked: results with the same one can be merged
    estimator: str  # name of its class
    node_names: tuple[str, ...]
    places: tuple[dict[str, Any], ...]  # covariates at which graphs were asked for, after the average one
    n_rows: int
    n_units: int  # rows or groups that were dropped and drawn together

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
        if header.is_file():
            if read_about(self.path).fingerprint != about.fingerprint:
                raise OutputError(
                    "{file} holds resamples of other rows, or of another estimator. Go on with exactly "
                    "what they were begun with, or name another folder.",
                    file=self.path,
                )
            return
        if self.path.is_dir() and holds_others(self.path):
            raise OutputError(
                "{file} holds other files and no resamples. Name another folder.", file=self.path
            )
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
        raise ModelFileError(
            f"{folder} holds no resamples of 'stability': there is no {HEADER} in it."
        ).about(file=folder)
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
