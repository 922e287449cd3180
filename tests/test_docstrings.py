"""Public docstrings: their sections are there and in order, and their examples run.

    Parameters: one entry for each parameter, or for several ("x, y: ...")
    Returns:    of functions
    Raises:     where bad input is an error
    Gradient:   of functions of tensors in graphgrad.ops; "none" where the result has none
    Source:     where the formula is somebody's

and last an example, which sees gg, np and a default graph of its own, and NumPy prints as it does
by default; rules that it registers are gone after it.
"""

import ast
import dataclasses
import doctest
import inspect
import re
import sys
from collections import defaultdict
from importlib.util import find_spec
from linecache import getline
from shutil import which
from textwrap import dedent

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.extend import Op, documented
from graphgrad.ops.documented import sections as sections_of_op

HEADINGS = ("Parameters", "Returns", "Raises", "Gradient", "Source")
PUBLIC = (gg, gg.fft, gg.nn, gg.linalg, gg.special, gg.random)
PUBLIC += (gg.debug, gg.distributed, gg.initializers, gg.interop, gg.onnx, gg.optimizers, gg.rules)
PUBLIC += (gg.training,)
ALSO = (type(gg.select), gg.Graph.copy, gg.Graph.mark, gg.Graph.subgraph, gg.Graph.unmark)
ALSO += (gg.CompiledFunction.as_jax, gg.CompiledFunction.commit, gg.CompiledFunction.state_tree)
"""What has no name in these modules."""

COMPOSED = {"correlate", "factorial", "fft", "frexp", "ifft", "matrix_power", "norm"}
COMPOSED |= {"sinc", "vector_norm", "wald"}
"""Functions that return what an op makes of computed operands: their gradient is not the op's."""

NEEDS = {"graphgrad.inspect.write.tensorboard": "tensorboardX", "graphgrad.ops.special": "scipy"}
NEEDS |= {"graphgrad.interop.stablehlo": "jax", "graphgrad.interop.jax_programs": "jax"}
NEEDS |= {"graphgrad.interop.programs": "jax"}
NEEDS |= {"graphgrad.interop.jax_functions": "jax", "graphgrad.ops.foreign.jax_function": "jax"}
NEEDS |= {"graphgrad.interop.torch_functions": "torch", "graphgrad.ops.foreign.torch_call": "torch"}
NEEDS |= {"graphgrad.onnx": "onnx", "graphgrad.interop.torch_programs": "torch"}
"""The package without which examples of a module, or of those within it, cannot run."""


def public():
    """The public functions and classes, by the module that defines them; no exceptions."""
    found = defaultdict(dict)
    for module in PUBLIC:
        for name in dir(module):
            o = getattr(module, name)
            error = inspect.isclass(o) and issubclass(o, Exception)
            if name[0] != "_" and not error and (inspect.isclass(o) or inspect.isroutine(o)):
                found[o.__module__][o.__name__] = o
    for o in ALSO:
        found[o.__module__][o.__name__] = o
    return found


FOUND = public()


def lacking(module):
    """The package, or Graphviz, without which a module's examples cannot run here; or None."""
    for within, package in NEEDS.items():
        if f"{module}.".startswith(f"{within}.") and not find_spec(package):
            return package
    if module == "graphgrad.inspect.write.svg" and not (find_spec("pygraphviz") or which("dot")):
        return "Graphviz"
    return None


def sections(doc):
    """Headings and what stands under them, in order; first "" with the text before them."""
    text = doc.partition(">>>")[0]
    parts = re.split(r"\n([A-Z]\w+):(?=\s)", text)
    return [("", parts[0].strip()), *zip(parts[1::2], parts[2::2], strict=True)]


def entries(text):
    """The parameters that a section explains."""
    lines = text.split("\n")
    block = [line[4:] for line in lines if re.match(r"    \S", line)]
    heads = [m for line in [lines[0].strip(), *block] if (m := re.match(r"([\w*, ]+):", line))]
    return {name.strip("* ") for m in heads for name in m[1].split(",")}


def faults(o):
    """What a docstring lacks."""
    doc = inspect.getdoc(o) or ""
    found = sections(doc)
    given = [heading for heading, _ in found[1:]]
    text = dict(found)
    said = [f"{h}: is no section of ours" for h in given if h not in HEADINGS]
    said += [f"{heading}: is empty" for heading, body in found[1:] if not body.strip()]
    if not said and given != [h for h in HEADINGS if h in given]:
        said.append("its sections are out of order")
    if not text[""].partition("\n\n")[0].endswith((".", ":")):
        said.append("its summary is no sentence")
    if ">>>" not in doc:
        said.append("it has no example")
    if inspect.isclass(o):
        return said
    parameters = inspect.signature(o).parameters
    if set(parameters) != (entries(text["Parameters"]) if "Parameters" in text else set()):
        said.append(f"its parameters are {', '.join(parameters) or 'none'}")
    needed = ["Returns"]
    if o.__module__.startswith("graphgrad.ops.") and any(
        "TensorLike" in str(p.annotation) for p in parameters.values()
    ):
        needed.append("Gradient")
    return said + [f"{heading}: is missing" for heading in needed if heading not in text]


def test_public_docstrings_are_whole():
    found = [(f"{module}.{name}", o) for module in FOUND for name, o in FOUND[module].items()]
    said = {name: faults(o) for name, o in found}
    assert {name: lacks for name, lacks in said.items() if lacks} == {}


def op_of(function):
    """The op type by which its docstring is completed, if one is: `@documented(Exp)`."""
    code = function.__code__
    line = getline(code.co_filename, code.co_firstlineno)
    named = re.fullmatch(r"@documented\((?:\w+\.)?(\w+)\)\n", line)
    return named and gg.op_types()[named[1]]


def ops_returned(function):
    """The op types of which a return statement builds a node, as by `apply(Exp(), x)`."""
    values = {n: function.__globals__.get(n) for n in function.__code__.co_names}
    types = {n: v if isinstance(v, type) else type(v) for n, v in values.items()}
    types = {n: t for n, t in types.items() if issubclass(t, Op) and t.differentiable}
    if not types:
        return set()
    tree = ast.parse(dedent(inspect.getsource(function)))
    returns = [node for node in ast.walk(tree) if isinstance(node, ast.Return)]
    calls = [node for r in returns for node in ast.walk(r) if isinstance(node, ast.Call)]
    heads = [getattr(call.args[0], "func", call.args[0]) for call in calls if call.args]
    return {types[head.id] for head in heads if isinstance(head, ast.Name) and head.id in types}


def test_the_gradient_of_a_function_that_builds_an_op_is_stated_by_the_op_alone():
    wrong, composed = {}, set()
    for function in (o for module in FOUND.values() for o in module.values()):
        if not inspect.isfunction(function) or not function.__module__.startswith("graphgrad.ops."):
            continue
        own = "Gradient:" in function.__code__.co_consts[0]
        if op := op_of(function):
            stated = f"Gradient:{sections_of_op(op)['Gradient']}"
            if own or stated not in function.__doc__:
                wrong[function.__name__] = f"it states another gradient than its op:{stated}"
        elif own and len(ops_returned(function)) == 1:
            composed.add(function.__name__)
    assert wrong == {}
    assert composed == COMPOSED


def test_every_op_type_that_has_a_gradient_states_it():
    ours = [c for c in gg.op_types().values() if c.__module__.startswith("graphgrad.ops.")]
    differentiable = [c for c in ours if c.differentiable and c.vjp is not Op.vjp]
    assert len(differentiable) > 200
    assert [c.type for c in differentiable if "Gradient" not in sections_of_op(c)] == []


def test_a_section_of_the_functions_own_comes_before_those_of_its_op_and_families():
    class Family:
        """Family: one operand.

        Returns: something.

        Raises: an error.
        """

    class Halve(Family):
        """y = x / 2. Gradient: dx = dy / 2."""

    @documented(Halve)
    def halve(x):
        """Half of x.

        Parameters: x: any shape.

        Returns: x / 2.

        Source: a book.

        >>> halve(2)
        1
        """

    told = dict(sections(inspect.getdoc(halve)))
    assert list(told) == ["", *HEADINGS]
    assert told["Returns"].strip() == "x / 2."
    assert told["Raises"].strip() == "an error."
    assert told["Gradient"].strip() == "dx = dy / 2."
    assert inspect.getdoc(halve).endswith(">>> halve(2)\n1")


def in_one_line(x):
    """e**x."""


def in_more_lines(x):
    """e**x.

    Of any x.
    """


def with_an_example_that_follows(x):
    """e**x.
    >>> 1
    1
    """


@pytest.mark.parametrize("f", [in_one_line, in_more_lines, with_an_example_that_follows])
def test_sections_of_an_op_stand_apart_in_any_docstring(f):
    before = inspect.getdoc(f)
    after = inspect.getdoc(documented(gg.op_types()["Exp"])(f))
    assert "\n\nReturns: y, of the shape and dtype of x.\n\nRaises:" in after
    assert after.startswith(before.partition("\n>>>")[0] + "\n\nParameters: x: any shape;")
    assert after.endswith("\n\n>>> 1\n1" if ">>>" in before else "[DLMF 4.7(ii)].")


BESIDE = "what was written stays beside what stands for it"
HOLDS = {
    "Healed": BESIDE,
    "HealedSite": BESIDE,
    "heal": BESIDE,
    "At": "keeps the tensor for the method that comes after [key]",
    "vmap": "the function of its example builds a loss, and reads its gradient alone",
    **dict.fromkeys(
        (
            *(
                "bernoulli_st",
                "binary_mapper",
                "bundled",
                "shake",
                "categorical_st",
                "direct_feedback",
                "gapped_st",
            ),
            *("jd_constant", "jd_graddrop", "jd_pcgrad", "relaxed_bernoulli", "stochastic_spike"),
            *("vq_rotate_to", "event_time", "rebar", "relax"),
        ),
        "what it is given is read by its rule alone",
    ),
}
"""Examples that build what nobody reads, and why that is right."""


def tensors_in(o):
    """The tensors in what a function returned."""
    if isinstance(o, gg.Tensor):
        return {o}
    if isinstance(o, dict):
        parts = o.values()
    elif isinstance(o, list | tuple | set):
        parts = o
    elif dataclasses.is_dataclass(o) and hasattr(o, "__dict__"):
        parts = vars(o).values()
    else:
        return set()
    return set().union(*map(tensors_in, list(parts)))


def run(test):
    """What an example's run says was wrong, and the types of nodes that nobody reads.

    That is those that its calls built, nobody reads and no call returned; but not those that a pass
    derives from others, whose unread parts a later pass drops.
    """
    returned = set()

    def note(frame, event, value):
        if event == "return" and any(
            f is not None and f.f_code.co_filename.startswith("<doctest")
            for f in (frame, frame.f_back)
        ):
            returned.update(tensors_in(value))

    gg.reset_default_graph()
    graph, failed = gg.default_graph(), []
    test.globs = {"gg": gg, "np": np}
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
    sys.setprofile(note)
    try:
        runner.run(test, out=failed.append, clear_globs=False)
    finally:
        sys.setprofile(None)
    read = {t for n in graph.nodes for t in n.inputs} | returned | tensors_in(test.globs)
    given = ("Placeholder", "Variable")
    kept = [n for n in graph.nodes if n.origin is None and n.op.type not in given]
    return "".join(failed), [n.op.type for n in kept if not read.intersection(n.outputs)]


@pytest.mark.parametrize("module", sorted(FOUND))
def test_S09_examples_of_public_docstrings_run_and_build_no_node_that_nobody_reads(module):
    """Such a node would be one more output of every region around a call, and the region's rule
    would get a gradient of it."""
    if lacks := lacking(module):
        pytest.skip(f"no {lacks}")
    tests = [t for o in FOUND[module].values() for t in doctest.DocTestFinder().find(o)]
    registered, wrong, unread = set(gg.registered_gradients()), [], {}
    for test in tests:
        with np.printoptions(precision=8, suppress=False, threshold=1000, linewidth=75):
            said, unread[test.name] = run(test)
        wrong.append(said)
        for name in set(gg.registered_gradients()) - registered:
            gg.unregister_gradient(name)
    assert "".join(wrong) == ""
    assert {n: nodes for n, nodes in unread.items() if nodes and n not in HOLDS} == {}


def whole(x, y=1):
    """Their sum.

    Parameters:
        x, y: of any shape.

    Returns: x + y.

    >>> 1 + 1
    2
    """


@pytest.mark.parametrize(
    ("before", "after", "fault"),
    [
        ("x, y", "x", "its parameters are x, y"),
        ("x, y", "x, y, z", "its parameters are x, y"),
        ("Returns: x + y.", "Returns:", "Returns: is empty"),
        ("Returns:", "Gives:", "Gives: is no section of ours"),
        ("Returns:", "It is", "Returns: is missing"),
        (">>>", "$", "it has no example"),
        ("sum.", "sum", "its summary is no sentence"),
        ("Parameters:", "Source: a book.\n\nParameters:", "its sections are out of order"),
    ],
)
def test_what_a_docstring_lacks_is_seen(before, after, fault):
    assert faults(whole) == []

    def lacking(x, y=1):
        pass

    lacking.__doc__ = inspect.getdoc(whole).replace(before, after)
    assert fault in faults(lacking)
