"""A fitted model in a notebook: a short description, and its page inside a cell."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from graphfield.analysis.rows import FieldLike, field_of
from graphfield.estimators.base import GraphEstimator
from graphfield.estimators.inputs import check_number
from graphfield.exceptions import count, listing
from graphfield.report.figures import survey
from graphfield.report.html import write_report
from graphfield.report.rows import Rows
from graphfield.report.summary import average_edges
from graphfield.templates import render

# Edges that a description names, and values of the covariates that its average is over.
_STRONGEST, _ROWS = 8, 50


class PageInCell:
    """A page that a notebook shows in the output of a cell.

    Attributes
    ----------
    html : str
        The page itself, as :func:`write_report` writes it.
    height : int
        Of the cell, in pixels.
    """

    def __init__(self, html: str, height: int) -> None:
        self.html, self.height = html, height

    def __repr__(self) -> str:
        return f"PageInCell({len(self.html):,} characters, which a notebook shows)"

    def _repr_html_(self) -> str:
        return render("graphfield.report", "cell", page=self.html, height=self.height)


def explore(model: FieldLike, Z: Any = None, *, height: int = 900, **parts: Any) -> PageInCell:
    """The report page of a fitted model, to be shown in a cell of a notebook.

    Parameters
    ----------
    model : fitted estimator or GraphField
    Z : table, optional
        Rows of covariates to speak about, mostly those of training.
    height : int
        Of the cell, in pixels, 100 or more.
    **parts
        Of the page, as :func:`write_report` takes them: ``gain``, ``evidence``, ``edges``, ``node_groups``.

    Examples
    --------
    >>> import graphfield as gf
    >>> sim = gf.make_setting("G1", n_samples=60, random_state=0)
    >>> model = gf.RegGMM().fit(sim.X[:, :5], sim.Z)
    >>> "<iframe" in model.explore(sim.Z)._repr_html_()
    True
    """
    check_number("height", height, 100, integer=True)
    with tempfile.TemporaryDirectory() as folder:
        page = write_report(model, Path(folder) / "page.html", Z=Z, **parts)
        return PageInCell(page.read_text(encoding="utf-8"), height)


def describe_in_html(model: GraphEstimator) -> str:
    """What was fitted, which pairs are edges and why, and the strongest of the average graph."""
    field = field_of(model)
    names = field.schema.node_names
    rows = Rows.of(field, None).Z
    found = survey(field, rows.iloc[:: max(1, len(rows) // _ROWS)], None)
    first, second = np.triu_indices(len(names), 1)
    edges = np.flatnonzero(average_edges(field, found))
    strongest = sorted(edges, key=lambda pair: -abs(found.mean[pair]))[:_STRONGEST]
    return render(
        "graphfield.report",
        "model",
        estimator=type(model).__name__,
        nodes=count(len(names), "node"),
        covariates=listing(field.schema.encoder.names) if field.uses_covariates else "",
        said=model.describe().split("\n"),
        edges=[(names[first[i]], names[second[i]], f"{found.mean[i]:+.2f}") for i in strongest],
        more=len(edges) - len(strongest),
    )
