"""How the documentation is built: `make docs`, without network and with warnings as errors."""

from __future__ import annotations

import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent
sys.path[:0] = [str(DOCS), str(DOCS.parent / "src")]

from landing import write_landing  # noqa: E402
from reference_pages import write_pages  # noqa: E402

import graphfield  # noqa: E402

write_pages(DOCS / "reference" / "generated")

project = "graphfield"
author = "The graphfield developers"
project_copyright = author
version = release = graphfield.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_gallery.gen_gallery",
]
# The pages of docs/examples are for readers of the repository; here the gallery runs the same scripts.
exclude_patterns = ["examples/*", "examples.md", "**/README.md"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
suppress_warnings = ["config.cache"]

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"
autodoc_inherit_docstrings = True
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

sphinx_gallery_conf = {
    "examples_dirs": str(DOCS.parent / "examples"),
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "abort_on_example_error": True,
    "show_memory": False,
    "remove_config_comments": True,
    "write_computation_times": False,  # those pages load scripts from elsewhere
    "reset_argv": "gallery_arguments.no_arguments",
}

html_theme = "pydata_sphinx_theme"
html_title = f"graphfield {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "navigation_with_keys": True,
    "show_toc_level": 2,
    "navbar_align": "left",
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
    "secondary_sidebar_items": ["page-toc"],
}


def _finish(app, failed) -> None:
    if failed is None:
        write_landing(Path(app.outdir))


def setup(app) -> None:
    app.connect("build-finished", _finish)
