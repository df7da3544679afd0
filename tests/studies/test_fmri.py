"""The fMRI pipeline: every way to pass scans, what is refused, and a study with a known answer."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import graphfield as gf
from conftest import REAL_DATA
from graphfield.cli import main
from graphfield.estimators.held_out import HeldOut
from graphfield.studies.fmri import fmri_study, load_subjects
from graphfield.studies.fmri.phenotypes import match_subjects
from graphfield.studies.fmri.scan_files import read_folder
from graphfield.studies.fmri.subjects import read_networks

P = 9
NETWORKS = ["growing"] * 4 + ["steady"] * 3 + ["alone"] * 2
REGIONS = [f"r{i}" for i in range(P)]
GROWING, STEADY = ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)), ((4, 5), (5, 6))


def simulated(n_subjects: int = 40, n_times: int = 30, seed: int = 0) -> tuple[dict, pd.DataFrame]:
    """Edges within 'growing' grow with the score from 0 to .3; those within 'steady' are .3 for all.

    Every subject has means and scales of its own, which must not matter.
    """
    rng = np.random.default_rng(seed)
    score = rng.permutation(np.linspace(0, 1, n_subjects))
    scans = {}
    for i, s in enumerate(score):
        precision = np.eye(P)
        for pairs, size in ((GROWING, 0.3 * s), (STEADY, 0.3)):
            for a, b in pairs:
                precision[a, b] = precision[b, a] = -size
        x = rng.standard_normal((n_times, P)) @ np.linalg.cholesky(np.linalg.inv(precision)).T
        scans[f"s{i:02d}"] = x * rng.uniform(1, 50, P) + rng.uniform(-100, 100, P)
    return scans, pd.DataFrame({"who": list(scans), "score": score, "motion": rng.uniform(size=n_subjects)})


@pytest.fixture(scope="module")
def small():
    return simulated(12, 24)


def loaded(scans, people, **options):
    return load_subjects(scans, people, **{"id_column": "who", "score": "score", **options})


def write(folder: Path, scans: dict, kind: str) -> Path:
    folder.mkdir()
    for who, values in scans.items():
        path = folder / f"{who}.{kind}"
        frame = pd.DataFrame(values, columns=REGIONS)
        if kind == "npy":
            np.save(path, values)
        elif kind == "npz":
            np.savez(path, time_series=values, labels=np.array(REGIONS))
        elif kind == "1D":
            np.savetxt(path, values, header="\t#".join(REGIONS), comments="#", delimiter="\t", fmt="%.17g")
        else:
            frame.to_csv(path, sep={"csv": ",", "tsv": "\t"}[kind], index=kind == "tsv")
    return folder


# -- every way to pass the same scans ---------------------------------------------------------


@pytest.mark.parametrize("kind", ["npy", "npz", "csv", "tsv", "1D"])
def test_a_folder_gives_the_table_of_a_mapping(small, tmp_path, kind):
    scans, people = small
    folder = write(tmp_path / "scans", scans, kind)
    expected = loaded(scans, people, regions=REGIONS)
    people.to_csv(tmp_path / "people.csv", index=False)
    found = loaded(folder, tmp_path / "people.csv", regions=REGIONS if kind == "npy" else None)
    np.testing.assert_allclose(found.X.to_numpy(), expected.X.to_numpy(), atol=1e-12)
    assert list(found.X.columns) == REGIONS
    pd.testing.assert_frame_equal(found.Z, expected.Z)
    assert found.groups.tolist() == expected.groups.tolist()


def test_lists_and_arrays_give_the_table_of_a_mapping(small):
    scans, people = small
    expected = loaded(scans, people)
    as_list, as_array = list(scans.values()), np.stack(list(scans.values()))
    for series in (as_list, as_array):
        found = loaded(series, people, subjects=list(scans))
        pd.testing.assert_frame_equal(found.X, expected.X)
        assert found.groups.tolist() == expected.groups.tolist()
        in_order = loaded(series, people, id_column=None)
        pd.testing.assert_frame_equal(in_order.Z, expected.Z)
        assert "in the order" in in_order.notes[0]
    turned = loaded([values.T for values in as_list], people, subjects=list(scans), transposed=True)
    pd.testing.assert_frame_equal(turned.X, expected.X)


def test_rows_follow_the_subject_and_not_the_order_of_the_table(small):
    scans, people = small
    shuffled = people.sample(frac=1, random_state=1)
    pd.testing.assert_frame_equal(loaded(scans, shuffled).Z, loaded(scans, people).Z)
    found = loaded(scans, shuffled)
    for who, score in zip(people["who"], people["score"], strict=True):
        assert (found.Z["score"][found.groups == who] == score).all()


def test_column_numbers_of_pandas_are_no_time_point(small, tmp_path):
    scans, people = small
    folder = tmp_path / "plain"
    folder.mkdir()
    for who, values in scans.items():
        pd.DataFrame(values).to_csv(folder / f"{who}.csv", index=False)
    assert loaded(folder, people).n_times == [24] * 12


def test_subjects_inside_file_names(tmp_path):
    values = np.random.default_rng(0).normal(size=(12, 3))
    for who in ("0050952", "0051001"):
        (tmp_path / f"sub-{who}" / "func").mkdir(parents=True)
        np.save(tmp_path / f"sub-{who}" / "func" / f"sub-{who}_task-rest.npy", values)
        np.save(tmp_path / f"NYU_{who}_rois.npy", values)
    assert list(read_folder(tmp_path, "NYU_{id}_*.npy")) == ["0050952", "0051001"]
    assert list(read_folder(tmp_path, "sub-{id}/func/sub-{id}_*.npy")) == ["0050952", "0051001"]
    found, alone, absent = match_subjects(["sub-0050952", "sub-0051001"], ["50952", "7"])
    assert (found, alone, absent) == ({"sub-0050952": 0}, ["sub-0051001"], ["7"])
    # "1" and "01" are two subjects, so zeros in front matter.
    assert match_subjects(["1", "01", "2"], ["1", "01"])[0] == {"1": 0, "01": 1}


# -- standardisation ---------------------------------------------------------------------------


def test_regions_are_standardised_within_every_subject(small):
    scans, people = small
    found = loaded(scans, people, every=2)
    assert found.n_times == [12] * 12
    for series, (who, values) in zip(found.series, scans.items(), strict=True):
        assert who in found.ids
        np.testing.assert_allclose(series.mean(axis=0), 0, atol=1e-12)
        np.testing.assert_allclose(series.std(axis=0), 1, rtol=1e-12)
        thin = values[::2]
        np.testing.assert_allclose(series, (thin - thin.mean(axis=0)) / thin.std(axis=0), rtol=1e-9)


def test_means_and_scales_of_subjects_do_not_matter(small):
    scans, people = small
    rng = np.random.default_rng(1)
    moved = {who: x * rng.uniform(0.1, 9, P) + rng.normal(0, 99, P) for who, x in scans.items()}
    np.testing.assert_allclose(loaded(moved, people).X, loaded(scans, people).X, atol=1e-8)


# -- what is refused ---------------------------------------------------------------------------


def test_subjects_without_a_counterpart_are_counted_and_named(small):
    scans, people = small
    fewer = {who: x for who, x in scans.items() if who != "s03"}
    shorter = people[people["who"] != "s05"]
    with pytest.raises(
        gf.DataError, match=r"1 subject has a scan but no row.*'s05'; 1 row has no scan: 's03'"
    ):
        loaded(fewer, shorter)
    with pytest.warns(gf.DataWarning, match="left out"):
        found = loaded(fewer, shorter, missing="drop")
    assert len(found.ids) == 10
    assert "'s05'" in found.notes[0]


def test_names_that_never_match_come_with_a_pattern(tmp_path, small):
    scans, people = small
    folder = write(
        tmp_path / "scans", {f"NYU_00{50 + i}_rois": x for i, x in enumerate(scans.values())}, "npy"
    )
    numbered = people.assign(who=np.arange(50, 62))
    with pytest.raises(gf.DataError, match="No name matches"):
        loaded(folder, numbered.assign(who=[f"00{i}" for i in numbered["who"]]))
    assert len(loaded(folder, numbered, pattern="NYU_{id}_rois.npy").ids) == 12


def test_unknown_covariates(small):
    scans, people = small
    people = people.copy()
    people.loc[2, "motion"] = np.nan
    people.loc[4, "score"] = -9999
    with pytest.raises(gf.DataError, match=r"2 of 12 subjects lack a covariate.*-9999.*'s02', 's04'"):
        loaded(scans, people, covariates=["motion"])
    with pytest.warns(gf.DataWarning, match="left out"):
        found = loaded(scans, people, covariates=["motion"], missing="drop")
    assert "s02" not in found.ids
    assert found.table["score"].min() >= 0


def test_regions_that_differ_in_number(small):
    scans, people = small
    with pytest.raises(gf.DataError, match="same 9 regions, but 1 of 12 have another number: 's07' 8"):
        loaded({**scans, "s07": scans["s07"][:, :8]}, people)


def test_transposed_scans_are_recognised(small):
    scans, people = small
    turned = {who: x.T for who, x in scans.items()}
    with pytest.raises(gf.DataError, match=r"look like regions x time.*transposed=True"):
        loaded(turned, people, networks=NETWORKS)
    uneven = {who: x[: 12 + i].T for i, (who, x) in enumerate(scans.items())}
    with pytest.raises(gf.DataError, match=r"look like regions x time.*transposed=True"):
        loaded(uneven, people)
    with pytest.raises(gf.DataError, match=r"1 of 12 subjects look like regions x time \('s07'\)"):
        loaded({**scans, "s07": scans["s07"].T}, people)


def test_constant_regions_missing_values_and_short_scans(small):
    scans, people = small
    bad = {who: x.copy() for who, x in scans.items()}
    bad["s01"][:, 2] = 5.0
    bad["s02"][3, 4] = np.nan
    with pytest.raises(gf.DataError, match=r"never changes: 's01' .'region_3'.*drop_regions"):
        loaded({**bad, "s02": scans["s02"]}, people)
    with pytest.raises(gf.DataError, match=r"missing or infinite.*'s02' .1 of 24 time points, in 'region_5'"):
        loaded({**scans, "s02": bad["s02"]}, people)
    with pytest.raises(gf.DataError, match=r"fewer than 10 complete time points: 's00' .9."):
        loaded({**scans, "s00": scans["s00"][:9]}, people)
    with pytest.warns(gf.DataWarning) as caught:
        found = loaded(bad, people, missing="drop")
    assert len(caught) == 2
    assert "s01" not in found.ids
    assert found.n_times[found.ids.index("s02")] == 23
    kept = loaded({**scans, "s01": bad["s01"]}, people, drop_regions=["region_3"], networks=NETWORKS)
    assert len(kept.ids) == 12
    assert "region_3" not in kept.regions
    assert len(kept.networks) == P - 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"score": "skore"}, "no column 'skore'. Did you mean 'score'"),
        ({"id_column": None}, "id_column must name"),
        ({"covariates": ["score"]}, "asked for twice"),
        ({"missing": "impute"}, "missing must be one of"),
        ({"networks": ["a", "b"]}, "same 2 regions"),
        ({"covariates": "motion"}, "list of names"),
        ({"every": 0}, "every must be"),
    ],
)
def test_options_that_make_no_sense(small, options, message):
    scans, people = small
    with pytest.raises(gf.GraphfieldError, match=message):
        loaded(scans, people, **options)


def test_tables_that_make_no_sense(small):
    scans, people = small
    with pytest.raises(gf.DataError, match="one row per subject, but 's00'"):
        loaded(scans, pd.concat([people, people.iloc[:1]]))
    with pytest.raises(gf.DataError, match="same for every subject"):
        loaded(scans, people.assign(score=1.0))
    with pytest.raises(gf.DataError, match="At least 10 subjects"):
        loaded({who: scans[who] for who in list(scans)[:4]}, people.iloc[:4])
    with pytest.raises(gf.DataError, match=r"array .subjects, time, regions."):
        loaded(np.zeros((3, 4)), people)


def test_sub_networks_from_a_file(tmp_path):
    path = tmp_path / "regions.csv"
    pd.DataFrame({"x": range(2), "Network": ["a", "b"], "Region": ["r0", "r1"]}).to_csv(path, index=False)
    assert read_networks(path) == {"r0": "a", "r1": "b"}
    pd.DataFrame({"x": range(2), "y": 0, "z": 0}).to_csv(path, index=False)
    with pytest.raises(gf.DataError, match="columns 'region' and 'network'"):
        read_networks(path)


# -- a study -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def study():
    scans, people = simulated(60, 40)
    subjects = loaded(scans, people, covariates=["motion"], networks=NETWORKS, regions=REGIONS)
    return fmri_study(subjects, estimator=gf.RegGMM(ridge=0.05), threshold=0.1, evidence=False)


def within(study, network: str) -> np.ndarray:
    table = study.network_table()
    return table[(table["first"] == network) & (table["second"] == network)]["mean_weight"].to_numpy()


def test_a_sub_network_that_grows_with_the_score_is_found(study):
    growing, steady = within(study, "growing"), within(study, "steady")
    assert (np.diff(growing) > 0).all()
    assert growing[-1] > 2 * growing[0]
    assert np.ptp(steady) < 0.5 * np.ptp(growing)
    top = study.score_edges().head(len(GROWING))
    found = {tuple(sorted(pair)) for pair in zip(top["source"], top["target"], strict=True)}
    assert found == {(REGIONS[a], REGIONS[b]) for a, b in GROWING}
    assert (top["change"] > 0.1).all()


def test_held_out_subjects_gain_from_a_graph_that_varies(study):
    assert study.gain.answer == "better"
    assert study.verdict.supported
    assert study.sentences()[0] == study.verdict.paragraph
    assert not any("not established" in line for line in study.sentences())


@pytest.mark.slow
def test_a_score_without_effect_is_not_sold_as_one():
    plt = pytest.importorskip("matplotlib.pyplot")
    scans, people = simulated(24, 20)
    rng = np.random.default_rng(5)
    shuffled = people.assign(score=rng.permutation(people["score"].to_numpy()))
    found = fmri_study(loaded(scans, shuffled), estimator=gf.RegGMM(), threshold=0.1, evidence=False)
    assert found.gain.answer != "better"
    for name, figure in found.figures().items():
        titles = [figure.get_suptitle(), *(axis.get_title() for axis in figure.axes)]
        assert any("not supported by subjects left out" in title for title in titles), name
    plt.close("all")
    assert any("not established" in line for line in found.sentences())


def test_held_out_subjects_are_never_in_training(monkeypatch):
    scans, people = simulated(20, 12)
    subjects = loaded(scans, people)
    row = {tuple(values): who for values, who in zip(subjects.X.to_numpy(), subjects.groups, strict=True)}
    seen, asked = [], []
    learn, residuals = gf.RegGMM._learn, HeldOut.residuals

    def watched_fit(self, X, *others):
        seen.append({row[tuple(values)] for values in X.to_numpy()})
        return learn(self, X, *others)

    def watched(rows, field):
        asked.append({row[tuple(values)] for values in rows.values})
        return residuals(rows, field)

    monkeypatch.setattr(gf.RegGMM, "_learn", watched_fit)
    monkeypatch.setattr(HeldOut, "residuals", watched)
    study = fmri_study(subjects, estimator=gf.RegGMM(), n_folds=4, threshold=0.1, evidence=False)
    assert (study.gain.n_units, study.gain.n_rows, study.gain.n_folds) == (20, 240, 4)
    assert seen[0] == set(subjects.ids)
    assert len(seen) == len(asked) + 1 == 5
    for training, test in zip(seen[1:], asked, strict=True):
        assert not training & test
        assert training | test == set(subjects.ids)
    assert set.union(*asked) == set(subjects.ids)


def test_the_gain_is_that_of_any_other_table(study):
    """One definition of one graph for all: the comparison of `gf.gain_over_one_graph`, by subject."""
    subjects = study.subjects
    model = gf.RegGMM(ridge=0.05)
    expected = gf.gain_over_one_graph(model, subjects.X, subjects.Z, groups=subjects.groups, n_folds=3)
    assert study.gain.over_average == expected.over_average
    assert study.gain.over_static == expected.over_static
    assert "on 2,400 held-out time points (60 subjects" in study.sentences()[0]


def test_one_graph_per_subject(study):
    graphs = study.graphs()
    assert graphs.shape == (60, P, P)
    who = study.subjects.ids[7]
    z = study.subjects.table.loc[[who]]
    np.testing.assert_array_equal(study.graph(who), graphs[7])
    np.testing.assert_array_equal(study.model.partial_correlations(z)[0], graphs[7])
    with pytest.raises(gf.DataError, match="no subject 's99'"):
        study.graph("s99")
    table = study.connectivity(["density"])
    own = study.model.predict_graph(z, threshold=0.1)[0]
    assert table.loc[who, "density"] == pytest.approx(own.sum() / (P * (P - 1)))


def test_bands_are_averages_over_their_subjects(study):
    score = study.subjects.table["score"].to_numpy()
    lowest = np.argsort(score)[:15]
    assert study.bands.n_rows == [15] * 4
    np.testing.assert_allclose(study.bands.matrices[0], study.graphs()[lowest].mean(axis=0), atol=1e-6)


def test_every_density_is_the_mean_over_subjects(study):
    """In the table, the sentence and the pictures, of all regions and of one sub-network."""
    plt = pytest.importorskip("matplotlib.pyplot")
    Z = study.subjects.table.reset_index(drop=True)
    cut = study.model.predict_graph(Z, threshold=study.threshold)
    pairs = ([np.triu_indices(P, 1), np.triu_indices(4, 1)], ["bands", "network_growing"])
    figures = study.figures()
    codes = pd.qcut(study.subjects.table["score"], 4, labels=False).to_numpy()
    for (j, k), name in zip(*pairs, strict=True):
        expected = [100 * cut[codes == i][:, j, k].mean() for i in range(4)]
        titles = [axis.get_title() for axis in figures[name].axes if axis.get_title()]
        for title, share in zip(titles, expected, strict=True):
            assert title.endswith(f"density {share:.1f} %")
        if name == "bands":
            assert all(f"{share:.1f} % (" in study.sentences()[-1] for share in expected)
        else:
            (line,) = [
                line for line in figures["network_density"].axes[0].lines if line.get_label() == "growing"
            ]
            np.testing.assert_allclose(line.get_ydata(), expected)
    plt.close("all")


def test_lines_of_equal_density_do_not_hide_each_other(study):
    plt = pytest.importorskip("matplotlib.pyplot")
    lines = study.figures()["network_density"].axes[0].lines
    places = [tuple(line.get_xdata()) for line in lines]
    assert len(set(places)) == len(places) >= 3
    plt.close("all")


def test_clusters_where_no_sub_networks_are_given():
    scans, people = simulated(20, 40)
    found = loaded(scans, people)
    labels = np.array(found.clustered(4))
    assert len(set(labels[4:7])) == 1
    assert labels[0] not in labels[4:7]
    study = fmri_study(found, estimator=gf.RegGMM(), threshold=0.1, n_folds=0, evidence=False)
    assert any("clusters" in note for note in study.notes)
    assert study.gain is None


def test_the_permutation_test_is_asked_by_subject(monkeypatch):
    """Where there is one; what it says of all covariates and of the score is in the verdict."""
    asked = {}
    lines = [SimpleNamespace(name="score", adjusted_p_value=0.01, verdict="evidence")]

    def dependence_test(X, Z, *, groups, covariates, random_state):
        asked.update(rows=len(X), groups=set(groups), covariates=covariates)
        words = {"verdict": "evidence", "sentence": "", "caveat": "", "together": (), "filled_in": ""}
        words |= {"drifting": (), "differences": ""}
        return SimpleNamespace(p_value=0.02, n_rows=144, per_covariate=lines, **words)

    monkeypatch.setattr("graphfield.studies.study.dependence_test", dependence_test)
    scans, people = simulated(12, 12)
    options = {"estimator": gf.RegGMM(), "threshold": 0.1, "n_folds": 0}
    found = fmri_study(loaded(scans, people, covariates=["motion"]), **options)
    assert asked == {"rows": 144, "groups": set(scans), "covariates": ["score"]}
    assert (found.verdict.test, found.verdict.matter) == ("yes", ("score",))
    assert found.sentences()[0] == found.verdict.paragraph


# -- one command -------------------------------------------------------------------------------


@pytest.mark.slow
def test_one_command_from_a_folder_to_figures_and_tables(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    scans, people = simulated(16, 20)
    folder = write(tmp_path / "scans", scans, "1D")
    people.to_csv(tmp_path / "people.csv", index=False)
    pd.DataFrame({"region": REGIONS, "network": NETWORKS}).to_csv(tmp_path / "networks.csv", index=False)
    out = tmp_path / "out"
    command = ["fmri", str(folder), "--phenotypes", str(tmp_path / "people.csv"), "--id", "who"]
    command += ["--score", "score", "--covariates", "motion", "--networks", str(tmp_path / "networks.csv")]
    command += [
        "--set",
        "rank=2",
        "--set",
        "max_steps=30",
        "--set",
        "penalty=0.05",
        "--quantiles",
        "2",
        "--folds",
        "2",
    ]
    command += ["--no-test", "--threshold", "0.05", "--out", str(out)]
    assert main(command) == 0
    said = capsys.readouterr().out
    assert "16 subjects with 20 time points each" in said
    for name in ("bands", "networks", "network_density", "connectivity", "edge_curves", "difference"):
        assert (out / f"{name}.png").read_bytes()[:4] == b"\x89PNG"
    assert (out / "network_growing.png").exists()
    assert len(pd.read_csv(out / "subjects.csv")) == 16
    assert len(pd.read_csv(out / "edges_by_score.csv")) == P * (P - 1) // 2
    summary = json.loads((out / "summary.json").read_text())
    assert summary["sentences"][0] in said
    assert summary["gain_over_static"]["verdict"] in ("better", "worse", "no clear difference")
    with np.load(out / "graphs.npz") as archive:
        graphs, who = archive["partial_correlations"], archive["subjects"]
    model = gf.load(out)
    row = people[people["who"] == who[3]][["score", "motion"]]
    np.testing.assert_allclose(model.partial_correlations(row)[0], graphs[3], atol=1e-6)
    assert main(command) == 2
    assert "--force" in capsys.readouterr().err


def test_a_table_of_something_else_is_named_with_its_columns(small, tmp_path):
    scans, people = small
    path = tmp_path / "sectors.csv"
    pd.DataFrame({"ticker": ["AAPL", "JPM"], "sector": ["tech", "banks"]}).to_csv(path, index=False)
    with pytest.raises(
        gf.DataError, match=r"networks: .*sectors.csv' must have the columns region and network"
    ):
        loaded(scans, people, regions=REGIONS, networks=path)
    with pytest.raises(
        gf.DataError, match=r"lacks 'r0', .*Its columns are 'ticker', 'sector'.*'AAPL', 'JPM'"
    ):
        loaded(scans, people, regions=REGIONS, networks=path)


# -- real data ---------------------------------------------------------------------------------

ABIDE = REAL_DATA
ABIDE = ABIDE / "abide_nyu_cc200.npz"


@pytest.mark.slow
@pytest.mark.skipif(not ABIDE.exists(), reason="needs abide_nyu_cc200.npz")
def test_mirror_image_regions_of_real_brains_are_tied_most_closely():
    with np.load(ABIDE, allow_pickle=False) as archive:
        x, unit, z = archive["x"].astype(np.float64), archive["unit"], archive["z_num"]
        mirror = archive["homotopic"].astype(int)
    who, first = np.unique(unit, return_index=True)
    scans = {str(w): x[unit == w] for w in who}
    people = pd.DataFrame({"who": who.astype(str), "score": z[first, 0], "motion": z[first, 2]})
    subjects = loaded(scans, people, covariates=["motion"])
    p = len(subjects.regions)
    pairs = np.zeros((p, p), dtype=bool)
    paired = mirror >= 0
    pairs[np.flatnonzero(paired), mirror[paired]] = True
    np.fill_diagonal(pairs, False)
    pairs |= pairs.T
    rest = ~pairs & ~np.eye(p, dtype=bool)
    r = subjects.correlations()
    assert r[pairs].mean() == pytest.approx(0.52, abs=0.03)
    assert r[rest].mean() == pytest.approx(0.21, abs=0.03)
    study = fmri_study(subjects, threshold=0.05, n_folds=0, evidence=False)
    weights = np.abs(study.bands.matrices).mean(axis=0)
    assert weights[pairs].mean() > 5 * weights[rest].mean(), (weights[pairs].mean(), weights[rest].mean())
