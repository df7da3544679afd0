"""The reference: DNN-CGM as one would write it down, after the paper's description.

beta is stored for every sample, x is copied without its own node for every node, and batches come
from a DataLoader of per-sample dictionaries. Nothing here is slow on purpose.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import joblib
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from graphfield.experiments.bench.machine import synchronize
from graphfield.experiments.bench.problems import Problem, Table

LEARNING_RATE, WEIGHT_DECAY, CLIP_NORM = 5e-4, 1e-6, 1.0
DROP_EVERY, DROP_FACTOR = 20, 0.25  # epochs, learning rate
GPU_WORKERS = 4

Batch = dict[str, Tensor]


class StraightforwardField(nn.Module):
    """The residual network with one linear head to p (p - 1) coefficients."""

    off_diagonal: Tensor

    def __init__(self, problem: Problem) -> None:
        super().__init__()
        p, q, h, bias = problem.n_nodes, problem.n_covariates, problem.hidden, problem.bias
        half = max(1, h // 2)
        self.n_nodes = p
        self.first = nn.Linear(q, h, bias=bias)
        self.norm = nn.BatchNorm1d(h) if problem.batch_norm else nn.Identity()
        self.narrow = nn.Linear(h, half, bias=bias)
        self.second = nn.Linear(q + half, h, bias=bias)
        self.head = nn.Linear(h, p * (p - 1), bias=bias)
        self.dropout = nn.Dropout(problem.dropout)
        self.register_buffer("off_diagonal", ~torch.eye(p, dtype=torch.bool))

    def forward(self, z: Tensor) -> Tensor:
        """beta(z) without the diagonal, (b, p, p - 1)."""
        hidden = self.narrow(self.dropout(torch.relu(self.norm(self.first(z)))))
        hidden = self.dropout(torch.relu(self.second(torch.cat([z, hidden], dim=1))))
        return self.head(hidden).view(-1, self.n_nodes, self.n_nodes - 1)

    def loss(self, x: Tensor, z: Tensor) -> Tensor:
        """Mean squared error of every node predicted from all others."""
        b, p = x.shape
        repeated = x.unsqueeze(1).expand(b, p, p)
        others = repeated.masked_select(self.off_diagonal).view(b, p, p - 1)
        fitted = (self(z) * others).sum(-1)
        return nn.functional.mse_loss(fitted, x)


class Rows(Dataset):
    """One dictionary per sample."""

    def __init__(self, X: Table, Z: Table) -> None:
        self.X, self.Z = torch.as_tensor(X), torch.as_tensor(Z)

    def __len__(self) -> int:
        return len(self.X)

    def __getitem__(self, row: int) -> Batch:
        return {"x": self.X[row], "z": self.Z[row]}


class StraightforwardTraining:
    """Adam, gradient clipping and a stepwise learning rate, batch by batch.

    Layers and dropout of torch draw from its global generators; these are put back after each call.
    """

    def __init__(self, problem: Problem, X: Table, Z: Table, device: torch.device, seed: int = 0) -> None:
        self.problem, self.device, self.seed, self.calls = problem, device, seed, 0
        with self._own_randomness():
            self.model = StraightforwardField(problem).to(device)
        self.optimizer = torch.optim.Adam(
            self.model.parameters(), lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY
        )
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, DROP_EVERY, DROP_FACTOR)
        self.loader = self._loader(X, Z, shuffle=True)
        self._batches: Iterator[Batch] | None = None

    def _loader(self, X: Table, Z: Table, *, shuffle: bool) -> DataLoader[Batch]:
        on_gpu = self.device.type == "cuda"
        return DataLoader(
            Rows(X, Z),
            batch_size=self.problem.batch,
            shuffle=shuffle,
            drop_last=shuffle,
            num_workers=min(GPU_WORKERS, joblib.cpu_count()) if on_gpu else 0,
            pin_memory=on_gpu,
            generator=torch.Generator().manual_seed(self.seed),
        )

    def steps(self, count: int) -> None:
        """Run ``count`` steps, going on where the last call stopped; epochs follow each other."""
        with self._own_randomness():
            for _ in range(count):
                self._one_step(self._next_batch())
        synchronize(self.device)

    def train(self, epochs: int, X_val: Table, Z_val: Table) -> list[tuple[float, float]]:
        """Seconds since the start and held-out loss after each epoch."""
        start = time.perf_counter()
        held_out = self._loader(X_val, Z_val, shuffle=False)
        curve = []
        with self._own_randomness():
            for _ in range(epochs):
                for batch in self.loader:
                    self._one_step(batch)
                self.scheduler.step()
                loss = self._evaluate(held_out)
                curve.append((time.perf_counter() - start, loss))
        return curve

    def compute_only(self, count: int) -> None:
        """Steps on one batch that is on the device already: what is left without the DataLoader."""
        with self._own_randomness():
            batch = self._moved(self._next_batch())
            for _ in range(count):
                self._one_step(batch)
        synchronize(self.device)

    def _next_batch(self) -> Batch:
        if self._batches is None:
            self._batches = iter(self.loader)
        batch = next(self._batches, None)
        if batch is None:
            self.scheduler.step()
            self._batches = None
            return self._next_batch()
        return batch

    def _moved(self, batch: Batch) -> Batch:
        return {name: value.to(self.device, non_blocking=True) for name, value in batch.items()}

    def _one_step(self, batch: Batch) -> float:
        self.model.train()
        batch = self._moved(batch)
        self.optimizer.zero_grad()
        loss = self.model.loss(batch["x"], batch["z"])
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), CLIP_NORM)
        self.optimizer.step()
        return loss.item()

    @torch.no_grad()
    def _evaluate(self, held_out: DataLoader[Batch]) -> float:
        self.model.eval()
        total, count = 0.0, 0
        for rows in held_out:
            batch = self._moved(rows)
            total += self.model.loss(batch["x"], batch["z"]).item() * len(batch["x"])
            count += len(batch["x"])
        return total / count

    @contextmanager
    def _own_randomness(self) -> Iterator[None]:
        devices: list[Any] = [self.device] if self.device.type == "cuda" else []
        with torch.random.fork_rng(devices=devices):
            torch.default_generator.manual_seed(self.seed + self.calls)
            if devices:
                torch.cuda.manual_seed(self.seed + self.calls)
            self.calls += 1
            yield
