"""Memory as documented: measured in a process of its own, against the formulas and the bounds.

109,800 rows with 549 distinct z at p = 268 stream in under 2 GB; 100,000 rows of 1,000 nodes fit in 8 GB.
"""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import graphfield as gf
from graphfield.data.frames import as_frame, node_values
from graphfield.data.nodes import NodeScaler
from graphfield.estimators import judged_pairs
from graphfield.estimators.memory import estimate_fit_memory, estimate_predict_memory
from graphfield.fields import streaming, walker
from graphfield.fields.linear import LinearField
from graphfield.graphs import threshold

linux = pytest.mark.skipif(sys.platform != "linux", reason="reads the peak from /proc")

CODE = """
import resource, warnings
import numpy as np
import graphfield as gf
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
p, q, n = 268, 1, 3000
X = rng.normal(size=(n, p)); Z = rng.uniform(-1, 1, (n, q))
model = gf.DNNCGM(rank=None, max_steps=30, device="cpu", random_state=0).fit(X, Z)
many = rng.choice(rng.uniform(-1, 1, 549), (109_800, 1))
rows = sum(len(block) for block in model.iter_coef(many))
assert rows == 109_800, rows
cut = np.quantile(model.edge_weights(many[:50]), 0.98)
frame = model.edges(many, threshold=float(cut), rule="and")
assert frame["sample"].nunique() == 109_800
print(len(frame), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


@pytest.mark.slow
def test_streaming_at_the_size_of_the_fmri_study():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    n_edges, megabytes = map(int, done.stdout.split())
    assert n_edges > 10_000_000
    assert megabytes < 2_000


MEASURED = """
import warnings
import numpy as np
import graphfield as gf
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)

def data(n, p, q):
    return rng.standard_normal((n, p), dtype=np.float32), rng.uniform(-1, 1, (n, q))

def field(name):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))

def growth(work):
    before = field("VmRSS")
    with open("/proc/self/clear_refs", "w") as switch:
        switch.write("5")  # the peak starts again from here
    work()
    return field("VmHWM") - before

model = gf.DNNCGM(rank=None, max_steps=3, hidden_size=64, batch_size=64, device="cpu", random_state=0)
model.fit(*data(200, 10, 2))  # what the libraries load on first use
"""


def megabytes(code: str) -> float:
    """What ``growth(...)`` of the last line measures."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURED + code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout) / 1e6


@linux
@pytest.mark.slow
@pytest.mark.parametrize(("n", "p", "q"), [(3_000, 120, 3), (100_000, 400, 5)])
def test_fit_takes_what_the_formula_says(n, p, q):
    estimate = estimate_fit_memory(n, p, q, hidden_size=64, batch_size=64)["peak"] / 1e6
    measured = megabytes(f"X, Z = data({n}, {p}, {q}); print(growth(lambda: model.fit(X, Z)))")
    assert measured <= 1.3 * estimate + 150
    assert measured >= 0.4 * estimate - 150


@linux
@pytest.mark.slow
@pytest.mark.parametrize(("n", "p", "rank"), [(60_000, 60, 8), (3_000, 100, 16)])
def test_patterns_take_what_the_formula_says(n, p, rank):
    estimate = estimate_fit_memory(n, p, 3, hidden_size=64, rank=rank)["peak"] / 1e6
    code = f"X, Z = data({n}, {p}, 3); model.set_params(rank={rank}, penalty=0.1)"
    measured = megabytes(f"{code}; print(growth(lambda: model.fit(X, Z)))")
    assert measured <= 1.3 * estimate + 150
    assert measured >= 0.4 * estimate - 150


@linux
@pytest.mark.parametrize(
    ("method", "n", "p"),
    [
        pytest.param("predict", 20_000, 60, marks=pytest.mark.slow),
        pytest.param("score", 30_000, 50, marks=pytest.mark.slow),
        pytest.param("edges", 1_000, 300, marks=pytest.mark.slow),
        pytest.param("edge_weights", 2_000, 200, marks=pytest.mark.slow),
        pytest.param("predict_graph", 150, 1_000, marks=pytest.mark.slow),
    ],
)
def test_predictions_take_what_the_formula_says(method, n, p):
    call = {
        "predict": "model.predict(X, Z)",
        "score": "model.score(X, Z)",
        "edges": "model.edges(Z, threshold=cut)",
        "edge_weights": "model.edge_weights(Z)",
        "predict_graph": "model.predict_graph(Z, threshold=cut)",
    }[method]
    code = f"""
model.fit(*data(300, {p}, 2))
X, Z = data({n}, {p}, 2)
cut = float(np.quantile(model.edge_weights(Z[:5]), 0.98))
print(growth(lambda: {call}))
"""
    n_edges = n * p * (p - 1) // 2 // 50
    estimate = estimate_predict_memory(n, p, method=method, n_edges=n_edges)["peak"] / 1e6
    assert megabytes(code) <= 1.3 * estimate + 100


def test_a_streaming_prediction_does_not_grow_with_the_rows():
    few, many = (estimate_predict_memory(n, 50, method="score")["peak"] for n in (10_000, 10_000_000))
    assert few == many


def test_formulas_refuse_what_is_no_size():
    for bad in ({"n": -1}, {"members": 0}, {"batch_size": None}, {"rank": 0}, {"p": "many"}):
        with pytest.raises(gf.ParameterError, match=next(iter(bad))):
            estimate_fit_memory(**{"n": 10, "p": 5, "q": 1, **bad})
    few, many = (estimate_fit_memory(1_000, np.int32(100), 2, rank=rank) for rank in (8, 32))
    assert few["patterns"] == many["patterns"] // 16


def test_formulas_know_the_methods():
    with pytest.raises(gf.ParameterError, match="predict_coef"):
        estimate_predict_memory(10, 10, method="predict_coeff")


@linux
@pytest.mark.slow
def test_a_thousand_nodes_and_a_hundred_thousand_rows_fit_in_8_gb():
    """Few rows are held out: evaluating them takes time, in blocks, and not a byte more."""
    code = """
X, Z = data(100_000, 1_000, 5)
model.set_params(validation_fraction=0.002).fit(X, Z)
print(field("VmHWM"))
"""
    assert megabytes(code) < 8_000


def test_the_users_table_is_not_copied():
    """Float tables are read where they lie, named columns or not; nothing may be written to them."""
    for kind in (np.float32, np.float64):
        X = np.random.default_rng(0).normal(size=(50, 4)).astype(kind)
        values = node_values(as_frame(X, "X"))
        assert np.shares_memory(values, X)
        assert values.dtype == kind


def test_standard_units_have_the_same_bits_in_blocks(monkeypatch):
    X = np.random.default_rng(0).normal(5, 3, size=(1_000, 7))
    monkeypatch.setattr("graphfield.data.nodes.BLOCK_ENTRIES", 7 * 64)
    scaler = NodeScaler.learn(X, center=True, scale=True)
    np.testing.assert_array_equal(scaler.center, X.mean(axis=0))
    np.testing.assert_array_equal(scaler.scale, X.std(axis=0))
    np.testing.assert_array_equal(scaler.transform(X), (X - X.mean(axis=0)) / X.std(axis=0))
    single = scaler.transform(X, dtype=np.float32)
    np.testing.assert_array_equal(single, scaler.transform(X).astype(np.float32))


def test_float32_nodes_make_the_graph_of_the_same_numbers_in_float64(quick, data):
    X, Z = data
    single = X.to_numpy(dtype=np.float32)
    one, two = quick().fit(single, Z), quick().fit(single.astype(np.float64), Z)
    np.testing.assert_array_equal(one.predict_coef(Z), two.predict_coef(Z))
    assert one.score(single, Z) == pytest.approx(two.score(single.astype(np.float64), Z), abs=1e-12)


def test_each_covariate_value_is_evaluated_once(data, monkeypatch):
    """Whatever the size of the blocks: predict, score, edges, weights and graphs."""
    X, Z = data
    repeated = Z.iloc[np.random.default_rng(0).integers(0, 30, len(X))]
    model = gf.RegGMM().fit(X, Z)
    expected = model.predict(X, repeated), model.edge_weights(repeated), model.edges(repeated, threshold=0.05)
    monkeypatch.setattr(walker, "CHUNK_BYTES", 7 * 4 * 36)
    monkeypatch.setattr(streaming, "_CACHE_ENTRIES", 3 * 36)
    seen: list[int] = []
    original = LinearField.weights_at
    monkeypatch.setattr(LinearField, "weights_at", lambda self, e: seen.append(len(e)) or original(self, e))
    np.testing.assert_allclose(model.predict(X, repeated), expected[0], rtol=1e-12)
    np.testing.assert_array_equal(model.edge_weights(repeated), expected[1])
    assert model.edges(repeated, threshold=0.05).equals(expected[2])
    model.score(X, repeated)
    model.predict_graph(repeated, threshold=0.05)
    n_distinct = len(repeated.drop_duplicates())
    assert max(seen) == 7
    assert sum(seen) == 5 * n_distinct


def test_the_threshold_pools_a_bounded_number_of_magnitudes(data, monkeypatch):
    seen: list[tuple[int, ...]] = []
    original = judged_pairs.find_gap
    monkeypatch.setattr(judged_pairs, "find_gap", lambda w, n: seen.append(w.shape) or original(w, n))
    monkeypatch.setattr(threshold, "GAP_ENTRIES", 40 * 15)
    gf.RegGMM().fit(*data)
    monkeypatch.setattr(threshold, "GAP_ENTRIES", 20_000_000)
    gf.RegGMM().fit(*data)
    assert seen == [(40, 15), (120, 15)]
