"""``graphfield finance``: from prices to the figures of a study of a network of stocks."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphfield.cli.options import folder_options, graph_options, model_options
from graphfield.cli.values import estimator_class, names, settings, threshold
from graphfield.cli.words import say
from graphfield.exceptions import DataError, ParameterError, listing, suggestion

if TYPE_CHECKING:
    import pandas as pd


def finance_parser(group: Any) -> None:
    p = group.add_parser("finance", help="stocks: from prices to graphs by market condition, with figures")
    p.add_argument(
        "prices", type=Path, metavar="PRICES", help="table of dates x tickers: adjusted closing prices"
    )
    p.add_argument("--returns", action="store_true", help="PRICES holds residual returns already")
    p.add_argument(
        "--index", metavar="NAME", help="the market: a column of PRICES or of the covariates, or a file"
    )
    p.add_argument(
        "--covariates",
        metavar="FILE,NAME,...",
        help="files of dates x covariates, or columns of PRICES (default: the return of the index alone)",
    )
    p.add_argument(
        "--returns-of",
        metavar="NAME,...",
        help="prices among the covariates that enter as daily returns (default: the index; '': none)",
    )
    p.add_argument("--volatility", metavar="NAME", help="covariate that tells calm from turbulent days")
    p.add_argument("--sectors", type=Path, metavar="FILE", help="table with the columns ticker and sector")
    p.add_argument("--train-until", required=True, metavar="DATE", help="last day of training")
    p.add_argument("--valid-until", metavar="DATE", help="last day of validation; later days are for testing")
    p.add_argument("--days", default="", metavar="DATE,...", help="days whose graphs are drawn")
    p.add_argument(
        "--event",
        action="append",
        default=[],
        metavar="DATE=TEXT",
        help="marked in figures over time; START:END=TEXT for a stretch; may be repeated",
    )
    p.add_argument("--start", metavar="DATE", help="first day of the study")
    p.add_argument("--end", metavar="DATE", help="last day of the study")
    p.add_argument("--lookback", type=int, default=252, help="days of a regression for beta (default 252)")
    p.add_argument(
        "--lag", type=int, default=1, help="days from its end to the day it is used for (default 1)"
    )
    p.add_argument("--kind", choices=("log", "simple"), default="log", help="log returns or relative changes")
    p.add_argument(
        "--max-missing", type=float, default=0.01, help="share of days a stock may lack (default 0.01)"
    )
    graph_options(p)
    p.add_argument("--model", choices=("dnncgm", "auto", "linear", "tree"), default="dnncgm")
    model_options(p)
    p.add_argument("--permutations", type=int, default=199, help="of the test of dependence; 0: no test")
    folder_options(p, help="folder for figures, tables and model")
    p.set_defaults(run=finance)


def finance(arguments: argparse.Namespace) -> None:
    from graphfield.plots import draw_to_files
    from graphfield.studies.finance import FinanceStudy, finance_study, read_dated, residual_returns

    draw_to_files()
    FinanceStudy.check_place(arguments.out, overwrite=arguments.force)
    estimator = _estimator(arguments)
    prices, covariates = _tables(arguments, read_dated(arguments.prices))
    if arguments.returns:
        returns = prices
    else:
        market = _market(arguments.index, prices, covariates, read_dated)
        covariates = _with_returns(arguments, covariates, market)
        returns = residual_returns(
            prices.drop(columns=arguments.index, errors="ignore"),
            market,
            lookback=arguments.lookback,
            lag=arguments.lag,
            returns=arguments.kind,
        )
        say(f"Residual returns of {returns.shape[1]} stocks on {len(returns):,} days.")
    study = finance_study(
        returns,
        covariates,
        train_until=arguments.train_until,
        valid_until=arguments.valid_until,
        volatility=arguments.volatility,
        sectors=arguments.sectors,
        days=names(arguments.days),
        events=_events(arguments.event),
        start=arguments.start,
        end=arguments.end,
        estimator=estimator,
        threshold=threshold(arguments.threshold),
        rule=arguments.rule,
        max_missing=arguments.max_missing,
        n_permutations=arguments.permutations,
    )
    written = study.write(arguments.out, overwrite=arguments.force)
    say("\n".join(study.sentences()))
    say(f"Wrote {', '.join(path.name for path in written)} to {arguments.out}.")


def _estimator(arguments: argparse.Namespace) -> Any:
    kind = estimator_class(arguments.model)
    seeded = {"random_state": arguments.seed} if "random_state" in kind.parameter_names() else {}
    return kind(**{**seeded, **settings(arguments.set, kind)})


def _tables(arguments: argparse.Namespace, prices: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Stocks (with the index where it is among them) and covariates, from files and columns."""
    import pandas as pd

    from graphfield.data.sources import looks_like_table
    from graphfield.studies.finance import read_dated

    parts, own = [], []
    for name in names(arguments.covariates or ""):
        if name in prices.columns:
            own.append(name)
        elif looks_like_table(name):
            parts.append(read_dated(name))
        else:
            raise DataError(
                f"--covariates: {name!r} is no column of {arguments.prices} and no file."
                f"{suggestion(name, prices.columns)} Columns are {listing(prices.columns)}."
            ).about(argument="covariates", column=name)
    covariates = pd.concat([prices[own], *parts], axis=1, sort=True)
    again = sorted(set(covariates.columns[covariates.columns.duplicated()]))
    if again:
        raise DataError(
            f"--covariates: {listing(again)} comes from more than one place. Rename it in one."
        ).about(argument="covariates", column=again[0])
    return prices.drop(columns=own), covariates


def _market(name: str | None, prices: pd.DataFrame, covariates: pd.DataFrame, read: Any) -> pd.Series:
    """The index, from wherever it is."""
    if name is None:
        raise ParameterError.of(
            "index", "must name the market index; add --returns where PRICES holds returns."
        )
    for table in (prices, covariates):
        if name in table.columns:
            return table[name]
    if not Path(name).is_file():
        known = [*prices.columns, *covariates.columns]
        raise DataError(
            f"--index: {name!r} is no column of the tables and no file.{suggestion(name, known)} Columns are "
            f"{listing(known)}."
        ).about(argument="index", column=name)
    table = read(name)
    if table.shape[1] != 1:
        raise DataError(
            f"--index: {name} must have one column of prices, got {listing(table.columns)}."
        ).about(argument="index")
    return table.iloc[:, 0].rename(Path(name).stem)


def _with_returns(arguments: argparse.Namespace, covariates: pd.DataFrame, market: pd.Series) -> pd.DataFrame:
    """Covariates in which prices are replaced by their daily returns, called ``return_NAME``."""
    import pandas as pd

    from graphfield.studies.finance import daily_returns

    wanted = [str(market.name)] if arguments.returns_of is None else names(arguments.returns_of)
    moves = []
    for name in wanted:
        if name in covariates.columns:
            prices = covariates[name]
        elif name == market.name:
            prices = market
        else:
            known = [*covariates.columns, str(market.name)]
            raise DataError(f"--returns-of: there is no covariate {name!r}.{suggestion(name, known)}").about(
                argument="returns_of", column=name
            )
        moves.append(daily_returns(prices.dropna(), arguments.kind).add_prefix("return_"))
    return pd.concat([*moves, covariates.drop(columns=wanted, errors="ignore")], axis=1, sort=True)


def _events(pairs: list[str]) -> dict[Any, str]:
    events: dict[Any, str] = {}
    for pair in pairs:
        when, equals, text = pair.partition("=")
        if not equals or not text.strip():
            raise ParameterError.of("event", f"expects DATE=TEXT or START:END=TEXT, got {pair!r}.")
        first, colon, last = when.partition(":")
        events[(first.strip(), last.strip()) if colon else first.strip()] = text.strip()
    return events
