"""How do individual differences modulate the strength of edges?
=============================================================

Data: answers of 2,000 simulated people to eight scales of a questionnaire, with their age and sex. One edge
is strongest in middle age, one is there for women only, the others are the same for all: so we can see
whether the answers are right. Takes about half a minute on two cores.
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

import graphfield as gf
import graphfield.analysis as ask
from graphfield import plots

parser = argparse.ArgumentParser(description="Edges that depend on age and on sex.")
parser.add_argument("--out", type=Path, default=Path("build/examples/individual_differences"))
out = parser.parse_args().out
out.mkdir(parents=True, exist_ok=True)

# 1. Simulate. Each person has a partial correlation matrix of their own, and scores from 0 to 40.
rng = np.random.default_rng(0)
n = 2000
scales = ["worry", "mood", "sleep", "energy", "focus", "social", "pain", "appetite"]
Z = pd.DataFrame({"age": rng.uniform(18, 80, n).round(1), "sex": rng.choice(["woman", "man"], n)})
partial = np.zeros((n, 8, 8))


def add_edge(first, second, strength):
    j, k = scales.index(first), scales.index(second)
    partial[:, j, k] = partial[:, k, j] = strength


add_edge("sleep", "mood", 0.45 * (1 - ((Z["age"] - 49) / 31) ** 2))  # an inverted U: none at 18 and at 80
add_edge("worry", "focus", np.where(Z["sex"] == "woman", -0.4, 0.0))
for first, second in [("worry", "mood"), ("sleep", "energy"), ("energy", "social"), ("pain", "appetite")]:
    add_edge(first, second, 0.25)
noise = np.linalg.cholesky(np.linalg.inv(np.eye(8) - partial)) @ rng.normal(size=(n, 8, 1))
X = pd.DataFrame((20 + 6 * noise[:, :, 0]).round().clip(0, 40), columns=scales)

# 2. Does the graph depend on age and sex? Each is tested given the other.
print(gf.dependence_test(X, Z))

# 3. Fit. Nothing is said about which edges vary, or along what kind of curve.
model = gf.DNNCGM(random_state=0).fit(X, Z)

# 4. Which edges vary most from person to person, and what drives them?
varying = ask.varying_edges(model, Z, threshold=0.1)
print("\nEdges that vary most:")
print(varying.head(4).round(2).to_string(index=False))
drivers = ask.edge_drivers(model, Z, most=4)
print("\nShare of the variation that each covariate drives, with all that it does (total):")
print(drivers.pivot_table(index=["source", "target"], columns="covariate", values="total").round(2))

# 5. The curves, against the truth.
edges = [("mood", "sleep"), ("worry", "focus"), ("energy", "social")]
over_age = ask.edge_curves(model, "age", Z, edges)
found = over_age.query("source == 'mood'").set_index("value").partial_correlation
print("\nmood - sleep by age (truth in brackets):")
for age in (20, 35, 50, 65, 78):
    truth = 0.45 * (1 - ((age - 49) / 31) ** 2)
    print(f"  {age}: {np.interp(age, found.index, found):.2f} ({truth:.2f})")

# 6. Pictures; in one of them the graph of women moves along age.
plots.plot_edge_curves(over_age).figure.savefig(out / "over_age.png", dpi=80)
plots.plot_edge_curves(ask.edge_curves(model, "sex", Z, edges)).figure.savefig(out / "by_sex.png", dpi=80)
plots.plot_drivers(drivers).figure.savefig(out / "drivers.png", dpi=80)
ages = range(18, 81, 2)
women = [ask.graph_at(model, {"age": age, "sex": "woman"}) for age in ages]
plots.save_moving_network(out / "over_age.gif", women, [f"women of {age}" for age in ages])
