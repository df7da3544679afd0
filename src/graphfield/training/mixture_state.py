"""Where a fit of a mixture stands, and how that goes to a file and comes back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields

from torch import Tensor

from graphfield.data.saved_values import Saved
from graphfield.training.checkpoint import Snapshot

Arrays = dict[str, Tensor]


@dataclass(frozen=True)
class Mixture:
    """A gate, its patterns (R, p, p) and how held-out rows like them."""

    gate: Arrays
    patterns: Tensor
    rank: int
    penalty: float
    loss: float
    step: int


@dataclass
class Trace:
    """What happened, round by round."""

    step: list[int] = field(default_factory=list)
    rank: list[int] = field(default_factory=list)
    penalty: list[float] = field(default_factory=list)
    train_loss: list[float] = field(default_factory=list)
    held_out_loss: list[float | None] = field(default_factory=list)


@dataclass
class Standing:
    """Of one fit: the gate of the moment, and the best mixtures at this rank and at all ranks before."""

    trace: Trace = field(default_factory=Trace)
    gate: Arrays = field(default_factory=dict)
    patterns: Tensor | None = None
    penalty: float | None = None
    stale: int = 0
    best: Mixture | None = None
    chosen: Mixture | None = None
    is_open: bool = True


def to_snapshot(standings: list[Standing], level: int, rounds: int) -> Snapshot:
    """``level`` is the position in the list of ranks, ``rounds`` how many are done at that rank."""
    tensors: Arrays = {}
    records = []
    for i, standing in enumerate(standings):
        record = {
            "trace": asdict(standing.trace),
            "penalty": standing.penalty,
            "stale": standing.stale,
            "is_open": standing.is_open,
        }
        tensors |= {f"{i}/gate/{name}": value for name, value in standing.gate.items()}
        if standing.patterns is not None:
            tensors[f"{i}/patterns"] = standing.patterns
        for name in ("best", "chosen"):
            mixture: Mixture | None = getattr(standing, name)
            record[name] = None
            if mixture is not None:
                record[name] = {key: getattr(mixture, key) for key in ("rank", "penalty", "loss", "step")}
                tensors[f"{i}/{name}/patterns"] = mixture.patterns
                tensors |= {f"{i}/{name}/gate/{key}": value for key, value in mixture.gate.items()}
        records.append(record)
    copies = {name: value.detach().clone() for name, value in tensors.items()}
    return Snapshot(rounds, False, copies, {"level": level, "standings": records})


def from_snapshot(snapshot: Snapshot) -> tuple[list[Standing], int, int]:
    """Inverse of :func:`to_snapshot`: standings, level and rounds."""
    record = Saved(snapshot.record, snapshot.file)
    standings = [
        _standing(one, _below(snapshot.tensors, f"{i}/"))
        for i, one in enumerate(record["standings"].listed())
    ]
    return standings, record["level"].whole(), snapshot.step


def _standing(record: Saved, tensors: Arrays) -> Standing:
    penalty = record.known("penalty")
    return Standing(
        _trace(record["trace"]),
        _below(tensors, "gate/"),
        tensors.get("patterns"),
        None if penalty is None else penalty.number(0),
        record["stale"].whole(),
        _mixture(record.known("best"), _below(tensors, "best/")),
        _mixture(record.known("chosen"), _below(tensors, "chosen/")),
        record["is_open"].flag(),
    )


def _trace(record: Saved) -> Trace:
    columns = record.columns(required=("step", "rank", "penalty", "train_loss"))
    for value in record["held_out_loss"].listed():
        value.number_or_nan()
    return Trace(**{column.name: columns[column.name] for column in fields(Trace)})


def _mixture(record: Saved | None, tensors: Arrays) -> Mixture | None:
    if record is None:
        return None
    numbers = record["penalty"].number(0), record["loss"].number(), record["step"].whole()
    return Mixture(_below(tensors, "gate/"), tensors["patterns"], record["rank"].whole(1), *numbers)


def _below(tensors: Mapping[str, Tensor], prefix: str) -> Arrays:
    return {key.removeprefix(prefix): value for key, value in tensors.items() if key.startswith(prefix)}
