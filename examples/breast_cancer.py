"""Which relations between measurements of a tumour differ between benign and malignant ones?
==========================================================================================

Data: 569 tumours, ten kinds of measurements of their cell nuclei (scikit-learn's breast cancer data).
Nodes are measurements, the covariate is the diagnosis. Takes about 20 seconds on two cores.
"""

import argparse
from pathlib import Path

import pandas as pd
from sklearn.datasets import load_breast_cancer

import graphfield as gf
import graphfield.analysis as ask
from graphfield import plots

parser = argparse.ArgumentParser(description="Graphs of benign and of malignant tumours.")
parser.add_argument("--out", type=Path, default=Path("build/examples/breast_cancer"))
out = parser.parse_args().out
out.mkdir(parents=True, exist_ok=True)

# 1. The data: the mean of each measurement over the nuclei of a tumour, and how much four of them spread.
bunch = load_breast_cancer(as_frame=True)
X = bunch.data.filter(regex="^mean|^(radius|texture|smoothness|symmetry) error")
X.columns = [name.removeprefix("mean ").replace("error", "spread") for name in X.columns]
Z = pd.DataFrame({"diagnosis": bunch.target.map({0: "malignant", 1: "benign"})})

# 2. Does anything look wrong? Radius and perimeter are nearly copies, and the area follows from both:
#    an edge between them would show arithmetic, and hide what else they are related to.
for finding in gf.check_data(X, Z).warnings:
    print(f"{'Look' if finding.looks_wrong else 'Note'}: {finding.message}")
X = X.drop(columns=["perimeter", "area"])

# 3. Does the graph depend on the diagnosis at all? A test that needs no model.
evidence = gf.dependence_test(X, Z)
print(f"\n{evidence.verdict.capitalize()}. {evidence.sentence}")

# 4. Fit, and compare the two graphs.
model = gf.DNNCGM(random_state=0).fit(X, Z)
benign, malignant = {"diagnosis": "benign"}, {"diagnosis": "malignant"}
changes = ask.compare(model, benign, malignant).rename(columns={"first": "benign", "second": "malignant"})

# 5. How sure is each difference? The same comparison in 100 resamples of the tumours, by linear models:
#    they are quick, and with one yes/no covariate linear is all that there is. (They do not pull small
#    differences towards zero as the fit above does, so these standard errors are on the safe side.)
resampled = gf.Ensemble(estimator=gf.RegGMM(), n_members=100, resample=True, random_state=0).fit(X, Z)
errors = ask.compare(resampled, benign, malignant)[["source", "target", "standard_error"]]
changes = changes.merge(errors, on=["source", "target"])
print("\nPartial correlations that differ most:")
print(changes.head(8).round(2).to_string(index=False))

# 6. Pictures.
graphs = [ask.graph_at(model, z, threshold=None) for z in (benign, malignant)]
panels = plots.plot_difference(*graphs, labels=["benign", "malignant"])
panels[0].figure.savefig(out / "difference.png", dpi=80)
pairs = list(changes[["source", "target"]].head(6).itertuples(index=False, name=None))
curves = plots.plot_edge_curves(ask.edge_curves(model, "diagnosis", Z, pairs))
curves.figure.savefig(out / "edges.png", dpi=80)
