"""Stocks: residual returns, no look-ahead, a market whose graph moves with VIX, and the command."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import graphfield as gf
from conftest import REAL_DATA
from graphfield.cli import main
from graphfield.studies.finance import (
    compare_with_static,
    daily_returns,
    dated_table,
    finance_study,
    residual_returns,
    rolling_beta,
)

SECTORS = {"A1": "a", "A2": "a", "A3": "a", "B1": "b", "B2": "b", "B3": "b"}
ROOT = Path(__file__).parents[2]


def price_table(n: int = 90, p: int = 4, seed: int = 0) -> pd.DataFrame:
    """Random walks that follow the market with different betas."""
    rng = np.random.default_rng(seed)
    market = 0.01 * rng.normal(size=n)
    steps = np.outer(market, np.linspace(0.5, 1.5, p)) + 0.01 * rng.normal(size=(n, p))
    days = pd.bdate_range("2020-01-01", periods=n)
    prices = pd.DataFrame(steps, index=days, columns=[f"S{j}" for j in range(p)]).assign(SPX=market)
    return 100 * np.exp(prices.cumsum())


def market_of_sectors(n: int = 1200, seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Residual returns of two sectors of three; the correlation within a sector rises with VIX."""
    rng = np.random.default_rng(seed)
    days = pd.bdate_range("2015-01-01", periods=n)
    vix = 12 + 40 * rng.beta(1, 3, n)
    share = np.clip((vix - 14) / 30, 0, 0.8)
    factors = np.repeat(rng.normal(size=(n, 2)), 3, axis=1)
    values = np.sqrt(share)[:, None] * factors + np.sqrt(1 - share)[:, None] * rng.normal(size=(n, 6))
    returns = pd.DataFrame(0.01 * values, index=days, columns=list(SECTORS))
    return returns, pd.DataFrame({"vix": vix, "return_spx": 0.01 * rng.normal(size=n)}, index=days)


@pytest.fixture(scope="module")
def study():
    returns, covariates = market_of_sectors()
    return finance_study(
        returns,
        covariates,
        train_until="2017-06-30",
        valid_until="2017-12-29",
        sectors=SECTORS,
        days=["2019-03-04", "2019-06-03"],
        events={"2018-06-01": "an event", ("2019-02-01", "2019-03-01"): "a stretch"},
        estimator=gf.DNNCGM(rank=3, max_steps=80, hidden_size=16, device="cpu", random_state=0),
        threshold=0.1,
        n_permutations=0,
    )


# -- residual returns -----------------------------------------------------------------------


def naive_residuals(prices, lookback, lag, fewest):
    """One regression per stock and day, by numpy's polyfit."""
    logs = np.log(prices)
    moves = (logs - logs.shift(1)).iloc[1:]
    market, stocks = moves["SPX"].to_numpy(), moves.drop(columns="SPX")
    found = pd.DataFrame(np.nan, index=stocks.index, columns=stocks.columns)
    for name in stocks:
        y = stocks[name].to_numpy()
        for t in range(lookback + lag - 1, len(y)):
            window = np.arange(t - lag - lookback + 1, t - lag + 1)
            known = window[np.isfinite(y[window])]
            if len(known) >= fewest:
                slope = np.polyfit(market[known], y[known], 1)[0]
                found.loc[stocks.index[t], name] = y[t] - slope * market[t]
    return found


@pytest.mark.parametrize("lag", [1, 3])
def test_residuals_equal_one_regression_per_stock_and_day(lag):
    prices = price_table()
    prices.iloc[[30, 31, 60], 1] = np.nan
    prices.iloc[:40, 2] = np.nan  # listed later
    found = residual_returns(prices, "SPX", lookback=20, lag=lag)
    expected = naive_residuals(prices, 20, lag, fewest=18)
    pd.testing.assert_frame_equal(
        found, expected.iloc[20 + lag - 1 :], rtol=1e-9, check_freq=False, check_names=False
    )
    # A missing price takes two returns, those of its day and of the next.
    assert found["S1"].isna().sum() >= 4
    assert found["S2"].first_valid_index() > prices.index[40 + 17]


@pytest.mark.parametrize("day", [40, 70, 89])
def test_no_residual_depends_on_a_later_price(day):
    prices = price_table()
    changed = prices.copy()
    changed.iloc[day:] *= np.random.default_rng(1).uniform(0.9, 1.1, changed.iloc[day:].shape)
    before, after = (residual_returns(table, "SPX", lookback=20) for table in (prices, changed))
    earlier = before.index < prices.index[day]
    assert earlier.any()
    pd.testing.assert_frame_equal(before[earlier], after[earlier], check_exact=True)


def test_the_beta_of_a_day_does_not_know_that_day():
    prices = price_table()
    moves = daily_returns(prices)
    changed = moves.copy()
    changed.iloc[50] += 0.5
    before, after = (
        rolling_beta(table.drop(columns="SPX"), table["SPX"], lookback=20) for table in (moves, changed)
    )
    pd.testing.assert_frame_equal(before.iloc[:51], after.iloc[:51], check_exact=True)
    assert (before.iloc[51] != after.iloc[51]).all()


def test_a_stock_that_follows_the_market_exactly_leaves_nothing():
    prices = price_table()[["SPX"]].assign(twice=lambda table: table["SPX"] ** 2)
    assert np.abs(residual_returns(prices, "SPX", lookback=20)).to_numpy().max() < 1e-12


def test_returns_are_logarithms_or_relative_changes_and_free_of_units():
    prices = price_table()
    logs, simple = daily_returns(prices), daily_returns(prices, "simple")
    np.testing.assert_allclose(simple, prices.pct_change().iloc[1:], rtol=1e-9)
    np.testing.assert_allclose(np.log1p(simple), logs, rtol=1e-9)
    scaled = residual_returns(1000 * prices, "SPX", lookback=20)
    np.testing.assert_allclose(scaled, residual_returns(prices, "SPX", lookback=20), atol=1e-12)


def test_any_container_and_order_gives_the_same_residuals(tmp_path):
    prices = price_table()
    expected = residual_returns(prices, "SPX", lookback=20)
    shuffled = prices.sample(frac=1, random_state=0)
    text = shuffled.rename_axis("Date").reset_index().assign(Date=lambda t: t["Date"].dt.strftime("%Y-%m-%d"))
    aware = prices.tz_localize("America/New_York")
    for table in (shuffled, text, aware):
        pd.testing.assert_frame_equal(residual_returns(table, "SPX", lookback=20), expected, check_freq=False)
    apart = residual_returns(prices.drop(columns="SPX"), prices["SPX"], lookback=20)
    pd.testing.assert_frame_equal(apart, expected)


def test_days_without_a_price_of_the_index_are_left_out_with_a_warning():
    prices = price_table()
    without = prices.drop(index=prices.index[50])
    gap = prices.copy()
    gap.iloc[50, -1] = np.nan
    with pytest.warns(gf.DataWarning, match="none of the index, are left out: 1, the first on"):
        found = residual_returns(gap, "SPX", lookback=20)
    pd.testing.assert_frame_equal(found, residual_returns(without, "SPX", lookback=20), check_freq=False)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.assign(S1=np.where(t.index == t.index[5], 0.0, t["S1"])), "'S1' has 0 on 2020-01-08"),
        (lambda t: pd.concat([t, t.iloc[[3]]]), "more than once, the first on 2020-01-06"),
        (lambda t: t.assign(S1=t["S1"].astype(object).where(t.index != t.index[2], "n/a")), "has 'n/a' on"),
        (lambda t: t.reset_index(drop=True), "has no dates"),
        (lambda t: t.set_index(t.index.strftime("%d/%m/%Y")), "dates written as 2020-03-16"),
        (lambda t: t.drop(columns="SPX"), "no column 'SPX' for the index"),
        (lambda t: t[["SPX"]], "no stocks beside the index"),
        (lambda t: t.iloc[:21], "needs at least 22 dates with prices, got 21"),
        (lambda t: t.assign(SPX=100.0), "index does not move"),
        (lambda t: pd.concat({"Close": t}, axis=1), "columns of several levels"),
        (lambda t: t.set_axis(["Open", "High", "Low", "Close", "SPX"], axis=1), "of one stock"),
        (lambda t: t.set_axis(["S0", "S0", "S2", "S3", "SPX"], axis=1), "more than one column called 'S0'"),
    ],
)
def test_prices_that_cannot_be_used_are_refused(change, message):
    with pytest.raises(gf.DataError, match=message):
        residual_returns(change(price_table()), "SPX", lookback=20)


def test_a_split_that_was_not_adjusted_for_is_noticed():
    prices = price_table()
    prices.iloc[60:, 0] /= 2
    with pytest.warns(gf.DataWarning, match=r"Prices of 'S0' .* as they do at a split"):
        residual_returns(prices, "SPX", lookback=20)


@pytest.mark.parametrize("options", [{"lag": 0}, {"lookback": 2}, {"min_share": 0}, {"returns": "logs"}])
def test_settings_that_make_no_sense_are_refused(options):
    with pytest.raises(gf.ParameterError):
        residual_returns(price_table(), "SPX", **{"lookback": 20, **options})


# -- the study ------------------------------------------------------------------------------


def test_sector_mates_are_closer_when_vix_is_high(study):
    within = study.pairs.query("same_sector")
    across = study.pairs.query("not same_sector")
    assert (within["difference"] > 0).all()
    assert within["difference"].mean() > 0.15
    assert across["difference"].abs().mean() < within["difference"].mean() / 3
    assert (
        study.averages.density[study.averages.labels.index("high")]
        > study.averages.density[study.averages.labels.index("normal")]
    )
    assert study.connectivity["within"].corr(study.Z["vix"], method="spearman") > 0.8


def test_a_graph_that_varies_predicts_later_days_better_where_it_does(study):
    assert study.held_out.verdict == "better"
    assert study.verdict.supported
    assert study.sentences()[0] == study.verdict.paragraph
    assert study.held_out.gain > 0.02


def test_no_gain_where_the_graph_does_not_vary():
    returns, covariates = market_of_sectors(600, seed=3)
    rng = np.random.default_rng(0)
    covariates["vix"] = rng.permutation(covariates["vix"].to_numpy())
    found = finance_study(
        returns, covariates, train_until="2016-02-01", estimator=gf.RegGMM(), threshold=0.1, n_permutations=0
    )
    assert found.held_out.verdict in ("no clear difference", "worse")
    assert found.verdict.supported is False


def test_a_static_graph_is_its_own_average():
    returns, covariates = market_of_sectors(300)
    X, Z, X_test, Z_test = returns[:200], covariates[:200], returns[200:], covariates[200:]
    found = compare_with_static(gf.GraphicalLasso().fit(X, Z), X, Z, X_test, Z_test)
    assert abs(found.gain) < 1e-6
    assert abs(found.gain_over_lasso) < 1e-6
    assert found.months["days"].sum() == 100


def test_the_gains_are_shares_of_squared_error(study):
    """Against the predictions of the model and of two static graphs, by hand."""
    test, train = study.period == "test", study.period == "train"
    X, Z, model = study.X[test], study.Z[test], study.model
    assert not model.mean_depends_on_covariates_
    assert model.marginals_ == "raw"
    lasso = gf.GraphicalLasso().fit(study.X[train], study.Z[train]).predict(X, Z)
    mean = study.X[train].to_numpy().mean(axis=0)
    average = mean + (X.to_numpy() - mean) @ model.predict_coef(study.Z[train]).mean(axis=0).T
    own = ((X - average).to_numpy() ** 2).mean(axis=0)
    varying, other = (((X - fitted).to_numpy() ** 2).mean(axis=0) for fitted in (model.predict(X, Z), lasso))
    assert study.held_out.gain == pytest.approx((1 - varying / own).mean(), abs=1e-5)
    assert study.held_out.gain_over_lasso == pytest.approx(((other - varying) / own).mean(), abs=1e-5)
    months = study.held_out.months
    weighted = months["varying"].mul(months["days"]).sum() / len(X)
    assert weighted == pytest.approx(1 - study.held_out.gain)


def test_periods_and_cuts(study):
    bounds = study.period.index[study.period != study.period.shift()]
    assert [str(day.date()) for day in bounds[1:]] == ["2017-07-03", "2018-01-01"]
    test = study.Z.loc[study.period == "test", "vix"]
    assert study.cuts == pytest.approx({"high": test.quantile(0.9), "normal": test.median()})
    counts = dict(zip(study.averages.labels, study.averages.n_rows, strict=True))
    assert counts == {
        "high": (test > study.cuts["high"]).sum(),
        "normal": (test < study.cuts["normal"]).sum(),
    }


def test_chosen_days_are_the_graphs_of_the_model(study):
    rows = study.Z.loc[["2019-03-04", "2019-06-03"]]
    expected = study.model.partial_correlations(rows) * study.model.predict_graph(rows, threshold=0.1)
    np.testing.assert_allclose(study.days.matrices, expected, atol=1e-6)
    for day, part in study.edges.groupby("date"):
        graph = expected[study.days.labels.index(day)]
        assert len(part) == np.count_nonzero(np.triu(graph))


@pytest.mark.filterwarnings("ignore::graphfield.ExtrapolationWarning")
def test_stocks_listed_later_and_days_with_gaps_are_left_out_and_named():
    returns, covariates = market_of_sectors(400)
    returns.iloc[:100, 0] = np.nan
    returns.iloc[[150, 160], 1] = np.nan
    covariates = covariates.drop(index=covariates.index[200])
    options = {"train_until": "2015-12-31", "estimator": gf.RegGMM(), "threshold": 0.1, "n_permutations": 0}
    with pytest.warns(gf.DataWarning) as caught:
        found = finance_study(returns, covariates, **options, sectors=SECTORS)
    assert list(found.X.columns) == list(SECTORS)[1:]
    assert list(found.sectors) == list(SECTORS)[1:]
    assert len(found.X) == 397
    assert found.notes == tuple(str(w.message) for w in caught)
    assert "left out: 'A1'" in found.notes[0]
    with pytest.warns(gf.DataWarning):
        later = finance_study(returns, covariates, **options, start=returns.index[100])
    assert list(later.X.columns) == list(SECTORS)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"train_until": "2030-01-01"}, "test period has 0 days"),
        ({"train_until": "2015-01-05"}, "train period has 3 days"),
        ({"train_until": "soon"}, "train_until must be a date"),
        ({"valid_until": "2015-06-01"}, "must not be before train_until"),
        ({"days": ["2016-01-02"]}, "nearest are 2016-01-01 and 2016-01-04"),
        ({"volatility": "VIX"}, "Did you mean 'vix'"),
        ({"sectors": {"A1": "a"}}, "lacks 'A2'"),
        ({"estimator": "dnncgm"}, "must be a graphfield estimator"),
        ({"high": 0.4}, "must not be below normal"),
        ({"events": {"yesterday": "x"}}, "date of an event must be a date"),
    ],
)
def test_studies_that_make_no_sense_are_refused(options, message):
    returns, covariates = market_of_sectors(400)
    with pytest.raises(gf.GraphfieldError, match=message):
        finance_study(
            returns,
            covariates,
            **{"train_until": "2015-12-31", "estimator": gf.RegGMM(), "n_permutations": 0, **options},
        )


def test_a_missing_vix_asks_for_the_name_of_the_volatility():
    returns, covariates = market_of_sectors(400)
    with pytest.raises(gf.ParameterError, match="none has 'vix' in the name"):
        finance_study(returns, covariates[["return_spx"]], train_until="2015-12-31")


def test_figures_have_names_dates_and_events(study):
    plt = pytest.importorskip("matplotlib.pyplot")
    over_time = study.plot_connectivity()
    texts = {text.get_text() for axis in over_time for text in axis.texts}
    assert {"an event", "a stretch", "test", "validation"} <= texts
    assert over_time[-1].get_ylabel() == "vix"
    averages = study.plot_averages()
    assert {"a", "b"} <= {text.get_text() for axis in averages for text in axis.texts}
    days = study.plot_days()
    assert days[1].get_title().startswith("2019-06-03\nvix ")
    beside = study.plot_beside("within")
    assert beside.get_figure().axes[1].get_ylabel() == "vix"
    plt.close("all")


def test_a_model_without_edges_says_so_everywhere():
    plt = pytest.importorskip("matplotlib.pyplot")
    rng = np.random.default_rng(0)
    days = pd.bdate_range("2015-01-01", periods=300)
    returns = pd.DataFrame(0.01 * rng.normal(size=(300, 6)), index=days, columns=list(SECTORS))
    covariates = pd.DataFrame({"vix": rng.uniform(10, 40, 300)}, index=days)
    options = {"train_until": "2015-08-31", "sectors": SECTORS, "n_permutations": 0, "days": ["2016-01-04"]}
    found = finance_study(returns, covariates, estimator=gf.RegGMM(), threshold=0.9, **options)
    assert not found.has_edges
    no_edge = "he model found no edge: no |partial correlation| above 0.9"
    assert f"T{no_edge} on any day" in "\n".join(found.sentences())
    over_time = found.plot_connectivity()
    assert no_edge in over_time[0].get_title()
    assert all(axis.get_ylim()[0] >= -0.01 for axis in over_time[:-1])
    assert "not defined on any day" in {text.get_text() for text in over_time[3].texts}
    assert over_time[3].get_ylabel() == "modularity of the\nsectors"
    assert no_edge in found.plot_beside().get_title()
    assert no_edge in found.plot_against().get_title()
    for axes in (found.plot_days(), found.plot_averages()):
        assert no_edge in axes[0].figure.get_suptitle()
    plt.close("all")


# -- the command ----------------------------------------------------------------------------

FAST = ["--set", "rank=2", "--set", "max_steps=30", "--set", "hidden_size=8", "--set", "device=cpu"]
FILES = [
    "against_volatility.png",
    "averages.png",
    "beside_volatility.png",
    "connectivity.csv",
    "connectivity.png",
    "days.png",
    "edges.csv",
    "held_out_by_month.csv",
    "model",
    "pairs.csv",
    "residuals.csv",
    "summary.json",
]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    pytest.importorskip("matplotlib")
    folder = tmp_path_factory.mktemp("finance")
    returns, covariates = market_of_sectors(500)
    market = 0.01 * np.random.default_rng(5).normal(size=500)
    prices = 50 * np.exp((returns.add(market, axis=0)).cumsum())
    prices.assign(SPX=3000 * np.exp(market.cumsum())).rename_axis("Date").to_csv(folder / "prices.csv")
    covariates[["vix"]].rename_axis("Date").to_csv(folder / "vix.csv")
    pd.Series(SECTORS, name="sector").rename_axis("ticker").to_csv(folder / "sectors.csv")
    returns.join(covariates).rename_axis("date").to_csv(folder / "returns.csv")
    return folder


def command(files, *more):
    dates = ["--train-until", "2016-06-30", "--valid-until", "2016-08-31", "--threshold", "0.05"]
    return [*map(str, more), *dates, "--sectors", str(files / "sectors.csv"), "--permutations", "0", *FAST]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::graphfield.ExtrapolationWarning")
def test_one_command_from_prices_to_figures(files, tmp_path, capsys):
    out = tmp_path / "out"
    arguments = command(files, "finance", files / "prices.csv", "--index", "SPX", "--out", out)
    arguments += ["--covariates", str(files / "vix.csv"), "--lookback", "100", "--days", "2016-11-01"]
    arguments += ["--event", "2016-06-24=Brexit", "--event", "2016-11-07:2016-11-09=Election"]
    assert main(arguments) == 0
    assert sorted(path.name for path in out.iterdir()) == FILES
    summary = json.loads((out / "summary.json").read_text())
    assert summary["covariates"] == ["return_SPX", "vix"]
    assert summary["summary"] in capsys.readouterr().out
    prices = pd.read_csv(files / "prices.csv", index_col=0, parse_dates=True)
    residuals = pd.read_csv(out / "residuals.csv", index_col=0, parse_dates=True)
    expected = residual_returns(prices, "SPX", lookback=100)
    pd.testing.assert_frame_equal(residuals, expected, check_freq=False, check_names=False)
    model = gf.load(out / "model")
    assert model.covariate_names_ == ["return_SPX", "vix"]
    day = pd.read_csv(out / "connectivity.csv", index_col=0).loc["2016-11-01"]
    edges = pd.read_csv(out / "edges.csv")
    assert len(edges) == round(day["density"] * 15)
    assert main(arguments) == 2  # nothing is replaced without --force
    assert "already exists" in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore::graphfield.ExtrapolationWarning")
@pytest.mark.slow
def test_returns_that_are_adjusted_already_are_taken_as_they_are(files, tmp_path):
    out = tmp_path / "out"
    arguments = command(files, "finance", files / "returns.csv", "--returns", "--out", out)[: -len(FAST)]
    assert main([*arguments, "--covariates", "vix,return_spx", "--model", "linear"]) == 0
    residuals = pd.read_csv(out / "residuals.csv", index_col=0)
    assert list(residuals.columns) == list(SECTORS)
    assert len(residuals) == 500
    assert not (out / "days.png").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--covariates", "VIX"], "'VIX' is no column"),
        (["--index", "SPXX"], "Did you mean 'SPX'?"),
        ([], "--index must name the market index"),
        (["--index", "SPX", "--returns-of", "NDX"], "--returns-of: there is no covariate 'NDX'"),
        (["--index", "SPX", "--event", "Brexit"], "--event expects DATE=TEXT"),
        (["--index", "SPX", "--set", "max_stepz=3"], "Did you mean 'max_steps'?"),
        (["--index", "SPX", "--sectors", "REGIONS"], "regions.csv' must have the columns ticker and sector"),
        (["--index", "SPX", "--sectors", "REGIONS"], "Its columns are 'region', 'network'"),
    ],
)
def test_bad_input_is_one_line(files, tmp_path, capsys, options, message):
    out = tmp_path / "out"
    arguments = command(files, "finance", files / "prices.csv", "--out", out, "--lookback", "100")
    pd.DataFrame({"region": ["R0"], "network": ["visual"]}).to_csv(tmp_path / "regions.csv", index=False)
    options = [str(tmp_path / "regions.csv") if option == "REGIONS" else option for option in options]
    assert main([*arguments, "--covariates", str(files / "vix.csv"), *options]) == 2
    error = capsys.readouterr().err
    assert len(error.strip().splitlines()) == 1
    assert message in error
    assert not out.exists()


# -- real prices ----------------------------------------------------------------------------


def shipped(package: str, path: str) -> pd.DataFrame:
    """A table that a package ships, read without importing the package and all that it needs."""
    spec = importlib.util.find_spec(package)
    file = None if spec is None else Path(next(iter(spec.submodule_search_locations or [""]))) / path
    if file is None or not file.is_file():
        pytest.skip(f"needs the data that {package} ships")
    table = pd.read_csv(file)
    dates = pd.to_datetime(table["Date"], format="mixed")
    return table.drop(columns="Date").set_index(pd.DatetimeIndex(dates))


def test_real_prices_of_twenty_stocks():
    """What the rolling betas leave has little to do with the market any more."""
    stocks = shipped("skfolio", "datasets/data/sp500_dataset.csv.gz").loc["2014":"2019"]
    index = shipped("skfolio", "datasets/data/sp500_index.csv.gz").loc["2014":"2019"]
    residuals = residual_returns(stocks, index)
    assert len(residuals) == len(stocks) - 253
    moves, market = daily_returns(stocks), daily_returns(index).iloc[:, 0].loc[residuals.index]
    raw = moves.loc[residuals.index].corrwith(market).abs()
    left = residuals.corrwith(market).abs()
    assert raw.min() > 0.3
    assert left.mean() < 0.1


def test_a_study_of_real_prices_and_vix():
    stocks = shipped("skfolio", "datasets/data/sp500_dataset.csv.gz").loc["2013":]
    index = shipped("skfolio", "datasets/data/sp500_index.csv.gz")
    vix = pd.to_numeric(shipped("arch", "data/vix/vix.csv.gz")["vix"], errors="coerce").dropna()
    found = finance_study(
        residual_returns(stocks, index).loc["2014-01-03":"2018"],
        vix,
        train_until="2016-12-30",
        estimator=gf.RegGMM(),
        threshold=0.1,
        n_permutations=0,
    )
    assert found.X.shape == (1257, 20)
    assert found.held_out.verdict != "better"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::graphfield.ThresholdWarning", "ignore::graphfield.ExtrapolationWarning")
def test_the_stocks_of_the_paper_are_denser_at_high_vix_but_later_days_do_not_confirm_it():
    folder = REAL_DATA
    path = folder / "sp100_2001_2023.npz"
    if not path.is_file():
        pytest.skip("needs the data of the paper's study of stocks")
    table = dated_table(gf.read_table(path))
    names = ["return_spx", "return_nasdaq", "vix"]
    returns, vix = table.drop(columns=names), table["vix"]
    high = np.flatnonzero(vix > vix.quantile(0.9))
    normal = np.flatnonzero(vix < vix.median())
    normal = np.random.default_rng(0).choice(normal, len(high), replace=False)
    counts = [
        len(
            gf.GraphicalLasso(penalty="ebic")
            .fit(returns.iloc[rows], vix.iloc[rows].to_frame())
            .edges([[0.0]], None)
        )
        for rows in (high, normal)
    ]
    assert counts[0] > 1.5 * counts[1]
    found = finance_study(
        returns,
        table[names],
        train_until="2017-12-31",
        valid_until="2019-12-31",
        estimator=gf.DNNCGM(rank=8, random_state=0),
        n_permutations=0,
    )
    assert len(found.X) == 5785
    assert found.held_out.verdict != "better"
    assert abs(found.held_out.gain_over_lasso) < 0.01
