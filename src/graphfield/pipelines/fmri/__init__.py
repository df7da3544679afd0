"""Brain networks by a score: from time series of many subjects to graphs, bands, tables and pictures."""

from graphfield.pipelines.fmri.held_out_subjects import SubjectGain
from graphfield.pipelines.fmri.study import FmriStudy, default_estimator, fmri_study
from graphfield.pipelines.fmri.subjects import Subjects, load_subjects

__all__ = ["FmriStudy", "SubjectGain", "Subjects", "default_estimator", "fmri_study", "load_subjects"]
