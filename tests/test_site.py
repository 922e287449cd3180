"""The documentation as Markdown, for programs that read: what stands in a page stands there too."""

from pathlib import Path
from textwrap import dedent
from types import SimpleNamespace

import pytest

nodes = pytest.importorskip("docutils.nodes")
core = pytest.importorskip("docutils.core")

QUIET = {"report_level": 5, "doctitle_xform": False}
DOCS = Path(__file__).resolve().parent.parent / "docs"


@pytest.fixture
def machines(monkeypatch):
    monkeypatch.syspath_prepend(DOCS)
    from building import machines

    return machines


def parsed(text):
    return core.publish_doctree(dedent(text), settings_overrides=QUIET)


def test_a_page_as_markdown(machines):
    page = """
    Title
    =====

    Some *words*, **strong** ones, ``code | bars`` and `a link <https://example.org/a.html>`_.

    Below
    -----

    - one
    - two

      - deep

    1. first

    .. code-block:: python

        x = "```"

    .. list-table::
        :header-rows: 1

        * - a
          - b
        * - 1
          - ``p | q``

    .. note:: Take care.

    .. image:: a.svg
        :alt: A picture

    .. A comment.
    """
    assert machines.markdown(parsed(page)).splitlines() == [
        "# Title",
        "",
        "Some *words*, **strong** ones, `code | bars` and [a link](https://example.org/a.html).",
        "",
        "## Below",
        "",
        "- one",
        "- two",
        "  - deep",
        "",
        "1. first",
        "",
        "````",
        'x = "```"',
        "````",
        "",
        "| a | b |",
        "| --- | --- |",
        r"| 1 | `p \| q` |",
        "",
        "> Take care.",
        "",
        "![A picture](a.svg)",
    ]
    code = nodes.literal_block("", "x = 1", language="python")
    assert machines.markdown(code) == "```python\nx = 1\n```\n"


def test_links_within_the_site_lead_to_markdown(machines):
    inside = nodes.reference("", "there", refuri="../there.html#part", internal=True)
    assert machines.inline(inside) == "[there](../there.md#part)"
    outside = nodes.reference("", "there", refuri="https://example.org/there.html")
    assert machines.inline(outside) == "[there](https://example.org/there.html)"


def test_every_page_is_listed_once(machines):
    texts = {
        "index": "Home\n====\n\nIt does. More.",
        "a": "A\n=\n\nAll of a.",
        "b": "B\n=\n\nAll b.",
    }
    env = SimpleNamespace(
        config=SimpleNamespace(root_doc="index"),
        toctree_includes={"index": ["a", "c"], "a": ["b", "a"], "c": []},
        titles={name: nodes.title("", name.upper()) for name in "abc"},
        get_doctree=lambda name: parsed(texts.get(name, "C\n=\n\nA page::\n\n    code")),
    )
    for name, text in texts.items():
        assert machines.summary(parsed(text)) or name == "c"
    assert machines.listed(env, "graph") == (
        "# graph\n\n> It does.\n\n## A\n\n- [A](a.md): All of a.\n- [B](b.md): All b.\n\n"
        "## More\n\n- [C](c.md): A page\n"
    )


def test_notebooks_are_linked_only_where_there_are_places(monkeypatch):
    monkeypatch.syspath_prepend(DOCS)
    from building import notebooks

    def body(name, *places):
        app, context = SimpleNamespace(config=SimpleNamespace(notebook_links=places)), {"body": "b"}
        notebooks.at_head(app, name, "page.html", context, None)
        return context["body"]

    tutorial, colab = "_made/tutorials/plot_1_first", "https://example.org/github/a/b/blob/main/"
    assert body(tutorial) == "b"
    assert body("index", f"Open in Colab={colab}") == "b"
    link = f'<a href="{colab}plot_1_first.ipynb">Open in Colab</a>'
    lite = '<a href="https://example.org/lab?path=plot_1_first.ipynb">Try</a>'
    made = body(tutorial, f"Open in Colab={colab}", "Try=https://example.org/lab?path=")
    assert made == f'<p class="notebooks">{link} {lite}</p>b'
    with pytest.raises(ValueError, match="TEXT=https://ADDRESS"):
        body(tutorial, "Open in Colab")
