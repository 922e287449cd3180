"""A graph in a file differentiates as at home, where nobody has the user's code."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import graphgrad as gg

from ..each import each
from ..survival.transforms import around_cond, within_cond, world
from . import journeys
from .answering import X, answers, loaded, same

ROWS = [(row.name, row) for row in journeys.SAVED]
ROOT = Path(gg.__file__).parent.parent


@each(ROWS, lambda name: name[:3])
def test_S32_an_override_means_in_a_file_what_it_means_at_home(row, tmp_path):
    """Bit for bit, at orders 1 to 3 and forward; saved again it is the same file."""
    path, again = tmp_path / "a.gg", tmp_path / "b.gg"
    w = journeys.built(row)
    nodes = len(w.x.graph)
    journeys.saved(path, w)
    assert len(w.x.graph) == nodes
    home = answers(w.x, w.loss, w.wrt)
    with journeys.without_rules():
        file = gg.load(path)
        gg.save(again, file.graph, functions=file.functions)
        there = answers(*loaded(path))
    assert {k for k in home if not same(home[k], there[k])} == set()
    assert path.read_bytes() == again.read_bytes()


@pytest.mark.ci
@each(ROWS, lambda name: name[:3])
def test_S32_a_batch_of_what_was_loaded(row, tmp_path):
    w = journeys.built(row)
    journeys.saved(tmp_path / "a.gg", w)
    home = journeys.batched(w.x, w.loss, w.wrt)
    with journeys.without_rules():
        there = journeys.batched(*loaded(tmp_path / "a.gg"))
    assert home == there if isinstance(home, str) else np.array_equal(home, there)


@pytest.mark.ci
@pytest.mark.parametrize("backend", ["llvm", "jax"])
@each(ROWS, lambda name: name[:3])
def test_what_was_loaded_compiles(row, backend, tmp_path):
    pytest.importorskip({"llvm": "llvmlite"}.get(backend, backend))
    w = journeys.built(row)
    journeys.saved(tmp_path / "a.gg", w)
    home = answers(w.x, w.loss, w.wrt)
    with journeys.without_rules():
        there = answers(*loaded(tmp_path / "a.gg"), backend=backend)
    for name, expected in home.items():
        if isinstance(expected, str):
            assert there[name] == expected
            continue
        for a, b in zip(expected, there[name], strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("body", [within_cond, around_cond])
@pytest.mark.parametrize("name", ["Closure", "Many", "SecondRule"])
def test_S32_a_mark_in_a_branch_and_its_gradient(name, body, tmp_path):
    """The gradient of a choice was built before, and is differentiated again there."""
    row = next(r for r in journeys.SAVED if r.name == name)
    with gg.Graph():
        w = world(row, body)
        (dx,) = gg.gradients([w.loss], [w.x])
        gg.save(tmp_path / "a.gg", w.x.graph, functions={"dx": ([w.x], [w.loss, dx])})
    with journeys.without_rules():
        entry = gg.load(tmp_path / "a.gg").functions["dx"]
        x, (loss, once) = entry.inputs[0], entry.outputs
        there = answers(x, loss, [x]) | {"again": again(x, once)}
    home = answers(w.x, w.loss, [w.x]) | {"again": again(w.x, dx)}
    assert {k for k in home if not same(home[k], there[k])} == set()


def again(x, dx):
    """A gradient, and its own."""
    with x.graph:
        return gg.evaluate([dx, *gg.gradients([gg.sum(dx * dx)], [x])], {x: X})


def test_S32_what_a_call_chose_for_a_group_means_the_same_there(tmp_path):
    """A second derivative of it, and the same file again."""
    with gg.Graph() as graph:
        x = gg.placeholder((3,), name="x")
        a = gg.sin(x)
        b = gg.exp(a)
        group = gg.select.nodes(a, b)
        (dx,) = gg.gradients(gg.sum(b), [x], overrides={group: lambda site, dy: dy * b * x})
    gg.save(tmp_path / "a.gg", graph, functions={"dx": ([x], dx)})
    file = gg.load(tmp_path / "a.gg")
    gg.save(tmp_path / "b.gg", file.graph, functions=file.functions)
    assert (tmp_path / "a.gg").read_bytes() == (tmp_path / "b.gg").read_bytes()
    entry = file.functions["dx"]
    home, there = again(x, dx), again(entry.inputs[0], entry.outputs)
    assert same(home, there)
    np.testing.assert_allclose(home[0], np.exp(np.sin(X)) * X)


NOBODY = """
import sys
sys.path.insert(0, {root!r})
import pickle
import warnings
warnings.simplefilter("ignore")
from tests.files.answering import answers, loaded
found = {{name: answers(*loaded(path)) for name, path in {paths!r}.items()}}
with open({out!r}, "wb") as file:
    pickle.dump(found, file)
"""


@pytest.mark.ci
def test_S32_a_fresh_process_without_the_users_code_answers_alike(tmp_path):
    paths, home = {}, {}
    for row in journeys.SAVED:
        w = journeys.built(row)
        paths[row.name] = str(tmp_path / f"{row.name}.gg")
        journeys.saved(paths[row.name], w)
        home[row.name] = answers(w.x, w.loss, w.wrt)
    code = NOBODY.format(root=str(ROOT), paths=paths, out=str(tmp_path / "out"))
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path, env=dict(os.environ))
    there = pickle.loads((tmp_path / "out").read_bytes())
    for name, asked in home.items():
        wrong = {k for k in asked if not same(asked[k], there[name][k])}
        assert wrong == set(), name


def test_S32_a_python_function_is_refused_by_name(tmp_path):
    row = next(r for r in journeys.OVERRIDES if r.name == "BlackBox")
    with pytest.raises(
        gg.FileError, match=r"node 6 \(overrides.py:\d+\) has the function .*register_function"
    ):
        journeys.saved(tmp_path / "a.gg", journeys.built(row))
    assert not list(tmp_path.iterdir())
