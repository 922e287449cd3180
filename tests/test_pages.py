"""Every block of Python in docs/ runs: those of a page one after the other, in an empty folder."""

import contextvars
import doctest
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import graphgrad as gg

DOCS = Path(__file__).resolve().parent.parent / "docs"
FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PYTHON, SHELL, SHOWN = ("python", "pycon"), ("bash", "console"), ("cpp", "html")

NEEDS = {"bfloat16.md": ["ml_dtypes"], "jax.md": ["jax", "flatbuffers"], "scale.md": ["jax"]}
NEEDS |= {"torch.md": ["torch"], "onnx.md": ["onnx", "onnxruntime"], "howto/open.md": ["jax"]}
NEEDS |= {"onnx_gradients.md": ["onnx", "onnxruntime"]}
NEEDS |= {"quantised.md": ["onnx", "onnxruntime", "sklearn"]}
"""The packages without which a page cannot run."""

ELSEWHERE = {"tf1.md": "tests/tf1/test_document.py"}
"""What runs a page's blocks in another way."""

NOT_ALONE = {"scale.md": "gg.distributed.start("}
"""How a block begins that takes several processes; tests/execute/test_jax_processes.py has such."""


def pages():
    """Every page that somebody wrote, by its name below docs/."""
    found = (path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))
    return sorted(name for name in found if not name.startswith("_"))


def fences(page):
    """(what is said of it, the line before its text, its text) for each fenced block."""
    text = (DOCS / page).read_text(encoding="utf-8")
    return [(m[1], text.count("\n", 0, m.start(2)), m[2]) for m in FENCE.finditer(text)]


def with_python():
    """Each page with blocks of Python: those that load large packages are `ci`."""
    for page in pages():
        if page not in ELSEWHERE and any(language in PYTHON for language, *_ in fences(page)):
            yield pytest.param(page, marks=[pytest.mark.ci] if page in NEEDS else [])


@pytest.fixture
def _jax_as_it_was():
    """A page may turn 64 bits on for its process."""
    yield
    if "jax" in sys.modules:
        sys.modules["jax"].config.update("jax_enable_x64", False)


@pytest.mark.parametrize("page", list(with_python()))
@pytest.mark.usefixtures("own_names", "_jax_as_it_was")
def test_the_blocks_of_a_page_run(page, tmp_path, monkeypatch, capsys):
    for package in NEEDS.get(page, ()):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    given = GIVEN.get(page, dict)()
    contextvars.copy_context().run(run, page, {"gg": gg, "np": np, **given})


def run(page, names):
    """Run the blocks of Python in a page; those with prompts print what they show."""
    said = []
    for language, line, text in fences(page):
        if language == "python" and not text.startswith(NOT_ALONE.get(page, "#!")):
            exec(compile("\n" * line + text, page, "exec"), names)
        elif language == "pycon":
            gg.reset_default_graph()
            shown = doctest.DocTestParser().get_doctest(text, names, page, page, line)
            options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
            runner = doctest.DocTestRunner(verbose=False, optionflags=options)
            runner.run(shown, out=said.append, clear_globs=False)
            names.update(shown.globs)
    assert "".join(said) == ""


def test_what_is_said_of_pages_holds():
    """Blocks are of languages that we know, exceptions of pages, and no program lacks a fence."""
    said = {(page, *language.split()[:1]) for page in pages() for language, *_ in fences(page)}
    known = {*PYTHON, *SHELL, *SHOWN, "text", "{toctree}", "{image}"}
    assert [s for s in said if not known.issuperset(s[1:])] == []
    assert {*NEEDS, *ELSEWHERE, *NOT_ALONE, *GIVEN} <= set(pages())
    for page, start in NOT_ALONE.items():
        assert any(text.startswith(start) for _, _, text in fences(page))
    for page in pages():
        prose = FENCE.sub("", (DOCS / page).read_text(encoding="utf-8"))
        assert not re.search(r"\n\n    .*\b(gg\.|import )", prose), page


def models():
    """What the page of ONNX takes for granted: models in files, and images."""
    from tests.onnx_models.making import model_of, node, onnx

    rng = np.random.default_rng(0)
    shapes = {"conv.weight": (4, 3, 3, 3), "fc.weight": (4 * 6 * 6, 3)}
    weights = {n: rng.normal(size=shape).astype("float32") for n, shape in shapes.items()}
    a, b, c = "/layer1/conv/Conv_output_0", "/layer1/relu/Relu_output_0", "/Flatten_output_0"
    nodes = [
        node("Conv", ["x", "conv.weight"], [a], name="/layer1/conv/Conv"),
        node("Relu", [a], [b], name="/layer1/relu/Relu"),
        node("Flatten", [b], [c], name="/Flatten"),
        node("MatMul", [c, "fc.weight"], ["logits"], name="/fc/MatMul"),
    ]
    model = model_of(nodes, {"x": ["N", 3, 8, 8]}, {"logits": ["N", 3]}, weights)
    for name in ("resnet.onnx", "vgg.onnx"):
        onnx.save(model, name)
    return {"images": rng.uniform(-2.1, 2.6, size=(2, 3, 8, 8)).astype("float32")}


def differentiable_models():
    """What the page of gradients takes for granted: models in files."""
    from tests.onnx_models.making import model_of, node, onnx

    rng = np.random.default_rng(0)
    moved = [node("MatMul", ["pos", "strain"], ["change"]), node("Add", ["pos", "change"], ["at"])]
    square = [node("Mul", ["at", "at"], ["squares"]), node("Exp", ["squares"], ["wells"])]
    energy = [*moved, *square, node("ReduceSum", ["wells"], ["energy"], keepdims=0)]
    inputs = {"pos": ["atoms", 3], "strain": [3, 3]}
    onnx.save(model_of(energy, inputs, {"energy": []}), "energy.onnx")
    shapes = {"filter": (4, 3, 3, 3), "fc": (4, 3)}
    weights = {n: rng.normal(size=shape).astype("float32") for n, shape in shapes.items()}
    classifier = [
        node("Conv", ["image", "filter"], ["maps"], strides=[2, 2]),
        node("Relu", ["maps"], ["relu"]),
        node("GlobalAveragePool", ["relu"], ["means"]),
        node("Flatten", ["means"], ["flat"]),
        node("MatMul", ["flat", "fc"], ["logits"]),
    ]
    image, logits = {"image": ["N", 3, "H", "W"]}, {"logits": ["N", 3]}
    onnx.save(model_of(classifier, image, logits, weights), "classifier.onnx")
    sphere = [node("ReduceL2", ["x", "axes"], ["distance"], keepdims=0)]
    axes = {"axes": np.array([1])}
    onnx.save(model_of(sphere, {"x": ["N", 3]}, ["distance"], axes), "distance.onnx")
    words = [node("Gather", ["table", "ids"], ["words"]), node("Exp", ["words"], ["y"])]
    inputs = [({"ids": ["N"]}, 7)]
    onnx.save(model_of(words, inputs, ["y"], {"table": weights["fc"]}), "words.onnx")
    magic = [node("Magic", ["x"], ["m"], domain="com.acme", scale=0.5), node("Exp", ["m"], ["y"])]
    made = model_of(magic, {"x": ["N", 3]}, ["y"], domains=[("com.acme", 1)])
    made.graph.value_info.append(onnx.helper.make_tensor_value_info("m", 1, ["N", 3]))
    onnx.save(made, "magic.onnx")
    return {}


GIVEN = {"onnx.md": models, "onnx_gradients.md": differentiable_models}
