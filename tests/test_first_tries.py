"""What people try first is answered, and is still not there."""

import copy
import inspect
import pickle
import re
import runpy
import sys
from pathlib import Path
from subprocess import run

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.base.first_tries import FIRST_TRIES
from graphgrad.base.keywords import NO_CALL, NO_ELEMENT, OURS

from .each import each

PATH = Path(__file__).parent.parent / "tools" / "first_tries.py"
TOOL = runpy.run_path(str(PATH))


def test_the_page_says_what_is_said():
    """In a process of its own: near misses are told among all the names that are registered."""
    pytest.importorskip("scipy")
    tool = f"import runpy; print(runpy.run_path({str(PATH)!r})['document'](), end='')"
    made = run([sys.executable, "-c", tool], capture_output=True, text=True, check=True).stdout
    written = TOOL["DOCUMENT"].read_text()
    assert written == made, "run python tools/first_tries.py --write"
    assert made.count("| `") > 100
    assert "| NoneType |" not in made, "a row that is no error"


def test_a_name_that_is_not_there_is_an_attribute_error_that_ends_in_its_answer():
    for owner, lines in TOOL["named"]():
        for line in lines:
            error = TOOL["said"](line)
            assert type(error) is AttributeError, line
            assert str(error).endswith(FIRST_TRIES[owner][line.rpartition(".")[2]]), line


def test_what_answers_name_is_there():
    for tries in FIRST_TRIES.values():
        for answer in tries.values():
            for dotted in re.findall(r"\bgg\.([a-zA-Z_.0-9]*[a-zA-Z_0-9])", answer):
                found = gg
                for part in dotted.split("."):
                    found = getattr(found, part)


@pytest.mark.parametrize(
    ("wrong", "right"), [("relu", "gg.nn.relu"), ("ste", "gg.rules.ste"), ("erf", "gg.special.erf")]
)
def test_a_name_of_a_module_is_found(wrong, right):
    with pytest.raises(AttributeError, match=f"Write {right}"):
        getattr(gg, wrong)


def test_other_names_are_pythons_errors():
    t = gg.constant(1.0)
    for thing, name in [(gg, "plceholder"), (gg, "__wrapped__"), (gg.nn, "_x"), (t, "foo")]:
        with pytest.raises(AttributeError) as caught:
            getattr(thing, name)
        assert "\n" not in str(caught.value)


def test_tensors_are_what_they_were():
    """hasattr, dir, copies, pickles and NumPy see nothing of the names."""
    t = gg.constant([1.0, 2.0])
    assert not any(hasattr(t, name) for name in FIRST_TRIES["Tensor"])
    assert not set(dir(t)) & set(FIRST_TRIES["Tensor"])
    assert {"shape", "sum", "T"} <= set(dir(t))
    assert copy.copy(t) is not None
    assert pickle.loads(pickle.dumps(t)).shape == (2,)
    assert np.sin(t).node.type == "Sin"
    with pytest.raises(AttributeError, match=r"gg\.gradients"):
        t.requires_grad = True


def test_a_subclass_may_have_such_a_name():
    class Counting(gg.optimizers.SGD):
        def __init__(self):
            super().__init__(0.1)
            self.step = 3

    assert Counting().step == 3


def test_what_makes_a_rule_is_refused_where_it_is_put():
    x = gg.constant(1.0)
    with pytest.raises(gg.GradientError, match=r"write gg\.rules\.ste\("):
        gg.override_gradient(gg.rules.ste)
    with gg.override_gradient(gg.rules.ste()):
        y = gg.sign(x)
    assert gg.evaluate(gg.gradients(y, x)) == 1.0


def test_graphs_without_a_name_are_told_apart():
    graphs = [gg.Graph(), gg.Graph()]
    with graphs[0]:
        a = gg.constant(1.0)
    with graphs[1]:
        b = gg.constant(1.0)
    assert repr(graphs[0]) != repr(graphs[1])
    with pytest.raises(gg.GraphError, match=r"begun at test_first_tries\.py:\d+"):
        a + b
    assert "begun" not in repr(gg.Graph("named"))


KEYWORDS = [
    ("dim", lambda x: gg.sum(x, dim=0), r"says axis= for dim=\. It is gg\.sum\(x, axis=None, "),
    ("keepdim", lambda x: x.sum(keepdim=1), r"says keepdims= for keepdim="),
    ("size", lambda x: gg.zeros(size=2), r"says shape= for size=\. It is gg\.zeros\(shape, "),
    ("stddev", lambda x: gg.random.normal(2, stddev=1), r"says std= .* It is gg\.random\.normal\("),
    ("lr", lambda x: gg.optimizers.Adam(lr=1), r"says learning_rate= .* gg\.optimizers\.Adam\("),
    ("near", lambda x: gg.sum(x, axs=0), r"^Did you mean 'axis'\? It is gg\.sum"),
    ("far", lambda x: gg.sum(x, nonsense=0), r"^It is gg\.sum\(x, axis=None, keepdims=False, \*, "),
    ("by place", lambda x: gg.exp(input=x), r"^It is gg\.exp\(x, /\)\.$"),
]


@each(KEYWORDS, group=lambda name: "all")
def test_a_keyword_of_another_library_is_answered_where_its_error_leaves_a_graph(call, said):
    with pytest.raises(TypeError, match="unexpected keyword argument") as caught, gg.Graph():
        call(gg.constant([1.0, 2.0]))
    (note,) = caught.value.__notes__
    assert re.search(said, note)


@pytest.mark.parametrize("name", ["T", "shape", "size", "dtype"])
def test_a_tensor_or_an_attribute_that_is_called_is_answered(name):
    with pytest.raises(TypeError) as caught, gg.Graph():
        exec(f"gg.constant([1.0, 2.0]).{name}()", {"gg": gg})
    assert caught.value.__notes__ == [NO_CALL]


def test_other_things_that_are_called_are_pythons_errors():
    with pytest.raises(TypeError) as caught, gg.Graph():
        gg.constant([1.0, 2.0]).shape[0]()
    assert not getattr(caught.value, "__notes__", [])


def test_a_tensor_for_an_element_of_an_array_is_answered_once():
    for value, notes in ((gg.constant(1.0), [NO_ELEMENT]), ([1, 2], [])):
        with pytest.raises(ValueError, match="setting an array") as caught, gg.Graph(), gg.Graph():
            np.zeros(2)[0] = value
        assert getattr(caught.value, "__notes__", []) == notes


def test_a_keyword_is_answered_once_in_a_function_that_is_traced():
    with pytest.raises(TypeError) as caught, gg.Graph(), gg.Graph():
        gg.function(lambda a: gg.sum(a, dim=0))(np.ones(2))
    assert len(caught.value.__notes__) == 1


def test_other_errors_are_as_they_were():
    for call in (lambda: (lambda x: x)(dim=0), lambda: sorted([], dim=0), lambda: gg.sum()):
        with pytest.raises(TypeError) as caught, gg.Graph():
            call()
        assert not hasattr(caught.value, "__notes__")


def sum(x, axis=None):  # what Python says of it is what it says of gg.sum
    return gg.sum(x, axis)


def wrong(x):
    gg.sum(x)
    raise TypeError("sum() got an unexpected keyword argument 'dim'")


def test_a_function_of_others_that_has_the_name_of_ours_is_not_answered_for():
    calls = [lambda x: (gg.sum(x), sum(x, dim=0)), lambda x: np.sum(np.ones(2), dim=gg.sum), wrong]
    for call in calls:
        with pytest.raises(TypeError, match=r"^sum\(\) got an unexpected") as caught, gg.Graph():
            call(gg.constant([1.0, 2.0]))
        assert not hasattr(caught.value, "__notes__")


def test_a_keyword_is_answered_in_a_rule_too():
    sin = gg.override(lambda site, dy: gg.sum(dy, dim=0))(gg.sin)
    with pytest.raises(TypeError) as caught, gg.Graph() as graph:
        gg.gradients(sin(gg.constant([1.0, 2.0])), graph.nodes[0].outputs[0])
    where, said = caught.value.__notes__
    assert "in the gradient rule" in where
    assert "says axis= for dim=" in said


def test_keywords_that_are_ours_are_there():
    modules = (gg, gg.nn, gg.random, gg.optimizers)
    functions = [getattr(m, n) for m in modules for n in dir(m)]
    taken = {p for f in functions if callable(f) for p in parameters(f)}
    assert {ours for each in OURS.values() for ours in each} <= taken


def parameters(function):
    """The names of its parameters; none of what Python cannot tell."""
    try:
        return [*inspect.signature(function).parameters]
    except ValueError:
        return []
