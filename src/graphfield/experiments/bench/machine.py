"""What the machine is and what it can do: matrix products per second, memory."""

from __future__ import annotations

import gc
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib
import torch

from graphfield.nn.precision import matmul_precision

_SIZES = {"cpu": 1024, "cuda": 8192}  # of the square matrices whose product is timed


def synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


class MatrixProduct:
    """The machine's own matrix-product rate, the limit of any implementation."""

    def __init__(self, device: torch.device, arithmetic: str = "float32") -> None:
        self.device, self.arithmetic = device, arithmetic
        n = _SIZES[device.type]
        dtype = torch.bfloat16 if arithmetic == "bfloat16" else torch.float32
        generator = torch.Generator(device).manual_seed(0)
        self.a, self.b = (torch.randn(n, n, generator=generator, device=device).to(dtype) for _ in range(2))
        self.out = torch.empty_like(self.a)
        self.flops = 2.0 * n**3

    def rate(self, repeats: int = 10) -> float:
        """Floating-point operations per second, the best of ``repeats``."""
        with matmul_precision("high" if self.arithmetic == "tf32" else "highest"):
            return self.flops / min(self._seconds() for _ in range(repeats + 1))

    def _seconds(self) -> float:
        synchronize(self.device)
        start = time.perf_counter()
        torch.mm(self.a, self.b, out=self.out)
        synchronize(self.device)
        return time.perf_counter() - start


def matrix_rates(device: torch.device) -> dict[str, float]:
    """GFLOP/s by arithmetic."""
    kinds = ("float32", "tf32", "bfloat16") if device.type == "cuda" else ("float32",)
    return {kind: MatrixProduct(device, kind).rate() / 1e9 for kind in kinds}


def card(devices: list[torch.device]) -> dict[str, Any]:
    """Everything a reader needs to judge the figures."""
    found: dict[str, Any] = {
        "cpu": _cpu_model(),
        "cores": joblib.cpu_count(),
        "threads": torch.get_num_threads(),
        "free_share_of_cores": round(free_share(), 2),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "torch": torch.__version__,
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
    }
    found["gflops"] = {device.type: matrix_rates(device) for device in devices}
    return found


def free_share() -> float:
    """Processor time this process gets, as a share of what its threads could have.

    Where others take a core, threads wait for each other at every operation, by time slices of the
    operating system: steps of any implementation then take the same time, and ratios say nothing.
    """
    product = MatrixProduct(torch.device("cpu"))
    product.rate(1)
    wall, own = time.perf_counter(), time.process_time()
    product.rate(10)
    return (time.process_time() - own) / (time.perf_counter() - wall) / torch.get_num_threads()


def _cpu_model() -> str:
    """As ``lscpu`` names it; elsewhere the architecture."""
    try:
        done = subprocess.run(["lscpu"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in done.stdout.splitlines() if "Model name" in line]
    return names[0] if names else platform.machine()


def peak_rss_mb() -> float:
    """Highest memory of this process so far.

    ``ru_maxrss`` starts at the size of the parent process on Linux; VmHWM does not.
    """
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1]) / 1024
    except OSError:
        pass
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1024 if sys.platform != "darwin" else peak / 1024**2


def cuda_peak_mb(work: Callable[[], object]) -> float:
    """Highest memory that torch allocated on the GPU during ``work``, above what was there before."""
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    kept = work()  # whatever it returns stays alive until the peak is read
    torch.cuda.synchronize()
    peak = torch.cuda.max_memory_allocated() - before
    del kept
    gc.collect()
    torch.cuda.empty_cache()
    return peak / 1024**2
