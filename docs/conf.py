"""How Sphinx builds this site: `python -m sphinx -W --keep-going -b html docs docs/_build/html`."""

import importlib.metadata
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from building import docstrings, machines, notebooks, pages, times
from sphinx.pycode import ModuleAnalyzer

project = "graphgrad"
author = "The graphgrad developers"
release = importlib.metadata.version("graphgrad")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "building", "tutorials"]

highlight_language = "none"  # of blocks that do not say theirs
myst_heading_anchors = 4
autosummary_generate = False
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
maximum_signature_line_length = 88
suppress_warnings = ["config.cache", "ref.python"]  # `type` in a signature is Python's

sphinx_gallery_conf = {
    "examples_dirs": "tutorials",
    "gallery_dirs": "_made/tutorials",
    "filename_pattern": r"\.py$",
    "within_subsection_order": "building.times.number",
    "abort_on_example_error": True,
    "show_memory": False,
    "write_computation_times": False,  # its page would ask the network for a table
    "show_signature": False,
    "download_all_examples": False,
    "reset_modules": ("building.fresh.reset", "matplotlib"),
}

html_theme = "furo"
html_title = "graphgrad"
html_show_sourcelink = False
html_show_copyright = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = [("sliders.js", {"defer": "defer"})]
html_search_scorer = str(Path(__file__).parent / "building" / "search.js")
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
linkcheck_anchors = False


def setup(app):
    """Write the pages that are made of the code, and read docstrings as they are written.

    A function is shown with the signature that runs: its overloads are for type checkers.
    """
    ModuleAnalyzer.overloads = property(lambda analyzer: {}, lambda analyzer, overloads: None)
    app.connect("builder-inited", pages.write)
    app.connect("source-read", times.at_head)
    app.connect("autodoc-process-docstring", docstrings.process)
    app.connect("autodoc-process-signature", docstrings.signature)
    app.connect("autodoc-skip-member", docstrings.skipped)
    app.connect("html-page-context", machines.page)
    app.add_config_value("notebook_links", [], "html", [list])
    app.connect("html-page-context", notebooks.at_head)
    app.connect("build-finished", machines.index)
