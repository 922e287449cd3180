"""The site for programs that read: Markdown of every page beside its HTML, and llms.txt.

`llms.txt` lists the pages in the order of the table of contents, each with its first sentence, as
llmstxt.org has it. Nothing here needs a network: links are relative.
"""

import re
from pathlib import Path

from docutils import nodes

HEADING = "#"
ASIDES = ("note", "warning", "tip", "hint", "important", "admonition", "seealso")
"""Admonitions, which Markdown shows as quotations."""
OF_CODE = ("desc_signature", "code_links_block")
NO_SUMMARY = re.compile(r"\d+ (minute|second)s? to read|Values: |Here too: |pip install ")
LEFT_OUT = "sphx-glr-download-link-note"
DROPPED = (nodes.comment, nodes.target, nodes.system_message)


def page(app, name, _template, context, doctree):
    """Write the Markdown of a page, as Sphinx asks for when it writes the HTML, and link to it."""
    if doctree is None or app.builder.name != "html":
        return
    path = Path(app.outdir) / f"{name}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    for picture in doctree.findall(is_drawn):
        file = f"_images/{Path(picture['uri']).name}"
        picture.replace_self(nodes.image(uri=context["pathto"](file, 1), alt=picture["alt"]))
    path.write_text(markdown(doctree), encoding="utf-8")
    link = f'<link rel="alternate" type="text/markdown" href="{name.rpartition("/")[2]}.md">'
    context["metatags"] = context.get("metatags", "") + link


def is_drawn(node):
    """Whether it is a picture that a tutorial drew."""
    return node.tagname == "imgsgnode"


def index(app, exception):
    """Write llms.txt when the site is built."""
    if exception is None and app.builder.name == "html":
        text = listed(app.env, app.config.project)
        (Path(app.outdir) / "llms.txt").write_text(text, encoding="utf-8")


def listed(env, project):
    """The text of llms.txt: what the project is, and every page below its section."""
    root = env.config.root_doc
    lines = [f"# {project}", "", f"> {summary(env.get_doctree(root))}"]
    single, seen = [], {root}
    for section in env.toctree_includes[root]:
        told = [entry(env, name) for name in pages(env, section, seen)]
        if len(told) == 1:
            single += told
        else:
            lines += ["", f"## {env.titles[section].astext()}", "", *told]
    return "\n".join([*lines, "", "## More", "", *single, ""])


def pages(env, name, seen):
    """A page and those below it, in the order of the table of contents, each once."""
    if name not in seen:
        seen.add(name)
        yield name
        for below in env.toctree_includes.get(name, ()):
            yield from pages(env, below, seen)


def entry(env, name):
    """A page as an item of a list."""
    told = summary(env.get_doctree(name))
    return f"- [{env.titles[name].astext()}]({name}.md)" + (f": {told}" if told else "")


def summary(doctree):
    """The first sentence of a page, on one line."""
    for paragraph in doctree.findall(nodes.paragraph):
        if isinstance(paragraph.parent, nodes.section):
            text = " ".join(paragraph.astext().split())
            for sentence in re.split(r"(?<=[.!?]) (?=\S)", text):
                if " " in sentence and not NO_SUMMARY.match(sentence):
                    return sentence.removesuffix(":")
    return ""


def markdown(node):
    """A document as Markdown."""
    return re.sub(r"\n{3,}", "\n\n", block(node, 0)).strip() + "\n"


def block(node, level):
    """What stands on lines of its own, and a blank line behind it."""
    match node:
        case nodes.title() if isinstance(node.parent, nodes.Admonition):
            return f"**{inline(node)}**\n\n"
        case nodes.title() | nodes.rubric():
            return f"{HEADING * max(1, level)} {inline(node)}\n\n"
        case nodes.section():
            return "".join(block(child, level + 1) for child in node.children)
        case nodes.literal_block() | nodes.doctest_block():
            return fence(node.astext(), node.get("language", ""))
        case nodes.bullet_list():
            return items(node, level, ["-"] * len(node.children))
        case nodes.enumerated_list():
            return items(node, level, [f"{i + 1}." for i in range(len(node.children))])
        case nodes.definition_list_item():
            term, *told = node.children
            return f"**{inline(term)}**\n\n" + "".join(block(child, level) for child in told)
        case nodes.table():
            return table(node)
        case nodes.image():
            return f"{inline(node)}\n\n"
        case nodes.math_block():
            return f"$$\n{node.astext()}\n$$\n\n"
        case nodes.block_quote():
            return quoted(node, level)
        case nodes.raw():
            return ""
        case nodes.transition():
            return "---\n\n"
        case _ if isinstance(node, DROPPED):
            return ""
        case nodes.TextElement() if node.tagname not in OF_CODE:
            return f"{inline(node)}\n\n"
    if node.tagname == "code_links_block":  # of a tutorial
        return fence(node.astext(), "python")
    if node.tagname in ASIDES:
        return "" if LEFT_OUT in node["classes"] else quoted(node, level)
    if node.tagname == "desc_signature":
        return f"{HEADING * (level + 1)} `{' '.join(node.astext().split())}`\n\n"
    if node.tagname == "desc_content":
        level += 1
    return "".join(block(child, level) for child in node.children)


def inline(node):
    """What stands in a line."""
    match node:
        case nodes.Text():
            return " ".join(re.split(r"\s+", node.astext()))
        case nodes.literal():
            ticks = "``" if "`" in node.astext() else "`"
            return f"{ticks}{node.astext()}{ticks}"
        case nodes.math():
            return f"${node.astext()}$"
        case nodes.image():
            return f"![{node.get('alt', '')}]({node['uri']})"
        case nodes.raw():
            return " " if node.astext().startswith("<br") else ""
        case _ if isinstance(node, DROPPED):
            return ""
    text = "".join(inline(child) for child in node.children)
    match node:
        case nodes.emphasis():
            return f"*{text}*"
        case nodes.strong():
            return f"**{text}**"
        case nodes.reference() if text and (node.get("refuri") or node.get("refid")):
            return f"[{text}]({target(node)})"
    return text


def target(node):
    """Where a link leads: to the Markdown of a page of this site."""
    uri = node.get("refuri") or f"#{node['refid']}"
    return re.sub(r"\.html(?=#|$)", ".md", uri) if node.get("internal") else uri


def items(node, level, marks):
    """A list, what belongs to an item indented."""
    found = ""
    for mark, item in zip(marks, node.children, strict=True):
        text = "".join(block(child, level) for child in item.children).strip()
        text = re.sub(r"\n\n(?=- |\d+\. )", "\n", text)
        found += f"{mark} {indented(text, len(mark) + 1)}\n"
    return found + "\n"


def indented(text, width):
    """Text whose later lines are moved to the right."""
    return re.sub(r"\n(?=[^\n])", "\n" + " " * width, text)


def quoted(node, level):
    """A quotation."""
    text = "".join(block(child, level) for child in node.children).strip()
    return "".join(f"> {line}".rstrip() + "\n" for line in text.split("\n")) + "\n"


def fence(text, language):
    """A block of code."""
    language = "" if language in ("none", "default") else language
    ticks = "`" * max(3, 1 + max(map(len, re.findall(r"`+", text)), default=0))
    return f"{ticks}{language}\n{text.rstrip()}\n{ticks}\n\n"


def table(node):
    """A table of pipes; its first row is the head where it has none."""
    rows = [[cell(entry) for entry in row.children] for row in node.findall(nodes.row)]
    head, *rest = rows
    lines = [head, ["---"] * len(head), *rest]
    return "\n".join(f"| {' | '.join(row)} |" for row in lines) + "\n\n"


def cell(entry):
    """What stands in a cell, on one line."""
    text = " ".join("".join(block(child, 0) for child in entry.children).split())
    return re.sub(r"(?<!\\)\|", r"\\|", text)
