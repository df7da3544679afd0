"""Graphs that depend on covariates: from node values X and covariates Z learn z -> G(z).

>>> import graphfield as gf
>>> sim = gf.make_setting("G1", n_samples=60, random_state=0)
>>> model = gf.DNNCGM(max_steps=20, random_state=0).fit(sim.X, sim.Z)
>>> model.predict_coef(sim.Z[:3]).shape
(3, 50, 50)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from graphfield.estimators.registry import ESTIMATORS, find_estimator

__version__ = "0.2.0"

# Public name, beside those of the estimators -> module that defines it. Imported on first use, so that
# `import graphfield` costs nothing and a classical baseline never imports torch.
_PUBLIC = {
    "Evidence": "graphfield.inference.evidence",
    "dependence_test": "graphfield.inference.dependence",
    "EdgeInference": "graphfield.inference.edge_inference",
    "infer_edges": "graphfield.inference.edges",
    "compare_graphs": "graphfield.inference.compare",
    "MethodComparison": "graphfield.inference.method_comparison",
    "compare_methods": "graphfield.inference.compare_methods",
    "SamplePlan": "graphfield.inference.sample_plan",
    "plan_samples": "graphfield.inference.planning",
    "Stability": "graphfield.inference.stability_result",
    "stability": "graphfield.inference.stability",
    "ModelGain": "graphfield.inference.model_gain",
    "gain_over_one_graph": "graphfield.inference.model_gain",
    "Verdict": "graphfield.inference.verdict",
    "judge": "graphfield.inference.verdict",
    "Cost": "graphfield.estimators.cost",
    "estimate_cost": "graphfield.estimators.cost",
    "fit_together": "graphfield.estimators.together",
    "load": "graphfield.estimators.persistence",
    "check_data": "graphfield.check.table",
    "DataCheck": "graphfield.check.findings",
    "read_table": "graphfield.data.tables",
    "from_table": "graphfield.data.roles",
    "TableData": "graphfield.data.roles",
    "open_table": "graphfield.data.row_source",
    "RowSource": "graphfield.data.row_source",
    "make_setting": "graphfield.simulate",
    "Simulation": "graphfield.simulate",
    "GraphfieldError": "graphfield.exceptions",
    "DataError": "graphfield.exceptions",
    "DataWarning": "graphfield.exceptions",
    "ExtrapolationWarning": "graphfield.exceptions",
    "MissingDependencyError": "graphfield.exceptions",
    "ModelFileError": "graphfield.exceptions",
    "NoGapWarning": "graphfield.exceptions",
    "OutputError": "graphfield.exceptions",
    "ParameterError": "graphfield.exceptions",
    "ThresholdWarning": "graphfield.exceptions",
    "FewRowsWarning": "graphfield.exceptions",
    "TrainingError": "graphfield.exceptions",
    "TrainingWarning": "graphfield.exceptions",
}
_SUBPACKAGES = (
    "analysis",
    "data",
    "exceptions",
    "graphs",
    "inference",
    "metrics",
    "pipelines",
    "plots",
    "report",
    "simulate",
    "studies",
    "theory",
)

__all__ = ["__version__", *ESTIMATORS, *_PUBLIC, *_SUBPACKAGES]

if TYPE_CHECKING:
    from graphfield.check.findings import DataCheck as DataCheck
    from graphfield.check.table import check_data as check_data
    from graphfield.data.roles import TableData as TableData
    from graphfield.data.roles import from_table as from_table
    from graphfield.data.row_source import RowSource as RowSource
    from graphfield.data.row_source import open_table as open_table
    from graphfield.data.tables import read_table as read_table
    from graphfield.estimators.archetype import ArchetypeCGM as ArchetypeCGM
    from graphfield.estimators.auto import AutoCGM as AutoCGM
    from graphfield.estimators.bayesian import BayesianCGM as BayesianCGM
    from graphfield.estimators.by_cluster import ByCluster as ByCluster
    from graphfield.estimators.contextualized import ContextualizedCGM as ContextualizedCGM
    from graphfield.estimators.cost import Cost as Cost
    from graphfield.estimators.cost import estimate_cost as estimate_cost
    from graphfield.estimators.dnncgm import DNNCGM as DNNCGM
    from graphfield.estimators.ensemble import Ensemble as Ensemble
    from graphfield.estimators.graphical_lasso import GraphicalLasso as GraphicalLasso
    from graphfield.estimators.joint import JointGraphicalLasso as JointGraphicalLasso
    from graphfield.estimators.kernel import KernelCGM as KernelCGM
    from graphfield.estimators.nodewise_lasso import NodewiseLasso as NodewiseLasso
    from graphfield.estimators.persistence import load as load
    from graphfield.estimators.reggmm import RegGMM as RegGMM
    from graphfield.estimators.score import ScoreCGM as ScoreCGM
    from graphfield.estimators.together import fit_together as fit_together
    from graphfield.estimators.tree import TreeCGM as TreeCGM
    from graphfield.exceptions import DataError as DataError
    from graphfield.exceptions import DataWarning as DataWarning
    from graphfield.exceptions import ExtrapolationWarning as ExtrapolationWarning
    from graphfield.exceptions import FewRowsWarning as FewRowsWarning
    from graphfield.exceptions import GraphfieldError as GraphfieldError
    from graphfield.exceptions import MissingDependencyError as MissingDependencyError
    from graphfield.exceptions import ModelFileError as ModelFileError
    from graphfield.exceptions import NoGapWarning as NoGapWarning
    from graphfield.exceptions import OutputError as OutputError
    from graphfield.exceptions import ParameterError as ParameterError
    from graphfield.exceptions import ThresholdWarning as ThresholdWarning
    from graphfield.exceptions import TrainingError as TrainingError
    from graphfield.exceptions import TrainingWarning as TrainingWarning
    from graphfield.inference.compare import compare_graphs as compare_graphs
    from graphfield.inference.compare_methods import compare_methods as compare_methods
    from graphfield.inference.dependence import dependence_test as dependence_test
    from graphfield.inference.edge_inference import EdgeInference as EdgeInference
    from graphfield.inference.edges import infer_edges as infer_edges
    from graphfield.inference.evidence import Evidence as Evidence
    from graphfield.inference.method_comparison import MethodComparison as MethodComparison
    from graphfield.inference.model_gain import ModelGain as ModelGain
    from graphfield.inference.model_gain import gain_over_one_graph as gain_over_one_graph
    from graphfield.inference.planning import plan_samples as plan_samples
    from graphfield.inference.sample_plan import SamplePlan as SamplePlan
    from graphfield.inference.stability import stability as stability
    from graphfield.inference.stability_result import Stability as Stability
    from graphfield.inference.verdict import Verdict as Verdict
    from graphfield.inference.verdict import judge as judge
    from graphfield.simulate import Simulation as Simulation
    from graphfield.simulate import make_setting as make_setting


def __getattr__(name: str) -> Any:
    if name in ESTIMATORS:  # also one that was registered later
        return find_estimator(name)
    if name in _PUBLIC:
        value = getattr(import_module(_PUBLIC[name]), name)
    elif name in _SUBPACKAGES:
        value = import_module(f"graphfield.{name}")
    else:
        raise AttributeError(f"module 'graphfield' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *ESTIMATORS})
