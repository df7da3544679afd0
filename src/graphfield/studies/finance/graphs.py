"""Graphs of stocks over time: what a study found, as tables, numbers and words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from graphfield.analysis.averages import Bands
from graphfield.studies.finance.comparison import MIN_MONTHS, HeldOutComparison
from graphfield.studies.finance.days import HIGH, NORMAL, PERIODS
from graphfield.studies.study import Study, Wording, no_news

FORMAT, FORMAT_VERSION = "graphfield-finance", 1


@dataclass(frozen=True, kw_only=True)
class MarketGraphs(Study):
    """All of a study of stocks but its figures; see :class:`FinanceStudy`."""

    wording = Wording(
        not_compared="too few later days to confirm that the graph varies",
        not_supported="later days do not confirm that the graph varies",
        nowhere="on any day",
        why_not=f"later days of {MIN_MONTHS} months are needed",
        table="residual returns",
        model_folder="model/",
    )

    X: pd.DataFrame
    period: pd.Series
    volatility: str
    sectors: dict[str, str] | None
    connectivity: pd.DataFrame
    days: Bands | None
    cuts: dict[str, float]
    held_out: HeldOutComparison
    events: dict[Any, str]

    @property
    def node_groups(self) -> dict[str, str] | None:
        return self.sectors

    def in_period(self, name: str) -> np.ndarray:
        """Which days are ``train``, ``validation`` or ``test``."""
        return (self.period == name).to_numpy()

    @property
    def has_edges(self) -> bool:
        density = self.connectivity.get("density", pd.Series(dtype=float))
        return bool(super().has_edges or density.any())

    @property
    def edges(self) -> pd.DataFrame:
        """Edges of the chosen days: ``date, source, target, weight, partial_correlation``."""
        dates = [] if self.days is None else list(self.days.labels)
        rows = self.Z.loc[pd.DatetimeIndex(dates)]
        with no_news():
            table = self.model.edges(rows, threshold=self.threshold, rule=self.rule)
        table.insert(0, "date", np.array(dates, dtype=object)[table.pop("sample").to_numpy(dtype=int)])
        return table

    @property
    def pairs(self) -> pd.DataFrame:
        """Every pair of stocks: average partial correlations ``normal``, ``high``, and ``difference``."""
        j, k = np.triu_indices(len(self.averages.node_names), 1)
        names = np.array(self.averages.node_names, dtype=object)
        normal, high = (self.averages.frame(label).to_numpy()[j, k] for label in (NORMAL, HIGH))
        table = pd.DataFrame({"source": names[j], "target": names[k], NORMAL: normal, HIGH: high})
        table["difference"] = high - normal
        if self.sectors is not None:
            same = [self.sectors[a] == self.sectors[b] for a, b in zip(names[j], names[k], strict=True)]
            table["same_sector"] = same
        order = np.argsort(-np.abs(table["difference"].to_numpy()), kind="stable")
        return table.iloc[order].reset_index(drop=True)

    def tables(self) -> dict[str, pd.DataFrame]:
        beside = pd.DataFrame({"period": self.period, self.volatility: self.Z[self.volatility]})
        return {
            "residuals": self.X.rename_axis("date"),
            "connectivity": pd.concat([beside, self.connectivity], axis=1).rename_axis("date"),
            "edges": self.edges,
            "pairs": self.pairs,
            "held_out_by_month": self.held_out.months,
        }

    @property
    def about(self) -> str:
        counts = ", ".join(f"{len(dates):,} {name}" for name, dates in self._dates_of_periods().items())
        first, last = (self.X.index[place].date() for place in (0, -1))
        return f"{self.X.shape[1]} stocks on {len(self.X):,} days from {first} to {last} ({counts})."

    def _findings(self) -> list[str]:
        numbers, name = self._numbers_of_bands(), self.volatility
        parts = [
            f"{100 * numbers[label]['density']:.1f} % where {name} is {side} {numbers[label]['cut']:.4g} "
            f"({numbers[label]['days']:,} days)"
            for label, side in ((HIGH, "above"), (NORMAL, "below"))
        ]
        density = f"Density of the estimated graphs on test days: {', '.join(parts)}."
        return [density, *(f"Note: {note}" for note in self.notes)]

    def _numbers(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "summary": "\n".join(self.sentences()),
            "stocks": list(self.X.columns),
            "volatility": self.volatility,
            "periods": {
                name: {"days": len(dates), "first": str(dates[0].date()), "last": str(dates[-1].date())}
                for name, dates in self._dates_of_periods().items()
            },
            "held_out": {
                "verdict": self.held_out.verdict,
                "sentence": self.verdict.sentence,
                "gain_over_static": self.held_out.over_average.to_json(),
                "gain_over_graphical_lasso": self.held_out.over_lasso.to_json(),
                "months": len(self.held_out.months),
            },
            "averages": self._numbers_of_bands(),
            "rank_correlation_of_density_and_volatility": self._rank_correlation(),
            "fit_seconds": round(self.seconds["fit"], 2),
        }

    def _dates_of_periods(self) -> dict[str, Any]:
        found = {name: self.period.index[self.in_period(name)] for name in PERIODS}
        return {name: dates for name, dates in found.items() if len(dates)}

    def _numbers_of_bands(self) -> dict[str, dict[str, Any]]:
        """Cut, days, density and mean size of the average partial correlation, for high and normal days."""
        lines = self.averages.table.set_index("band")
        return {
            label: {
                "cut": self.cuts[label],
                "days": int(lines["n_rows"][label]),
                "density": float(lines["density"][label]),
                "mean_weight": float(lines["mean_weight"][label]),
            }
            for label in (HIGH, NORMAL)
        }

    def _rank_correlation(self) -> float:
        """Of density and volatility over the test days."""
        if "density" not in self.connectivity:
            return math.nan
        test = self.in_period("test")
        density, level = self.connectivity["density"][test], self.Z.loc[test, self.volatility]
        if density.nunique() < 2 or level.nunique() < 2:
            return math.nan
        return float(density.corr(level, method="spearman"))
