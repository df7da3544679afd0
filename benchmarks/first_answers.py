"""The first answer to a person with a table: check, test, fit, verdict; and whether its numbers hold outside.

    .venv/bin/python benchmarks/first_answers.py --data FOLDER [--only nhanes,sachs] [--rows 200,1000]
        [--seeds 1] [--model dnncgm] [--members N] [--steps N] [--jobs 1]
        [--out FILE.json]

FOLDER holds the tables that docs/results/real_data.md names, and mixed/*.csv; they are not part of this
repository. One row per table, number of rows and seed (a random subsample): p of the permutation test; gain
over the model's own average graph, over the best single graph, and the share of variance that the other
nodes explain, each as claimed by ``gain_over_one_graph`` (with its standard error), then by five outside
folds with other rows and other seeds, and, where rows are left, as the model that was fitted to the subsample
gains on these. "null" has covariates exchanged between rows. --steps makes the networks quick; --members
judges ensembles on drawn rows: their claims are those of single fits, the rest that of all members. At the
end, how often a claim is within two standard errors of each of the two, and how often one that is called
clear is of the right sign on the rows that are left.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
from real_data import load
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, KFold

import graphfield as gf
from graphfield.data.frames import Frame
from graphfield.estimators.held_out import HeldOut
from graphfield.inference.unseen_rows import Predicted, explained_share
from graphfield.inference.verdict import Fitted, reach_verdict

Table = tuple[pd.DataFrame, pd.DataFrame, Any]
MOST_OTHER = 4_000  # rows outside of a subsample that a model is judged on
PERMUTATIONS = 199


def nhanes(folder: Path) -> Table:
    X, Z = load(folder, "nhanes_biomarkers")
    return complete(X, Z[["age", "bmi", "sex"]])


def null(folder: Path) -> Table:
    X, Z, _ = nhanes(folder)
    return X, Z.iloc[np.random.default_rng(1).permutation(len(Z))].reset_index(drop=True), None


def sachs(folder: Path) -> Table:
    X, Z = load(folder, "sachs")
    return complete(np.log(X), Z)


def beijing(folder: Path) -> Table:
    X, Z = load(folder, "beijing_air")
    return complete(np.log1p(X.iloc[:, :24]), Z[["temp", "wspm"]])


def abide(folder: Path) -> Table:
    X, Z = load(folder, "abide_nyu_cc200")
    with np.load(folder / "abide_nyu_cc200.npz", allow_pickle=False) as file:
        unit = file["unit"]
    some = np.arange(len(X)) % 3 == 0  # of the scans of a subject
    X, Z, _ = complete(X[some].iloc[:, :200:10], Z[some][["age", "mean_fd", "sex"]])
    return X, Z, unit[some]


def moderated(folder: Path) -> Table:
    table = pd.read_csv(folder / "mixed" / "moderated_gaussian.csv")
    return complete(table.iloc[:, :12], table[["V13"]])


def proteins(folder: Path) -> Table:
    table = pd.read_csv(folder / "mixed" / "pam50_proteins.csv")
    kinds = ["basal_like", "her2_enriched", "luminal_ab"]
    return complete(table.drop(columns=kinds).iloc[:, :40], table[kinds])


def dass(folder: Path) -> Table:
    table = pd.read_csv(folder / "mixed" / "dass.csv")
    items = [name for name in table.columns if name.startswith("dass")][:20]
    # The last columns before the sums: age is the only number among them.
    return complete(table[items].astype(float), table.loc[:, ["age", "gender"]].dropna())


def workaholic(folder: Path) -> Table:
    table = pd.read_csv(folder / "mixed" / "workaholic.csv", low_memory=False)
    numbers = table.select_dtypes("number")
    items = [name for name in numbers.columns if numbers[name].nunique() in (4, 5)][:20]
    return complete(numbers[items].astype(float), table[["Gender", "Age"]])


def groups3(folder: Path) -> Table:
    table = pd.read_csv(folder / "mixed" / "group_mixed.csv")
    return complete(table.drop(columns="x7").astype(float), table[["x7"]].astype(str))


TABLES: dict[str, Callable[[Path], Table]] = {
    f.__name__: f
    for f in (nhanes, null, sachs, beijing, abide, moderated, proteins, dass, workaholic, groups3)
}


def complete(X: pd.DataFrame, Z: pd.DataFrame) -> Table:
    both = X.join(Z, how="inner", lsuffix="_x").replace([np.inf, -np.inf], np.nan).dropna()
    both = both.reset_index(drop=True)
    return both.iloc[:, : X.shape[1]], both.iloc[:, X.shape[1] :], None


def subsample(table: Table, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Positions of n rows (whole groups, about n rows) and of others."""
    X, _, groups = table
    rng = np.random.default_rng(seed)
    if groups is None:
        order = rng.permutation(len(X))
        return np.sort(order[:n]), np.sort(order[n : n + MOST_OTHER])
    names = rng.permutation(np.unique(groups))
    size = max(12, round(n * len(names) / len(X)))
    return np.flatnonzero(np.isin(groups, names[:size])), np.flatnonzero(np.isin(groups, names[size:]))


def predicted(model: Any, X: pd.DataFrame, Z: pd.DataFrame, rows: np.ndarray, train: np.ndarray) -> Any:
    """Node values as the model takes them, and what its means, it and its average graph leave of them."""
    field, values = model.field_, X.to_numpy()[rows]
    if field.schema.scores is not None:
        values, field = field.schema.scores.transform(values), field.with_scores(None)
    held_out = HeldOut(values, Frame(Z.iloc[rows].reset_index(drop=True), True), rows)
    average = held_out.residuals_of_average(field, Frame(Z.iloc[train].reset_index(drop=True), True))
    alone = held_out.residuals_with(field, np.zeros((values.shape[1],) * 2))
    return held_out.values, alone, held_out.residuals(field), average


def outside(parts: list[Any]) -> tuple[float, float]:
    """Gain over the own average, and the share of variance explained, of predicted rows."""
    values, alone, own, average = (np.concatenate(column) for column in zip(*parts, strict=True))
    units = np.arange(len(values))
    predicted = Predicted(values, alone, own, average, {}, units, np.zeros(len(values), dtype=np.intp))
    return predicted.over(average).value, explained_share(predicted.unconnected, own, units).value


def outside_folds(model: Any, X: pd.DataFrame, Z: pd.DataFrame, groups: Any) -> tuple[float, float]:
    splitter = KFold(5, shuffle=True, random_state=77) if groups is None else GroupKFold(5)
    parts = []
    for train, rows in splitter.split(X, groups=groups):
        copy = clone(model)
        changed = {"unknown": "average", "random_state": 1_000 + len(parts)}
        copy.set_params(**{k: v for k, v in changed.items() if k in copy.get_params()})
        copy.fit(X.iloc[train], Z.iloc[train], groups=None if groups is None else groups[train])
        parts.append(predicted(copy, X, Z, rows, train))
    return outside(parts)


@dataclass(frozen=True)
class Answer:
    """The line of a table, what was claimed, and what five folds and rows that are left say."""

    line: str
    facts: dict[str, Any]
    gain: gf.ModelGain
    folds: tuple[float, float]
    rest: tuple[float, float]


def answer(name: str, folder: Path, n: int, seed: int, model: Any) -> Answer:
    warnings.simplefilter("ignore")
    table = TABLES[name](folder)
    rows, other = subsample(table, n, seed)
    X, Z = (part.iloc[rows].reset_index(drop=True) for part in table[:2])
    groups = None if table[2] is None else table[2][rows]
    found = gf.check_data(X, Z, groups)
    evidence = gf.dependence_test(X, Z, groups=groups, n_permutations=PERMUTATIONS)
    start = time.process_time()
    fitted = clone(model).fit(X, Z, groups=groups)
    fit_seconds = time.process_time() - start
    start = time.process_time()
    gain = gf.gain_over_one_graph(model, X, Z, groups=groups)
    gain_seconds = time.process_time() - start
    said = reach_verdict(Fitted.of(fitted, Z), gain, evidence)
    folds = outside_folds(model, X, Z, groups)
    rest = (np.nan, np.nan)
    if len(other) >= 200:
        known = Z.iloc[: len(Z)]
        both = pd.concat([X, table[0].iloc[other]], ignore_index=True)
        covariates = pd.concat([known, table[1].iloc[other]], ignore_index=True)
        fitted.encoder_.unknown = "average"
        rest = outside([predicted(fitted, both, covariates, np.arange(len(X), len(both)), np.arange(len(X)))])
    p = "  -  " if evidence.p_value is None else f"{evidence.p_value:.3f}"
    line = (
        f"{name:10s} {len(X):5d} x {X.shape[1]:3d} seed {seed}  warnings {len(found.warnings)}  p {p}  "
        f"gain {percent(gain.over_average)} folds {100 * folds[0]:+6.2f} rest {100 * rest[0]:+6.2f}  "
        f"static {percent(gain.over_static)}  R2 {percent(gain.explained)} folds {100 * folds[1]:5.1f} "
        f"rest {100 * rest[1]:5.1f}  fit {fit_seconds:.0f} s, gain {gain_seconds:.0f} s  {said.answer}\n"
        f"    {said}"
    )
    facts = {
        "table": name,
        "rows": len(X),
        "seed": seed,
        "p_value": evidence.p_value,
        "gain": gain.to_json(),
        "folds": folds,
        "rest": None if np.isnan(rest[0]) else rest,
        "answer": said.answer,
        "seconds": {"fit": fit_seconds, "gain": gain_seconds},
    }
    return Answer(line, facts, gain, folds, rest)


def summed_up(answers: list[Answer]) -> str:
    lines = []
    for what, number in (("gain", 0), ("share explained", 1)):
        for beside in ("folds", "rest"):
            pairs = [
                (one.gain.over_average if number == 0 else one.gain.explained, getattr(one, beside)[number])
                for one in answers
            ]
            known = [(claim, value) for claim, value in pairs if np.isfinite(value)]
            near = sum(abs(claim.value - value) <= 2 * claim.standard_error + 1e-6 for claim, value in known)
            lines.append(f"{what}: within two standard errors of the {beside} in {near} of {len(known)}")
    clear = [one for one in answers if one.gain.over_average.is_clear and np.isfinite(one.rest[0])]
    right = sum(one.rest[0] > 0 for one in clear)
    return "\n".join([*lines, f"called clear: {len(clear)}, of which {right} gain on the rows that are left"])


def percent(gain: Any) -> str:
    return f"{100 * gain.value:+6.2f} ± {100 * gain.standard_error:4.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--only", default=",".join(TABLES))
    parser.add_argument("--rows", default="200,1000")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--model", choices=("dnncgm", "linear", "tree"), default="dnncgm")
    parser.add_argument("--members", type=int, default=1)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, help="a JSON file for all answers")
    options = parser.parse_args()
    models: dict[str, Any] = {
        "dnncgm": gf.DNNCGM(rank=8 if options.steps else "auto", max_steps=options.steps, random_state=0),
        "linear": gf.RegGMM(ridge=0.1),
        "tree": gf.TreeCGM(),
    }
    model = models[options.model]
    if options.members > 1:
        model = gf.Ensemble(estimator=model, n_members=options.members, resample=True, random_state=0)
    cases = [
        joblib.delayed(answer)(name, options.data, int(n), seed, model)
        for n in options.rows.split(",")
        for seed in range(options.seeds)
        for name in options.only.split(",")
    ]
    answers = []
    for one in joblib.Parallel(n_jobs=options.jobs, return_as="generator_unordered")(cases):
        answers.append(one)
        print(one.line, flush=True)
        if options.out:
            options.out.write_text(json.dumps([each.facts for each in answers], indent=1) + "\n")
    print(summed_up(answers))


if __name__ == "__main__":
    main()
