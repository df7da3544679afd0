"""The paper's guarantees as functions: what its bounds say for given n, p, q and smoothness.

Every result is a **rate**: it holds up to a universal constant that nobody has worked out (argument
``constant``, 1 by default). So a value says how an error shrinks with n or grows with p, not how large it is;
with a constant of 1 most values are far above 1, where a bound says nothing, for any n that one has.

All results assume that rows are independent, that x_j = sum_k beta*_jk(z) x_k + noise holds, that
\\|x\\| <= 1 and |z| <= 1, that the network minimises the training error exactly, and of the loss what
:class:`Loss` says. Where the paper's text contradicts itself, what follows from its own proof is computed:

- Theorem 2 and its refinement have "d" where the number of covariates q is meant.
- Their xi has the factor log(1/alpha): for squared error alpha is 1 or 2, so xi would be zero or no number at
  all. The proof needs no such factor. It and log(p), zero for p = 1, are taken as at least 1.
- The refinement minimises lambda xi^2 + L^2 (...) xi^(-q/m) / (alpha n), which gives L^2 / (lambda alpha n);
  the text has L / (lambda alpha n).
- Squared error is 2-strongly convex, not 1 (its second derivative is 2), and lies in [0, 4], not in [0, 1],
  for predictions and values in [-1, 1]. :data:`SQUARED_ERROR` is divided by 4, as the paper's footnote asks.
- Corollary 1 states a bound with a factor 1 where its proof has 2. That is part of ``constant``.
- Corollary 2 bounds a sum over nodes by the bound of a mean over nodes: a factor p is missing, which its own
  refinement has. It is in :func:`edge_errors`.
- Boundedness is |x_j| <= 1 in the main text and \\|x\\| <= 1 in the appendix. The proofs use
  |<b, x>| <= max_k |b_k|; with |x_j| <= 1 alone it would be p times that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypedDict, Unpack

from graphfield.estimators.inputs import check_number
from graphfield.exceptions import ParameterError, listing

_MOST_ROWS = 1e300


@dataclass(frozen=True)
class Loss:
    """What the results need of a loss that takes values in [0, 1] (Assumptions 1 and 5).

    Attributes
    ----------
    lipschitz : float
        L: the loss changes by at most L times the change of the prediction.
    convexity : float
        alpha: it is alpha-strongly convex in the prediction.
    smoothness : float or None
        lambda: its derivative is lambda-Lipschitz. None: not known, so the faster rate is not to be had.
    """

    lipschitz: float
    convexity: float
    smoothness: float | None = None

    def __post_init__(self) -> None:
        check_number("lipschitz", self.lipschitz, 0, open_low=True)
        check_number("convexity", self.convexity, 0, open_low=True)
        check_number("smoothness", self.smoothness, self.convexity, optional=True)


# (a - b)^2 / 4 for a and b in [-1, 1]: (a - b)^2 is 4-Lipschitz with second derivative 2 and at most 4.
SQUARED_ERROR = Loss(lipschitz=1.0, convexity=0.5, smoothness=0.5)


class Terms(TypedDict, total=False):
    """Keywords that every bound takes, all of them optional.

    Attributes
    ----------
    loss : Loss
        :data:`SQUARED_ERROR` by default.
    delta : float
        The bound holds with probability at least 1 - delta (0.05 by default).
    constant : float
        The universal constant that nobody knows (1 by default).
    """

    loss: Loss
    delta: float
    constant: float


@dataclass(frozen=True)
class _Setup:
    """The keywords with their defaults filled in."""

    loss: Loss = SQUARED_ERROR
    delta: float = 0.05
    constant: float = 1.0

    def __post_init__(self) -> None:
        _check_loss(self.loss)
        check_number("delta", self.delta, 0, 1, open_low=True, open_high=True)
        check_number("constant", self.constant, 0, open_low=True)


@dataclass(frozen=True)
class Rate:
    """The value of a bound, up to a universal constant, and the two parts that it is the sum of.

    >>> Rate(0.25, 0.125)
    Rate 0.375 (approximation 0.25 + estimation 0.125), up to a universal constant
    """

    approximation: float
    estimation: float

    @property
    def value(self) -> float:
        return self.approximation + self.estimation

    def __float__(self) -> float:
        return self.value

    def __repr__(self) -> str:
        parts = f"approximation {self.approximation:.3g} + estimation {self.estimation:.3g}"
        return f"Rate {self.value:.3g} ({parts}), up to a universal constant"

    def _times(self, factor: float) -> Rate:
        return Rate(factor * self.approximation, factor * self.estimation)


@dataclass(frozen=True)
class Network:
    """Networks that balance both parts of the bound, one for each coefficient: orders of size, not a recipe.

    Attributes
    ----------
    layers, neurons : int
        Hidden layers, and neurons in each.
    accuracy : float
        xi: how closely such a network can follow an (m, C)-smooth function.
    pseudo_dimension : float
        Of this family, from layers and neurons (Bartlett et al. 2019).
    """

    layers: int
    neurons: int
    accuracy: float
    pseudo_dimension: float


def excess_risk(
    n: int, p: int, pseudo_dimension: float, approximation_error: float = 0.0, **terms: Unpack[Terms]
) -> Rate:
    """Theorem 1: the risk beyond that of the truth, with probability at least 1 - delta.

    ``L err + L^2 d_P p^2 log(nLp) log(1/delta) / (alpha n)``, for functions beta_jk from a family of finite
    pseudo-dimension d_P that comes within ``approximation_error`` of the truth everywhere (Assumptions 1-3).

    Examples
    --------
    >>> few, many = (excess_risk(n, p=10, pseudo_dimension=20).value for n in (10**6, 10**7))
    >>> round(few / many, 2)
    8.75
    """
    setup = _read_terms(terms)
    _check_sizes(n, p)
    check_number("pseudo_dimension", pseudo_dimension, 0, open_low=True)
    check_number("approximation_error", approximation_error, 0)
    estimation = pseudo_dimension * _estimation(n, p, setup)
    return Rate(setup.loss.lipschitz * approximation_error, estimation)._times(setup.constant)


def coefficient_error(
    n: int, p: int, pseudo_dimension: float, approximation_error: float = 0.0, **terms: Unpack[Terms]
) -> Rate:
    """Corollary 1: how far estimated coefficients are from the true ones, squared, as predictions feel it.

    A bound of ``E_z [mean over j of (b_j - beta*_j)' A_j(z) (b_j - beta*_j)], A_j(z) = E[x_-j x_-j' | z]``:
    that of :func:`excess_risk` divided by alpha. Same assumptions.
    """
    risk = excess_risk(n, p, pseudo_dimension, approximation_error, **terms)
    return risk._times(1 / _read_terms(terms).loss.convexity)


def network_risk(n: float, p: int, q: int, m: float, **terms: Unpack[Terms]) -> Rate:
    """Theorem 2 and its refinement: the excess risk of ReLU networks of the best size.

    For (m, C)-smooth coefficients of q covariates, m at most of the order of q (Assumption 4). Without
    ``loss.smoothness`` it is L xi, of order n^(-m/(m+q)); with it lambda xi^2, of order n^(-2m/(2m+q)), up to
    logarithms. Both parts of the bound are of that size, and so the value is twice it.

    Examples
    --------
    Ten times the rows, two covariates, coefficients with two derivatives: n^(-2/3), but for the logarithms.

    >>> few, many = (network_risk(n, p=10, q=2, m=2).value for n in (10**9, 10**10))
    >>> round(few / many, 2), round(10 ** (2 / 3), 2)
    (4.09, 4.64)
    """
    setup = _read_terms(terms)
    loss, xi = setup.loss, _accuracy(n, p, q, m, setup)
    size = loss.lipschitz * xi if loss.smoothness is None else loss.smoothness * xi**2
    return Rate(size, size)


def network_coefficient_error(n: float, p: int, q: int, m: float, **terms: Unpack[Terms]) -> Rate:
    """Theorem 2, second half: the error of :func:`coefficient_error` for networks of the best size."""
    return network_risk(n, p, q, m, **terms)._times(1 / _read_terms(terms).loss.convexity)


def edge_errors(error: Rate | float, p: int, margin: float, *, gamma: float, eta: float = 0.5) -> Rate:
    """Corollary 2 and its refinement: how many of the p (p - 1) directed edges are wrong, on average over z.

    Edges are those whose coefficient exceeds ``eta * weak + (1 - eta) * strong``; every true coefficient is
    at most ``weak`` or at least ``strong`` in size and ``margin`` = strong - weak > 0; the smallest
    eigenvalue of every A_j(z) is at least ``gamma`` (Assumption 6).
    ``p error / (gamma min(eta, 1 - eta)^2 margin^2)``: small margins and collinear nodes make it large.

    Parameters
    ----------
    error : Rate or float
        Of the coefficients: from :func:`coefficient_error` or :func:`network_coefficient_error`.

    Examples
    --------
    >>> half = edge_errors(0.01, p=10, margin=0.2, gamma=0.5)
    >>> edge_errors(0.01, p=10, margin=0.1, gamma=0.5).value / half.value
    4.0
    """
    check_number("p", p, 2, integer=True)
    check_number("margin", margin, 0, open_low=True)
    check_number("gamma", gamma, 0, open_low=True)
    check_number("eta", eta, 0, 1, open_low=True, open_high=True)
    if not isinstance(error, Rate):
        check_number("error", error, 0)
    rate = error if isinstance(error, Rate) else Rate(0.0, float(error))
    return rate._times(p / (gamma * min(eta, 1 - eta) ** 2 * margin**2))


def rate_exponent(q: int, m: float, *, loss: Loss = SQUARED_ERROR) -> float:
    """a in "the excess risk is of order n^(-a)": 2m / (2m + q), or m / (m + q) without ``loss.smoothness``.

    >>> rate_exponent(q=2, m=1), rate_exponent(q=2, m=2, loss=Loss(1.0, 0.5))
    (0.5, 0.5)
    """
    _check_smooth(q, m)
    _check_loss(loss)
    return m / (m + q) if loss.smoothness is None else 2 * m / (2 * m + q)


def recommended_network(n: float, p: int, q: int, m: float, **terms: Unpack[Terms]) -> Network:
    """Theorem 2: layers of order xi^(-q/2m) and (2e)^q C(m+q, q) q^2 neurons, so that both parts balance.

    The theory's networks are deep and thin where n is large and a single layer where it is not, and there
    is one for each coefficient. They tell how size may grow with n and q; the defaults of ``DNNCGM`` were
    chosen on held-out rows.

    Examples
    --------
    >>> recommended_network(n=10_000, p=50, q=2, m=2).layers
    1
    """
    xi = _accuracy(n, p, q, m, _read_terms(terms))
    with _in_range(q, m):
        layers = max(1, math.ceil(xi ** (-q / (2 * m))))
        choose = math.exp(math.lgamma(m + q + 1) - math.lgamma(q + 1) - math.lgamma(m + 1))
        neurons = math.ceil((2 * math.e) ** q * choose * q**2)
        dimension = layers**2 * neurons**2 * math.log(max(2, layers * neurons))
    return Network(layers, neurons, xi, dimension)


def required_samples(
    target: float,
    p: int,
    q: int,
    m: float,
    *,
    margin: float | None = None,
    gamma: float | None = None,
    **terms: Unpack[Terms],
) -> float:
    """The rows from which on the bound is at most ``target``.

    It is that of the excess risk or, with ``margin`` and ``gamma``, that of wrong edges.

    Examples
    --------
    Half the error takes 2^(3/2) times the rows where the exponent is 2/3, and some more for the logarithms.

    >>> half, whole = (required_samples(target, p=10, q=2, m=2) for target in (0.05, 0.1))
    >>> round(half / whole, 1), round(2**1.5, 1)
    (3.1, 2.8)
    """
    check_number("target", target, 0, open_low=True)
    if (margin is None) != (gamma is None):
        raise ParameterError(
            "margin and gamma go together: both for wrong edges, neither for the risk."
        ).about(argument="gamma")

    def bound(n: float) -> float:
        if margin is None or gamma is None:
            return network_risk(n, p, q, m, **terms).value
        error = network_coefficient_error(n, p, q, m, **terms)
        return edge_errors(error, p, margin, gamma=gamma).value

    return _first_below(bound, target)


def _first_below(bound: Callable[[float], float], target: float) -> float:
    """The smallest n, from 2 on, at which a bound that falls from its peak on is at most ``target``."""
    low, high = 2.0, 4.0
    while bound(high) > target:
        low, high = high, high * high
        if high > _MOST_ROWS:
            raise ParameterError(
                f"target={target:g} asks for more than {_MOST_ROWS:g} rows: ask for less."
            ).about(argument="target")
    while high / low > 1 + 1e-6:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if bound(middle) <= target else (middle, high)
    return float(math.ceil(high))


def _accuracy(n: float, p: int, q: int, m: float, setup: _Setup) -> float:
    """xi: where the error of approximation is as large as that of estimation."""
    _check_sizes(n, p)
    _check_smooth(q, m)
    loss = setup.loss
    with _in_range(q, m):
        dimension = m**4 * q**6 * max(1.0, math.log(p)) * _logarithm(n, p, loss)
    sizes = setup.constant * dimension * _estimation(n, p, setup)
    if loss.smoothness is None:
        return (sizes / loss.lipschitz) ** (m / (m + q))
    return (sizes / loss.smoothness) ** (m / (2 * m + q))


def _estimation(n: float, p: int, setup: _Setup) -> float:
    """The error of estimation of Theorem 1, for a pseudo-dimension of 1."""
    loss = setup.loss
    logs = _logarithm(n, p, loss) * math.log(1 / setup.delta)
    return loss.lipschitz**2 / loss.convexity * p**2 * logs / n


def _logarithm(n: float, p: int, loss: Loss) -> float:
    return math.log(max(math.e, n * loss.lipschitz * p))


@contextmanager
def _in_range(q: int, m: float) -> Iterator[None]:
    """Raise by name where what is computed is larger than any float."""
    try:
        yield
    except OverflowError:
        raise ParameterError(
            f"q={q} covariates and m={m:g} derivatives give sizes beyond what a computer can hold. "
            "Ask for fewer."
        ).about(argument="q") from None


def _read_terms(terms: Terms) -> _Setup:
    known = list(Terms.__annotations__)
    if unknown := [name for name in terms if name not in known]:
        raise ParameterError(f"A bound has no keyword {unknown[0]!r}: it takes {listing(known)}.").about(
            argument=unknown[0]
        )
    return _Setup(**terms)


def _check_loss(loss: Loss) -> None:
    if not isinstance(loss, Loss):
        raise ParameterError.of("loss", f"must be a Loss, such as theory.SQUARED_ERROR, got {loss!r}.")


def _check_sizes(n: float, p: int) -> None:
    check_number("n", n, 1)
    check_number("p", p, 1, integer=True)


def _check_smooth(q: int, m: float) -> None:
    check_number("q", q, 1, integer=True)
    check_number("m", m, 0, open_low=True)
