"""``graphfield fmri``: from a folder of time series and a phenotype table to graphs and figures."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from graphfield.cli.options import folder_options, model_options
from graphfield.cli.values import names, settings, threshold
from graphfield.cli.words import say
from graphfield.exceptions import ParameterError


def fmri(arguments: argparse.Namespace) -> None:
    cut = threshold(arguments.threshold)
    if cut is None:
        raise ParameterError.of("threshold", "must be 'auto', 'gap' or a number: a density needs a cut.")
    from graphfield.estimators.dnncgm import DNNCGM
    from graphfield.plots import draw_to_files
    from graphfield.studies.fmri import FmriStudy, default_estimator, fmri_study, load_subjects

    draw_to_files()
    FmriStudy.check_place(arguments.out, overwrite=arguments.force)
    start = time.perf_counter()
    subjects = load_subjects(
        arguments.folder,
        arguments.phenotypes,
        id_column=arguments.id,
        score=arguments.score,
        covariates=names(arguments.covariates),
        networks=arguments.networks,
        pattern=arguments.pattern,
        transposed=arguments.transposed,
        drop_regions=names(arguments.drop_regions),
        every=arguments.every,
        missing=arguments.missing,
    )
    say(f"Read {arguments.folder}: {subjects.summary}")
    estimator = default_estimator(len(subjects.regions), arguments.seed).set_params(
        **settings(arguments.set, DNNCGM)
    )
    study = fmri_study(
        subjects,
        estimator=estimator,
        quantiles=arguments.quantiles,
        threshold=cut,
        n_folds=arguments.folds,
        evidence=not arguments.no_test,
        random_state=arguments.seed,
        tell=say,
    )
    study.write(arguments.out, overwrite=arguments.force)
    verdict, _, *rest = study.sentences()  # what the subjects are was said before the work
    for line in (verdict, *rest):
        say(line)
    seconds = time.perf_counter() - start
    say(f"Wrote figures, tables, graphs and the model to {arguments.out} in {seconds:.0f} s.")


def fmri_parser(group: Any) -> None:
    p = group.add_parser("fmri", help="brain networks by a score, from time series of many subjects")
    p.add_argument("folder", type=Path, metavar="FOLDER", help="one file per subject, time x regions")
    p.add_argument("--phenotypes", type=Path, required=True, metavar="FILE.csv", help="one row per subject")
    p.add_argument("--id", required=True, metavar="COLUMN", help="column of the table with the subjects")
    p.add_argument("--score", required=True, metavar="COLUMN", help="what the graphs are related to")
    p.add_argument("--covariates", default="", metavar="A,B", help="other columns the graph may depend on")
    p.add_argument("--networks", type=Path, metavar="FILE.csv", help="columns region and network")
    p.add_argument("--pattern", metavar="'sub-{id}_*.tsv'", help="file names, {id} where the subject is")
    p.add_argument("--transposed", action="store_true", help="files are regions x time")
    p.add_argument("--drop-regions", default="", metavar="R1,R2", help="regions to leave out")
    p.add_argument("--every", type=int, default=1, metavar="K", help="use every K-th time point")
    p.add_argument("--missing", choices=("error", "drop"), default="error")
    p.add_argument("--quantiles", type=int, default=4, help="bands of the score (default 4)")
    p.add_argument(
        "--threshold", default="auto", help="'auto' (default), 'gap' or a number (the paper has 0.05)"
    )
    p.add_argument(
        "--folds", type=int, default=3, help="folds of subjects to judge by (default 3; 0: leave this out)"
    )
    p.add_argument("--no-test", action="store_true", help="without the permutation test")
    folder_options(p)
    model_options(p)
    p.set_defaults(run=fmri)
