"""Links of tutorials to where their notebooks run, if conf.py knows such places.

`-D notebook_links="Open in Colab=https://colab.research.google.com/github/OWNER/REPO/blob/BRANCH/"`
adds the link to the head of each tutorial; several are separated by commas, as a JupyterLite site
with `.../lab/index.html?path=` at its end. The name of the notebook follows the address. Without
addresses, pages link to nothing outside of the site.
"""

from html import escape

PAGES = "_made/tutorials/plot_"


def at_head(app, name, _template, context, _doctree):
    """Put the links above a tutorial, as Sphinx asks for when it writes the HTML."""
    if name.startswith(PAGES) and app.config.notebook_links:
        context["body"] = links(app.config.notebook_links, name) + context["body"]


def links(places, page):
    """A paragraph of links to the notebook of a page. ValueError for a place without an address."""
    notebook = f"{page.rpartition('/')[2]}.ipynb"
    made = []
    for place in places:
        text, _, address = place.partition("=")
        if not address.startswith("https://"):
            raise ValueError(f"notebook_links are TEXT=https://ADDRESS, got {place!r}")
        made.append(f'<a href="{escape(address + notebook)}">{escape(text)}</a>')
    return f'<p class="notebooks">{" ".join(made)}</p>'
