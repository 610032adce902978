"""What Sphinx is told; ``website.staging`` makes the pages that it reads."""

from importlib.util import find_spec
from typing import Any, get_type_hints

from bubbleproof.version import package_version

project = "bubbleproof"
author = "the authors of bubbleproof"
project_copyright = "the authors of bubbleproof, Apache-2.0"
version = release = package_version()

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
napoleon_google_docstring = False
napoleon_use_rtype = False
autodoc_mock_imports = [] if find_spec("torch") else ["torch"]
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
add_module_names = False
highlight_language = "text"

html_theme = "pydata_sphinx_theme"
html_title = "bubbleproof"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_favicon = "static/mark.svg"
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_theme_options = {
    "logo": {
        "text": "bubbleproof",
        "image_light": "static/mark.svg",
        "image_dark": "static/mark.svg",
    },
    "header_links_before_dropdown": 8,
    "navbar_end": ["theme-switcher"],
    "show_toc_level": 2,
    "show_nav_level": 1,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "search_bar_text": "Search these pages",
}
html_sidebars: dict[str, list[str]] = {"index": [], "search": []}


def _plain_hints(app: object, thing: Any, is_method: bool) -> None:
    """Let a signature show types without what our readers of files attach to them."""
    del app, is_method
    try:
        thing.__annotations__ = get_type_hints(thing)
    except (AttributeError, NameError, TypeError):
        return  # named for annotations alone: shown as they are written


def setup(app: Any) -> None:
    """What Sphinx calls first."""
    app.connect("autodoc-before-process-signature", _plain_hints)
