"""Archetypes and who has how much of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.exceptions import ParameterError, check_choice
from graphfield.plots.heatmaps import plot_graph
from graphfield.plots.style import full_colour, pyplot

if TYPE_CHECKING:
    from graphfield.estimators.archetype import ArchetypeCGM

_GROUPS = 40  # along a covariate


def plot_archetypes(model: ArchetypeCGM, Z: Any, covariate: str | None = None, *, most: int = 6) -> NDArray:
    """The archetypes of a fitted :class:`~graphfield.ArchetypeCGM`, and who has how much of them.

    Above, a heatmap of the partial correlations of each archetype with its average share over the rows of
    Z (at most ``most`` of them, the commonest). Below, the shares along one covariate: rows are sorted by it
    (the first, unless named) and averaged over up to 40 neighbouring groups, so other covariates are as they
    are in Z.

    Returns the Axes of the heatmaps and, last, that of the shares; ``axes[0].figure`` is the figure.

    Examples
    --------
    >>> import graphfield as gf
    >>> from graphfield.plots import plot_archetypes
    >>> sim = gf.make_setting("G1", n_samples=100, random_state=0)
    >>> model = gf.ArchetypeCGM(n_archetypes=2, max_steps=5, random_state=0).fit(sim.X[:, :4], sim.Z)
    >>> axes = plot_archetypes(model, sim.Z)
    """
    plt = pyplot()
    if not hasattr(model, "shares"):
        raise ParameterError(f"plot_archetypes draws an ArchetypeCGM, got {type(model).__name__}.").about(
            argument="model"
        )
    if most < 1:
        raise ParameterError.of("most", f"must be 1 or more, got {most}.")
    shares = model.shares(Z)
    name = model.covariate_names_[0] if covariate is None else covariate
    check_choice("covariate", name, model.covariate_names_)
    shown = model.archetype_names_[:most]
    precisions = model.archetypes_[:most]
    scales = np.sqrt(precisions.diagonal(axis1=1, axis2=2))
    partial = -precisions / scales[:, :, None] / scales[:, None, :] * (1 - np.eye(precisions.shape[1]))
    limit = full_colour(partial)
    figure = plt.figure(figsize=(max(6.0, 2.9 * len(shown)), 6.2), layout="constrained")
    grid = figure.add_gridspec(2, len(shown), height_ratios=[1.25, 1])
    axes = []
    for i, letter in enumerate(shown):
        axes.append(figure.add_subplot(grid[0, i]))
        title = f"{letter}: {100 * shares[letter].mean():.0f} %"
        plot_graph(partial[i], model.node_names_, limit=limit, title=title, ax=axes[-1])
    figure.colorbar(axes[0].images[0], ax=axes, shrink=0.7, label="partial correlation")
    below = figure.add_subplot(grid[1, :])
    values = model.field_.schema.match_covariates(Z).values[name]
    labels, heights, is_numeric = _shares_along(values, shares)
    colours = plt.get_cmap("viridis")(np.linspace(0, 1, shares.shape[1]))
    if is_numeric:
        below.stackplot(labels, heights.T, labels=shares.columns, colors=colours)
        below.set_xlim(labels[0], labels[-1])
    else:
        bottoms = np.cumsum(heights, axis=1) - heights
        for i, letter in enumerate(shares.columns):
            below.bar(labels, heights[:, i], bottom=bottoms[:, i], label=letter, color=colours[i])
    below.set(xlabel=name, ylabel="share", ylim=(0, 1))
    below.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize=8, frameon=False)
    return np.array([*axes, below], dtype=object)


def _shares_along(values: pd.Series, shares: pd.DataFrame) -> tuple[list[Any], NDArray, bool]:
    """Places on the axis, average shares there, and whether the axis is one of numbers."""
    numbers = pd.to_numeric(values, errors="coerce")
    if numbers.isna().any() or values.dtype == bool:
        means = shares.groupby(values.astype(str).to_numpy()).mean()
        return list(means.index), means.to_numpy(), False
    order = np.argsort(numbers.to_numpy(), kind="stable")
    parts = np.array_split(order, min(_GROUPS, len(order)))
    places = np.array([numbers.to_numpy()[part].mean() for part in parts])
    heights = np.array([shares.to_numpy()[part].mean(axis=0) for part in parts])
    distinct = np.unique(places, return_index=True)[1]
    return list(places[distinct]), heights[distinct], True
