"""Brain networks by a score: from time series of many subjects to graphs, bands, tables and pictures."""

from graphfield.studies.fmri.study import FmriStudy, default_estimator, fmri_study
from graphfield.studies.fmri.subjects import Subjects, load_subjects

__all__ = ["FmriStudy", "Subjects", "default_estimator", "fmri_study", "load_subjects"]
