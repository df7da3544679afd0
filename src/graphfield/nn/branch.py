"""Work of a training step that nothing else waits for until its end.

The gradients of the weights of one layer are not needed to go on to the next. While a step is recorded
as a CUDA graph, :func:`aside` puts such work on a second branch of it, and the kernels of both run side
by side. Everywhere else it does nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field

import torch
from torch import Tensor


@dataclass
class _Branch:
    stream: torch.cuda.Stream
    # Their memory must not be given away before the branches meet.
    held: list[Tensor] = field(default_factory=list)


_HERE = nullcontext()  # made once: a step asks for it often
_current: ContextVar[_Branch | None] = ContextVar("branch", default=None)


@contextmanager
def branching(stream: torch.cuda.Stream) -> Iterator[None]:
    """Inside, :func:`aside` uses this stream; at the end the current stream waits for it."""
    branch = _Branch(stream)
    token = _current.set(branch)
    try:
        yield
    finally:
        _current.reset(token)
        if branch.held:
            torch.cuda.current_stream(stream.device).wait_stream(stream)


def aside(*needed: Tensor) -> AbstractContextManager[None]:
    """Run on the second branch, if there is one; ``needed`` are the tensors that the work reads."""
    branch = _current.get()
    return _HERE if branch is None else _on(branch, needed)


@contextmanager
def _on(branch: _Branch, needed: tuple[Tensor, ...]) -> Iterator[None]:
    branch.held.extend(needed)
    branch.stream.wait_stream(torch.cuda.current_stream(branch.stream.device))
    with torch.cuda.stream(branch.stream):
        yield
