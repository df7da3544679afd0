"""What the machine offers for matrix products: kernels, libraries, rounding of their factors."""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import torch
from torch import Tensor

logger = logging.getLogger(__name__)

# Multiplications of a product from which rounding its factors to bfloat16 pays on a CPU that can.
LARGE_PRODUCT = 10**8


@cache
def has_triton() -> bool:
    """Whether the fused kernels run: Triton comes with torch's CUDA builds, bfloat16 with GPUs since 2020.

    Without them the plain forms and the plain engine work on CUDA too. A small kernel is tried, because
    Triton may be there and yet not work, for want of a C compiler or of a place to write to.
    """
    if importlib.util.find_spec("triton") is None or not torch.cuda.is_available():
        return False
    if torch.cuda.get_device_capability() < (8, 0):
        return False
    try:
        from graphfield.nn.triton_probe import probe

        return probe()
    except Exception as error:  # noqa: BLE001  whatever a driver or compiler says
        logger.info("Triton does not work here (%s); going on without its kernels", error)
        return False


@cache
def has_mkl() -> bool:
    """MKL has fast batched products of a matrix and a vector; other CPU libraries take them one by one."""
    return torch.backends.mkl.is_available()


@cache
def has_amx() -> bool:
    """Matrix instructions of newer Intel CPUs, which multiply bfloat16 several times faster."""
    supported = getattr(torch.cpu, "_is_amx_tile_supported", None)
    return bool(supported and supported())


@contextmanager
def matmul_precision(level: str) -> Iterator[None]:
    """torch's setting for products of float32 matrices: "high" allows TF32, "medium" bfloat16."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(level)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


@contextmanager
def large_products(factor: Tensor, multiplications: int) -> Iterator[None]:
    """In this context products on a CPU with AMX round their factors to bfloat16, if they are large."""
    if factor.is_cuda or multiplications < LARGE_PRODUCT or not has_amx():
        yield
        return
    with matmul_precision("medium"):
        yield
