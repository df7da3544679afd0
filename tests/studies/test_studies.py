"""What both studies share: one comparison, one summary, one writer of a whole folder, a page."""

from __future__ import annotations

import json

import numpy as np
import pytest
from test_finance import SECTORS, market_of_sectors
from test_fmri import simulated

import graphfield as gf
from graphfield.studies.finance import finance_study
from graphfield.studies.fmri import fmri_study, load_subjects
from graphfield.studies.study import Study


@pytest.fixture(scope="module", params=["finance", "fmri"])
def study(request):
    if request.param == "finance":
        returns, covariates = market_of_sectors(500)
        options = {"train_until": "2016-03-31", "sectors": SECTORS, "days": ["2016-06-01"]}
        return finance_study(
            returns, covariates, **options, estimator=gf.RegGMM(), threshold=0.1, n_permutations=19
        )
    scans, people = simulated(16, 20)
    networks = [f"network {i % 2}" for i in range(9)]
    subjects = load_subjects(scans, people, id_column="who", score="score", networks=networks)
    return fmri_study(subjects, estimator=gf.RegGMM(), threshold=0.1, n_folds=2)


@pytest.fixture(scope="module")
def written(study, tmp_path_factory):
    pytest.importorskip("matplotlib")
    folder = tmp_path_factory.mktemp("studies") / "out"
    last = dict(list(study.drawings().items())[-1:])  # all of them take seconds
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(study), "drawings", lambda _: last)
        return folder, study.write(folder), last


def test_a_study_is_a_folder_with_all_of_it(study, written):
    folder, paths, drawn = written
    assert sorted(paths) == sorted(folder.iterdir())
    assert json.loads((folder / "summary.json").read_text()) == study.summary()
    names = {path.name for path in paths}
    assert {f"{name}.csv" for name in study.tables()} <= names
    assert {f"{name}.png" for name in drawn} <= names
    inside = folder / study.wording.model_folder
    rows = study.Z.iloc[:3]
    np.testing.assert_array_equal(gf.load(inside).predict_coef(rows), study.model.predict_coef(rows))
    assert json.loads((inside / "gain.json").read_text())["gain"] == study.gain.to_json()
    assert json.loads((inside / "evidence.json").read_text()) == study.summary()["evidence"]


def test_the_words_begin_with_the_verdict_of_any_other_table(study):
    assert isinstance(study, Study)
    assert study.sentences()[:2] == [study.verdict.paragraph, study.about]
    assert study.summary()["verdict"]["gain"] == study.gain.to_json()
    assert study.gain.average == "its own average graph"
    assert study.gain.static in ("graphical lasso", "nodewise lasso")
    assert (study.doubt == "") == (study.gain.answer == "better")


def test_a_folder_is_replaced_as_a_whole_or_not_at_all(study, written, monkeypatch):
    folder, paths, _ = written
    with pytest.raises(gf.OutputError, match="already exists"):
        study.write(folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}

    def fail():
        raise RuntimeError("no picture")

    with monkeypatch.context() as patch:
        patch.setattr(type(study), "drawings", lambda _: {"broken": fail})
        with pytest.raises(RuntimeError):
            study.write(folder, overwrite=True)
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before
    (folder / "of_an_earlier_study.png").write_bytes(b"")
    with monkeypatch.context() as patch:
        patch.setattr(type(study), "drawings", lambda _: {})
        study.write(folder, overwrite=True)
    assert {path.name for path in folder.iterdir()} == {p.name for p in paths if p.suffix != ".png"}


def test_a_folder_of_something_else_is_never_replaced(study, tmp_path):
    (tmp_path / "thesis.tex").write_text("precious")
    for place in (tmp_path, tmp_path / "thesis.tex"):
        with pytest.raises(gf.OutputError, match=r"holds other files|is a file"):
            study.check_place(place, overwrite=True)
    (tmp_path / "summary.json").write_text("{}")
    with pytest.raises(gf.OutputError, match="holds other files"):
        study.write(tmp_path, overwrite=True)
    assert (tmp_path / "thesis.tex").read_text() == "precious"


def test_a_page_says_what_the_study_says(study, tmp_path):
    page = study.write_page(tmp_path / "page.html").read_text()
    assert study.verdict.headline in page


def test_the_earlier_name_imports_the_same():
    import graphfield.pipelines.fmri as earlier

    from graphfield.pipelines import finance

    assert earlier.fmri_study is fmri_study
    assert finance.finance_study is gf.studies.finance.finance_study is gf.pipelines.finance.finance_study
