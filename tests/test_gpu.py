"""On a CUDA device: same seed, same bits; close to the CPU; resumes; loads on the CPU."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import graphfield as gf
from conftest import small_data

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]
PARAMS = {"max_steps": 200, "hidden_size": 32, "random_state": 0}


@pytest.mark.parametrize("sharing", ["all", "node", "edge"])
def test_same_seed_same_bits_on_cuda(sharing):
    X, Z = small_data(400)
    one, two = (gf.DNNCGM(**PARAMS, sharing=sharing, device="cuda").fit(X, Z) for _ in range(2))
    np.testing.assert_array_equal(one.predict_coef(Z), two.predict_coef(Z))


def test_cuda_is_close_to_the_cpu_without_dropout():
    X, Z = small_data(400)
    params = {**PARAMS, "max_steps": 50, "dropout": 0.0}
    cpu, cuda = (gf.DNNCGM(**params, device=d).fit(X, Z) for d in ("cpu", "cuda"))
    np.testing.assert_allclose(cuda.edge_weights(Z), cpu.edge_weights(Z), atol=2e-3)


def test_resume_on_cuda(tmp_path, monkeypatch):
    from graphfield.training.checkpoint import StageFile

    X, Z = small_data(400)
    whole = gf.DNNCGM(**PARAMS, device="cuda").fit(X, Z)
    saved = StageFile.save

    def save_then_die(self, snapshot):
        saved(self, snapshot)
        if self.path.stem == "edges" and snapshot.step == 100:
            raise KeyboardInterrupt

    monkeypatch.setattr(StageFile, "save", save_then_die)
    with pytest.raises(KeyboardInterrupt):
        gf.DNNCGM(**PARAMS, device="cuda").fit(X, Z, checkpoint=tmp_path / "c")
    monkeypatch.undo()
    resumed = gf.DNNCGM(**PARAMS, device="cuda").fit(X, Z, checkpoint=tmp_path / "c", resume=True)
    np.testing.assert_array_equal(resumed.predict_coef(Z), whole.predict_coef(Z))


def test_a_cuda_model_predicts_on_the_cpu(tmp_path):
    X, Z = small_data(400)
    model = gf.DNNCGM(**PARAMS, device="cuda").fit(X, Z)
    again = gf.load(model.save(tmp_path / "m")).set_params(device="cpu")
    np.testing.assert_allclose(again.predict_coef(Z), model.predict_coef(Z), rtol=1e-3, atol=1e-4)
