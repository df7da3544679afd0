"""Levels, rows and groups that tests of edges need."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import graphfield as gf


@pytest.mark.parametrize(
    ("sizes", "advice"),
    [
        ([6, 94], "Leave these rows out, or this covariate."),
        ([6, 5, 89], "Pool rare levels (from_table(..., rare={'site': 10})), or leave these rows out."),
        ([6, 20, 74], "Pool rare levels (from_table(..., rare={'site': 21})), or leave these rows out."),
    ],
)
def test_a_pool_is_advised_where_there_is_another_level_beside_it(sizes: list[int], advice: str) -> None:
    X = np.random.default_rng(0).normal(size=(100, 3))
    Z = pd.DataFrame({"site": np.repeat(list("abc")[: len(sizes)], sizes)})
    with pytest.raises(gf.DataError) as error:
        gf.infer_edges(X, Z)
    assert str(error.value).endswith(f"are needed to say anything of its edges. {advice}")
