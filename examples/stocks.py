"""Do stocks move together more closely when markets are nervous?
==============================================================

Data: simulated prices of 15 stocks in three sectors over six years, an index, and a volatility index. When
volatility is high, stocks of one sector hang together, beyond what the index explains; this is what
the study has to find. Takes about 20 seconds on two cores. docs/finance.md has the same with real prices.
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

import graphfield as gf
from graphfield.studies import finance

parser = argparse.ArgumentParser(description="A network of stocks over time, beside volatility.")
parser.add_argument("--out", type=Path, default=Path("build/examples/stocks"))
out = parser.parse_args().out
out.mkdir(parents=True, exist_ok=True)

# 1. Simulate. Volatility rises and falls slowly, in per cent a year as VIX does.
rng = np.random.default_rng(4)
dates = pd.bdate_range("2016-01-01", "2021-12-31")
n, sectors = len(dates), {f"{name}{i}": name for name in ("BANK", "OIL", "TECH") for i in range(1, 6)}
level = np.zeros(n)
for t in range(1, n):
    level[t] = 0.96 * level[t - 1] + 0.3 * rng.normal()
vix = 10 + 30 / (1 + np.exp(1 - level))
market = vix / 100 / np.sqrt(252) * rng.normal(size=n)
# What the market does not explain is shared by the stocks of a sector: not at all where VIX is below 15.
shared = np.clip((vix - 15) / 15, 0, 1)
news = {name: rng.normal(size=n) for name in ("BANK", "OIL", "TECH")}
returns = {}
for ticker, sector in sectors.items():
    own = np.sqrt(shared) * news[sector] + np.sqrt(1.5 - shared) * rng.normal(size=n)
    returns[ticker] = rng.uniform(0.7, 1.3) * market + 0.008 * own
prices = 100 * np.exp(pd.DataFrame(returns, index=dates).cumsum())
index = pd.Series(1000 * np.exp(market.cumsum()), index=dates)

# 2. Returns without what the market explains. The betas of a day come from the year before it.
residuals = finance.residual_returns(prices, index)

# 3. Fit to two years, choose what there is to choose on the third, and judge on the last two, which the
#    fit has not seen. An edge counts where the partial correlation is above 0.1.
ordered = pd.Series(vix, index=dates)[residuals.index].sort_values().index
calm, nervous = ordered[10], ordered[-10]
study = finance.finance_study(
    residuals,
    pd.DataFrame({"VIX": vix}, index=dates),
    train_until="2018-12-31",
    valid_until="2019-12-31",
    sectors=sectors,
    days=[calm, nervous],
    estimator=gf.DNNCGM(random_state=0),
    threshold=0.1,
)
print("\n".join(study.sentences()))

# 4. Pictures; study.write(folder) writes them all, with tables and the model.
study.plot_connectivity(["density"])[0].figure.savefig(out / "connectivity.png", dpi=80)
study.plot_days()[0].figure.savefig(out / "days.png", dpi=80)
study.plot_averages()[0].figure.savefig(out / "averages.png", dpi=80)
