"""How much memory ``fit`` and the predictions of :class:`DNNCGM` take, as a function of the sizes.

Everything that grows is named here, in bytes; what the interpreter and its libraries take (about 0.4 GB)
is not. With n rows, p nodes, q covariates, hidden size h and batch size b:

- data: the user's table is read where it lies; up to 20 million node values are copied in an order of their
  own, which takes as much as they do. Standard units take ``4 n p``, and as much again for a
  moment where a mean that moves with z is taken out; held-out rows are an index, not a copy.
- choosing between nodes and normal scores: at most 5 million node values, or 2,000 rows, a few times; their
  products with the covariates in blocks, and second moments of these, at most ``1000^2`` numbers or ``p^2``.
- scales that move with z: half as many node values, twice as often, beside the data; dividing by them takes
  ``4 n p`` for a moment, as the mean does.
- training a full head: weights, gradients and two moments of Adam, ``(h + 1) p^2`` numbers each, the best
  weights so far and those of the moment. Coefficients of a batch are never stored.
- mixing R patterns: second moments of shares times nodes, ``(R p)^2`` numbers, of each part of the rows and
  of all together; and a table of ``R (R + 1) + 1`` numbers for the network, for each row that its steps draw
  or that is watched meanwhile: at most 400,000 by default.
- a table that is read by rows (``open_table``): all that has a line per row and is long beside the bound lies
  in scratch files; about 100 bytes per row (positions, covariates) stay in memory.
- streaming predictions (``predict``, ``score``, ``edges``, ``iter_coef``): a block of coefficients of
  64 MB, whatever n is, and the result; of a model of normal scores also the scores of the n rows.
- arrays (``predict_coef``, ``edge_weights``): ``4 n p^2``, because that is what was asked for.
"""

from __future__ import annotations

from graphfield.data.nodes import BLOCK_ENTRIES
from graphfield.estimators.inputs import check_number
from graphfield.exceptions import check_choice
from graphfield.fields.streaming import evaluation_rows
from graphfield.fields.walker import CHUNK_BYTES
from graphfield.graphs.threshold import GAP_ENTRIES, GAP_ROWS
from graphfield.solvers.marginal_choice import check_rows, used_features

# Node values as the choice of marginals looks at them: as they are, as scores, in standard units.
_COPIES_OF_CHECKED = 4
# Second moments of nodes times covariates: of a block, of all rows, with a ridge, and the inverse.
_COPIES_OF_PRODUCTS = 4
# Arrays as large as the weights while training: weights, gradients, two moments, the best weights, and
# the next best while it takes their place.
_COPIES_OF_WEIGHTS = 6
_WORKSPACE = 100 * 2**20
# Matrices of second moments: of three parts, of all rows, of all but a part, and these in standard units.
_COPIES_OF_MOMENTS = 10
# The table, and the copy that training reads; a block of products of pairs.
_COPIES_OF_TABLE, _FEATURES = 2, 4 * 2**24
# Rows that the default steps of the network draw, and those that are watched.
_DRAWN_ROWS = 600 * 512 + 100_000
# Predictions that stream, and the bytes of an entry of those that return an array (n, p, p).
_STREAMING = ("predict", "score", "edges", "iter_coef", "iter_edges")
_ARRAYS = {
    "predict_coef": 4,
    "partial_correlations": 4,
    "edge_weights": 4,
    "predict_graph": 1,
    "predict_precision": 8,
}


def estimate_fit_memory(
    n: int,
    p: int,
    q: int,
    *,
    hidden_size: int = 64,
    rank: int | None = None,
    batch_size: int = 64,
    members: int = 1,
) -> dict[str, int]:
    """Bytes that ``DNNCGM.fit`` adds to what is there before it, by part.

    Parameters
    ----------
    n, p, q : int
        Rows, nodes, numeric covariates.
    hidden_size, batch_size : int
        As in :class:`DNNCGM` (``sharing="all"``).
    rank : int, optional
        Patterns that are mixed; None for a full head.
    members : int
        Networks that are trained together on the same rows.

    Returns
    -------
    dict
        ``marginals`` while these are chosen; ``data`` while standard units are computed; ``samples`` (what is
        left of them), ``weights`` or ``patterns`` and ``table``, ``batch`` and ``workspace`` while training;
        ``threshold`` afterwards, beside the samples and one copy of the weights; and ``peak``, the largest
        of the four moments.

    Examples
    --------
    >>> parts = estimate_fit_memory(100_000, 1_000, 5, hidden_size=64, batch_size=64)
    >>> {name: round(size / 1e9, 1) for name, size in parts.items() if size > 5e7}
    {'marginals': 0.2, 'data': 0.8, 'samples': 0.8, 'weights': 1.6, 'workspace': 0.1, 'threshold': 0.2,
     'peak': 2.5}
    """
    sizes = {"n": n, "p": p, "q": q, "hidden_size": hidden_size, "batch_size": batch_size, "members": members}
    n, p, q, hidden_size, batch_size, members = (_size(*size) for size in sizes.items())
    units = hidden_size if rank is None else _size("rank", rank)
    one = 4 * (units + 1) * p**2
    covariates = 8 * n * q
    gap_entries = min(min(n, GAP_ROWS) * p * (p - 1) // 2, max(GAP_ENTRIES, p * p))
    parts = {
        "marginals": _marginal_bytes(n, p, q),
        "data": 8 * n * p + 4 * covariates,
        "samples": 2 * 4 * n * p + 2 * covariates,  # also divided by scales that move
        "weights": _COPIES_OF_WEIGHTS * one * members if rank is None else 0,
        "patterns": 0 if rank is None else _pattern_bytes(p, units),
        "table": 0 if rank is None else _table_bytes(n, p, units, members),
        "batch": 8 * batch_size * members * (2 * p + 8 * hidden_size),
        "workspace": _WORKSPACE,
        "threshold": 8 * gap_entries,
    }
    needed = ("samples", "weights", "patterns", "table", "batch", "workspace")
    training = sum(parts[name] for name in needed)
    finding = parts["samples"] + one * members + parts["threshold"] + _block_bytes(p)
    return {**parts, "peak": max(parts["marginals"], parts["data"], training, finding)}


def _marginal_bytes(n: int, p: int, q: int) -> int:
    rows, products = check_rows(n, p), used_features(1 + q, p) * p
    design = min(rows * products, max(BLOCK_ENTRIES, products))
    return 8 * (_COPIES_OF_CHECKED * rows * p + design + _COPIES_OF_PRODUCTS * products**2)


def _pattern_bytes(p: int, rank: int) -> int:
    return 4 * _COPIES_OF_MOMENTS * (rank * p) ** 2


def _table_bytes(n: int, p: int, rank: int, members: int) -> int:
    """For the network; or, earlier, the rows of each part with a block of their shares times nodes."""
    learning = 4 * _COPIES_OF_TABLE * members * min(n, _DRAWN_ROWS) * (rank * (rank + 1) + 1)
    return learning + min(_FEATURES, 4 * n * rank * p) + 4 * n * p


def estimate_predict_memory(n: int, p: int, *, method: str = "predict", n_edges: int = 0) -> dict[str, int]:
    """Bytes that a prediction at n rows adds to what is there before it, by part.

    Parameters
    ----------
    n, p : int
        Rows asked for, and nodes.
    method : str
        Name of the method that is called.
    n_edges : int
        Rows of the table that ``edges`` returns.

    Returns
    -------
    dict
        ``blocks`` (of coefficients), ``result`` and ``peak``.

    Examples
    --------
    >>> few, many = (estimate_predict_memory(n, 50, method="score") for n in (10_000, 1_000_000))
    >>> few == many
    True
    >>> round(estimate_predict_memory(2_000, 268, method="edge_weights")["result"] / 1e9, 2)
    0.57
    """
    check_choice("method", method, (*_STREAMING, *_ARRAYS))
    n, p, n_edges = _size("n", n), _size("p", p), _size("n_edges", n_edges, 0)
    result = _ARRAYS.get(method, 0) * n * p**2
    if method == "predict":
        result = 8 * n * p
    if method == "edges":
        result = 3 * 16 * n_edges  # codes, weights and their copies while the blocks are joined
    parts = {
        "blocks": min(_block_bytes(p), 3 * 4 * max(n, evaluation_rows(p)) * p**2) + _WORKSPACE // 2,
        "result": result,
    }
    return {**parts, "peak": sum(parts.values())}


def _block_bytes(p: int) -> int:
    """Coefficients of one block: as evaluated, in the user's units, and what is made of them."""
    return 3 * max(CHUNK_BYTES, 4 * evaluation_rows(p) * p**2)


def _size(name: str, value: int, low: int = 1) -> int:
    check_number(name, value, low, integer=True)
    return int(value)
