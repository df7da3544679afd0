"""A study asks twice whether the graph varies, of two models; what to make of it when they disagree."""

from __future__ import annotations

from graphfield.analysis.evidence import PLAIN, Evidence
from graphfield.analysis.held_out_gain import Gain


def disagreement(verdict: str, gain: Gain, evidence: Evidence | None, new: str) -> str | None:
    """A sentence where the model's predictions of ``new`` data and the permutation test differ, else None.

    >>> from types import SimpleNamespace
    >>> test = SimpleNamespace(verdict="no evidence", gain_over_static=Gain(-0.001, 0.002))
    >>> disagreement("no clear difference", Gain(0.004, 0.003), test, "later days")  # doctest: +ELLIPSIS
    'That one of the two finds a slightly lower error and the other does not means nothing: they are ...'
    """
    if evidence is None or "not known" in (verdict, evidence.verdict):
        return None
    found = evidence.verdict != "no evidence"
    if verdict == "better" and not found:
        return (
            f"The two disagree: the model predicts {new} better, but the permutation test does not see "
            "correlations follow the covariates. Take it for a hint to be confirmed on more data."
        )
    if verdict != "better" and found:
        return (
            f"The two differ: correlations follow the covariates (permutation test), but the model does not "
            f"predict {new} better for it. That the graph varies is likely; how, in the pictures, is not "
            "established."
        )
    ridge = evidence.gain_over_static
    if ridge is None or gain.value * ridge.value >= 0:
        return None
    if all(abs(one.value) <= PLAIN[1] * one.standard_error for one in (gain, ridge)):
        return (
            "That one of the two finds a slightly lower error and the other does not means nothing: they are "
            "different models (the one fitted here; ridge regressions), and both differences are within two "
            "standard errors."
        )
    return (
        "The two held-out errors move in opposite directions because they are those of different models: the "
        "one fitted here shares what it learns between edges, ridge regressions learn every edge by itself "
        "and need more data. For pictures of the model, its own error counts."
    )
