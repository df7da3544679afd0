"""A folder that lets a killed fit continue where it was.

``fit.json`` names the problem (a fingerprint of data and settings) and its seed; each training
stage keeps one ``<stage>.safetensors`` with weights, optimiser state, random state and loss curve.
Every file is replaced in one move, so a kill at any moment leaves a whole one behind.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from graphfield.data.saved_files import MAX_DIGITS, json_bytes, open_regular, read_json
from graphfield.data.saved_values import Saved
from graphfield.exceptions import ModelFileError, OutputError
from graphfield.folders import clear_leftovers, holds_others, make_folder, write_file
from graphfield.messages import Message
from graphfield.nn.processes import current

FORMAT = "graphfield-checkpoint"
FORMAT_VERSION = 2


@dataclass
class Snapshot:
    """Everything the loop needs to go on after ``step`` steps."""

    step: int
    finished: bool
    tensors: dict[str, Tensor]
    record: dict[str, Any]
    file: str = "the checkpoint"


# What reading a value of another kind, name or shape than expected raises.
_OTHER_FORM = (LookupError, TypeError, ValueError, AttributeError, RuntimeError)


@contextmanager
def restoring(file: str) -> Iterator[None]:
    """Whatever a snapshot lacks, or has in another form than this fit would have written, is damage."""
    try:
        yield
    except ModelFileError:
        raise
    except (SafetensorError, OSError, *_OTHER_FORM) as error:
        raise ModelFileError(
            f"Checkpoint {file} is damaged: {error}. Choose another folder to start anew."
        ).about(file=file) from error


def check_like(tensors: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> None:
    """Raise unless these are there, in the shapes and types of what is expected."""
    for name, wanted in expected.items():
        found = tensors[name]
        if (found.shape, found.dtype) != (wanted.shape, wanted.dtype):
            which = f"{tuple(found.shape)} of {found.dtype}"
            raise ValueError(f"{name} must be {tuple(wanted.shape)} of {wanted.dtype}, got {which}")


def _record(text: str) -> dict[str, Any]:
    record = json.loads(text)
    if not isinstance(record, dict):
        raise ValueError("its record is no object")
    return record


class Stage(Protocol):
    """Where a stage of training is kept between its windows or rounds."""

    def load(self, device: torch.device) -> Snapshot | None: ...

    def save(self, snapshot: Snapshot) -> None: ...


class CheckpointFolder:
    """Opened once per fit; hands out one :class:`StageFile` per training stage.

    Of several processes the first alone reads and writes.
    """

    def __init__(self, path: str | Path, fingerprint: str, seed: int, *, resume: bool) -> None:
        self.path = Path(path)
        self.seed = current().from_first(lambda: self._open(fingerprint, seed, resume))

    def _open(self, fingerprint: str, seed: int, resume: bool) -> int:
        """The seed of the fit that is there, or of this one, whose folder it is from now on."""
        if self.path.exists() and not self.path.is_dir():
            raise OutputError("{file} is a file. Name a folder for the checkpoint.", file=self.path)
        header_file = self.path / "fit.json"
        clear_leftovers(header_file)
        if header_file.exists():
            return self._continue(header_file, fingerprint, resume)
        if self.path.exists() and holds_others(self.path):
            raise OutputError("{file} is not empty and holds no checkpoint. Choose another.", file=self.path)
        header = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "fingerprint": fingerprint,
            "seed": seed,
        }
        make_folder(self.path)
        write_file(header_file, json_bytes(header), overwrite=False)
        return seed

    def _continue(self, header_file: Path, fingerprint: str, resume: bool) -> int:
        if not resume:
            raise OutputError(
                "{file} already holds a checkpoint. {resume} to continue that fit, or choose another folder.",
                file=self.path,
                resume=Message("Pass resume=True", code="resume"),
            )
        header = read_json(header_file)
        if not isinstance(header, dict) or (
            header.get("format") != FORMAT
            or header.get("format_version") != FORMAT_VERSION
            or header.get("fingerprint") != fingerprint
        ):
            raise ModelFileError(
                "{file} belongs to another fit: data, hyper-parameters or version differ. "
                "Resume with exactly what it was started with, or choose another folder.",
                file=self.path,
            )
        return Saved(header, str(header_file))["seed"].whole(high=10**MAX_DIGITS)

    def stage(self, name: str) -> StageFile:
        return StageFile(self.path / f"{name}.safetensors")


@dataclass(frozen=True)
class StageFile:
    path: Path

    def load(self, device: torch.device) -> Snapshot | None:
        found = current().from_first(self._read)
        if found is None:
            return None
        tensors = {k: v if k.startswith("random/") else v.to(device) for k, v in found.tensors.items()}
        return replace(found, tensors=tensors)

    def _read(self) -> Snapshot | None:
        if not self.path.exists():
            return None
        open_regular(self.path).close()  # what is no file would be waited for
        with restoring(str(self.path)):
            with safe_open(str(self.path), framework="pt", device="cpu") as file:
                record = _record(file.metadata()["record"])
                tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
            for name, tensor in tensors.items():
                if tensor.is_floating_point() and not torch.isfinite(tensor).all():
                    raise ValueError(f"{name} is not finite")
            saved = Saved(record, str(self.path))
            step, finished = saved["step"].whole(), saved["finished"].flag()
        rest = {name: value for name, value in record.items() if name not in ("step", "finished")}
        return Snapshot(step, finished, tensors, rest, str(self.path))

    def save(self, snapshot: Snapshot) -> None:
        if current().rank > 0:
            return
        record = {"step": snapshot.step, "finished": snapshot.finished, **snapshot.record}
        tensors = {k: v.detach().to("cpu").contiguous() for k, v in snapshot.tensors.items()}
        write_file(self.path, save(tensors, metadata={"record": json_bytes(record).decode()}), overwrite=True)
