"""Selections: what they find, how they compose, what they say where they find nothing."""

from __future__ import annotations

import pytest

import graphgrad as gg
from graphgrad.ops.elementwise.arithmetic import add, multiply
from graphgrad.ops.elementwise.exponential import exp, log
from graphgrad.ops.elementwise.trigonometry import cos, sin, tanh
from graphgrad.ops.shape.joining import split
from graphgrad.ops.sources import placeholder, variable
from graphgrad.regions.select import Group, as_selection, select

from ..differentiate.helpers import default, message_of


@pytest.fixture
def model(graph):
    """x -> enc/(exp, sin) -> (cos, tanh) -> dec/exp; with a side branch of enc."""
    m = {"x": placeholder((), name="x")}
    with gg.name_scope("enc"):
        m["a"] = exp(m["x"])
        m["b"] = sin(m["a"])
        m["w"] = variable(2.0, name="w")
        m["side"] = cos(m["a"])
    m["c"] = cos(m["b"])
    m["d"] = tanh(m["c"])
    with gg.name_scope("dec"):
        m["y"] = exp(m["d"])
    return m


def found(selection, graph):
    """Nodes and regions as they are, groups as lists of nodes."""
    return [
        list(t.nodes) if isinstance(t, Group) else t for t in as_selection(selection).find(graph)
    ]


def nodes(model, names):
    return [model[k].node for k in names]


# --- what each kind finds ------------------------------------------------------------------------


def test_S04_op_name_and_where_make_every_node_a_site_of_its_own(graph, model):
    assert found(select.op("Exp"), graph) == nodes(model, "ay")
    assert found(select.op("Exp", "Tanh"), graph) == nodes(model, "ady")
    assert found(select.name("enc/*"), graph) == [*nodes(model, "ab"), model["side"].node]
    assert found(select.name("*/Exp_*"), graph) == nodes(model, "ay")
    assert found(select.where(lambda n: n.type in ("Cos", "Tanh")), graph) == [
        model["side"].node,
        *nodes(model, "cd"),
    ]


def test_S04_a_bare_string_is_an_op_type_and_a_node_or_region_selects_itself(graph, model):
    with gg.override_gradient(default) as region:
        sin(model["y"])
    (node,) = nodes(model, "c")
    assert found("Tanh", graph) == nodes(model, "d")
    both = select.op("Tanh") | node | region | "Sin"
    assert found(both, graph)[:3] == [model["d"].node, node, region]


def test_S04_nodes_between_and_scope_make_one_region(graph, model):
    m = model
    assert found(select.nodes(m["b"], m["a"].node, m["a"]), graph) == [nodes(m, "ab")]
    assert found(select.nodes([m["b"]]), graph) == [nodes(m, "b")]
    assert found(select.between(m["x"], m["c"]), graph) == [nodes(m, "abc")]
    assert found(select.between([m["a"]], {"y": m["d"], "s": m["side"]}), graph) == [
        [m["b"].node, m["side"].node, *nodes(m, "cd")]
    ]
    assert found(select.scope("enc"), graph) == [[*nodes(m, "ab"), m["side"].node]]
    assert found(select.scope("enc/"), graph) == found(select.scope("enc"), graph)


def test_S04_between_takes_paths_only_and_goes_by_tensors(graph):
    x, z = placeholder((4,)), placeholder((2,))
    first, second = split(x, 2)
    a = multiply(first, exp(z))
    b = multiply(a, second)
    assert found(select.between(first, b), graph) == [[a.node, b.node]]
    assert found(select.between(second, a), graph) == []
    assert found(select.between([x], [b]), graph) == [[first.node, a.node, b.node]]


def test_S04_between_does_not_go_on_behind_an_x(graph, model):
    m = model
    assert found(select.between([m["x"], m["b"]], [m["c"]]), graph) == [nodes(m, "c")]
    assert found(select.between([m["x"]], [m["x"]]), graph) == []


def test_S04_rule_selects_regions_and_stamped_nodes_by_the_name_of_their_rule(graph, model):
    with gg.temporary_gradient("test/ste", default):
        with gg.override_gradient("test/ste") as one:
            sin(model["x"])
        with gg.override_gradient(default) as two:
            sin(model["x"])
        with gg.gradient_override_map({"Tanh": "test/ste"}):
            stamped = tanh(model["x"])
    assert found(select.rule("test/ste"), graph) == [one, stamped.node]
    assert found(select.rule("default"), graph) == [two]
    assert found(select.rule(default), graph) == [two]


def test_S04_sources_and_constants_are_not_matched(graph, model):
    gg.constant(1.0, name="enc/k")
    assert model["w"].node.name == "enc/w"
    assert all(n.inputs for n in found(select.name("*"), graph))
    assert model["w"].node not in found(select.scope("enc"), graph)[0]
    for choose in (select.op, select.pattern):
        with pytest.raises(gg.RegionError, match="no inputs"):
            choose("Placeholder")


def test_S04_selections_match_forward_nodes_and_backward_adds_the_others(graph, model):
    before = len(graph)
    gg.gradients(model["d"], model["a"])
    derived = [n for n in graph.nodes[before:] if n.inputs]
    assert found(select.op("Sin"), graph) == nodes(model, "b")
    assert found(select.op("Sin").backward(), graph)[0] is model["b"].node
    assert len(found(select.op("Sin").backward(), graph)) == 2
    assert found(select.backward(), graph) == derived
    assert set(found(~select.backward(), graph)).isdisjoint(derived)
    only = select.op("Sin").backward() & select.backward()
    assert len(found(only, graph)) == 1
    assert found(only, graph)[0].origin is not None
    assert (select.op("Sin") & select.op("Sin")).backward().find(graph) == found(
        select.op("Sin").backward(), graph
    )


# --- patterns ------------------------------------------------------------------------------------


def softplus(x):
    return log(1.0 + exp(x))


def test_S04_a_pattern_makes_one_region_of_each_match(graph):
    x = placeholder(())
    one = softplus(x)
    two = softplus(sin(one))
    log(x)
    log(add(exp(x), x))
    form = select.pattern(("Log", ("Add", "Constant", "Exp")))
    assert [[n.type for n in group] for group in found(form, graph)] == [["Exp", "Add", "Log"]] * 2
    assert [group[-1] for group in found(form, graph)] == [one.node, two.node]


def test_S04_the_forms_of_a_pattern(graph):
    x, z = placeholder(()), placeholder(())
    square = multiply(x, x)
    product = multiply(x, z)
    deep = multiply(exp(x), exp(x))
    join = gg.stack([x, z, exp(x)])
    roots = {
        "Multiply": [square, product, deep],
        ("Multiply",): [square, product, deep],
        ("Multiply", None, None): [square, product, deep],
        ("Multiply", "?a", "?a"): [square],
        ("Multiply", "?a", "?b"): [square, product, deep],
        ("Multiply", "Exp", ...): [deep],
        ("Multiply", "Exp", ("Exp", "?a")): [deep],
        ("Multiply", None): [],
        ("Stack", "?a", ...): [join],
        ("Stack", None, None, "Exp"): [join],
        ("Stack", None, None, None, None, ...): [],
    }
    for form, expected in roots.items():
        assert [g[-1] for g in found(select.pattern(form), graph)] == [t.node for t in expected], (
            form
        )


def test_S04_a_pattern_does_not_reach_into_derived_nodes_unless_told(graph):
    x = placeholder(())
    y = exp(sin(x))
    dx = gg.gradients(y, x)
    form = select.pattern(("Multiply", None, "Cos"))
    assert found(form, graph) == []
    assert dx.node in [g[-1] for g in found(form.backward(), graph)] or found(
        select.pattern(("Multiply", "Exp", None)).backward(), graph
    )


@pytest.mark.parametrize(
    ("form", "message"),
    [
        (("Lgo", "Exp"), "'Lgo'.*'Log'"),
        (("Log", "Epx"), "'Epx'.*'Exp'"),
        (("Log", 3), "got 3"),
        ((), "got ()"),
        (("Log", ..., "Exp"), "Ellipsis"),
        (None, "anything"),
        ("?x", "anything"),
    ],
)
def test_S04_what_is_no_form_is_an_error_when_the_pattern_is_made(form, message):
    with pytest.raises(gg.RegionError, match=message):
        select.pattern(form)


# --- composition ---------------------------------------------------------------------------------


def test_S04_and_keeps_the_sites_of_the_left_that_lie_in_the_right(graph, model):
    m = model
    assert found(select.op("Exp") & select.scope("enc"), graph) == nodes(m, "a")
    assert found(select.scope("enc") & select.op("Exp", "Sin"), graph) == [nodes(m, "ab")]
    assert found(select.scope("enc") & select.op("Tanh"), graph) == []
    assert found("Exp" & select.scope("dec"), graph) == nodes(m, "y")


def test_S04_and_keeps_a_region_that_lies_in_the_right_whole(graph, model):
    with gg.name_scope("head"), gg.override_gradient(default) as one:
        p = sin(model["x"])
    with gg.override_gradient(default) as two, gg.name_scope("head"):
        sin(p)
        with gg.name_scope("deep"):
            q = sin(p)
    with gg.override_gradient(default):
        with gg.name_scope("head"):
            sin(q)
        sin(q)
    assert found(select.rule("default") & select.scope("head"), graph) == [one, two]
    assert found(select.rule("default") & one, graph) == [one]


def test_S04_a_further_choice_narrows(graph, model):
    m = model
    assert found(select.op("Exp").scope("enc"), graph) == nodes(m, "a")
    assert found(select.scope("enc").op("Exp", "Sin"), graph) == [nodes(m, "ab")]
    assert found(select.op("Cos").name("enc/*").where(lambda n: True), graph) == [m["side"].node]


def test_S04_or_gives_the_sites_of_both_each_once(graph, model):
    m = model
    assert found(select.op("Exp") | select.op("Tanh") | "Exp", graph) == nodes(m, "ayd")
    assert found(select.scope("dec") | select.scope("dec"), graph) == [nodes(m, "y")]
    assert found(select.nodes(m["a"]) | select.op("Exp"), graph) == [
        nodes(m, "a"),
        *nodes(m, "ay"),
    ]


def test_S04_not_gives_the_other_nodes_each(graph, model):
    m = model
    assert found(~select.scope("enc"), graph) == nodes(m, "cdy")
    assert found(select.op("Exp") & ~select.scope("enc"), graph) == nodes(m, "y")
    assert found(~~select.op("Exp"), graph) == found(select.op("Exp"), graph)
    a, b = select.op("Exp"), select.scope("enc")
    assert found(~(a | b), graph) == found(~a & ~b, graph)


def test_S04_each_and_together_convert(graph, model):
    m = model
    assert found(select.scope("enc").each(), graph) == [*nodes(m, "ab"), m["side"].node]
    assert found(select.op("Exp", "Sin").together(), graph) == [nodes(m, "aby")]
    assert found(select.op("Exp").together().each(), graph) == found(select.op("Exp"), graph)
    assert found(select.pattern(("Tanh", "Cos")).each(), graph) == nodes(m, "cd")
    with gg.override_gradient(default) as region:
        s = sin(m["x"])
    assert found(select.rule("default").each(), graph) == [region]
    assert found(select.rule("default").together(), graph) == [[s.node]]


def test_S04_a_selection_asks_the_graph_anew_and_may_be_used_on_many(graph, model):
    relus = select.op("Relu")
    assert found(relus, graph) == []
    y = gg.nn.relu(model["x"])
    assert found(relus, graph) == [y.node]
    with gg.Graph() as other:
        z = gg.nn.relu(placeholder(()))
    assert found(relus, other) == [z.node]


def test_S37_selections_do_not_recurse_over_the_graph(graph):
    x = y = placeholder(())
    for _ in range(20_000):
        y = sin(y)
    assert len(found(select.between(x, y), graph)[0]) == 20_000
    assert len(found(select.pattern(("Sin", ("Sin", "Sin"))), graph)) == 19_998


# --- what is said --------------------------------------------------------------------------------


def test_S04_a_selection_shows_as_it_was_written(model):
    chosen = (select.op("Exp") & ~select.scope("enc")).together() | "Tanh"
    assert repr(chosen) == "((select.op('Exp') & ~select.scope('enc')).together() | "\
        "select.op('Tanh'))"  # fmt: skip
    assert "default" in repr(select.where(default))
    assert repr(select.rule("ste").backward()) == "select.rule('ste').backward()"
    assert repr(select.pattern(("Log", "Exp"))) == "select.pattern(('Log', 'Exp'))"
    assert model["x"].name in repr(select.between(model["x"], model["y"]))


@pytest.mark.parametrize(
    ("choose", "near"),
    [
        (lambda m: select.op("Sinh"), "'Sin'"),
        (lambda m: select.op("Sinh") | select.op("Tan"), "'Tanh'"),
        (lambda m: select.name("enc/Ex_1"), "'enc/Exp_1'"),
        (lambda m: select.name("zzz*"), "enc/"),
        (lambda m: select.scope("encoder"), "'enc'"),
        (lambda m: select.scope("qqq"), "'dec', 'enc'"),
        (lambda m: select.where(lambda n: False), "have inputs"),
        (lambda m: select.nodes(), "no node"),
        (lambda m: select.between(m["d"], m["c"]), "No path leads from"),
        (lambda m: select.rule("ste"), "Nothing is marked"),
        (lambda m: select.pattern(("Tanh", "Exp")), "1 nodes are of type 'Tanh'"),
        (lambda m: select.pattern(("Sinh", "Exp")), "'Sin'"),
        (lambda m: select.op("Exp") & select.op("Tanh"), "covers 2 nodes"),
        (lambda m: select.scope("enc") & select.op("Sinh"), "'Sinh'"),
        (lambda m: ~select.name("*"), "every node"),
        (lambda m: select.op("Sinh").each(), "'Sin'"),
        (lambda m: select.backward(), "no node"),
        (lambda m: select.backward() & "Exp", "alone selects nothing"),
    ],
)
def test_S13_a_selection_that_selects_nothing_is_an_error_with_near_misses(
    graph, model, choose, near
):
    with pytest.raises(gg.RegionError, match="selects nothing") as error:
        graph.mark(choose(model), default)
    assert near in str(error.value)


def test_S13_what_only_derived_nodes_match_is_said(graph, model):
    gg.gradients(model["y"], model["x"])
    with pytest.raises(gg.RegionError, match=r"derived nodes: say `\.backward\(\)`"):
        graph.mark("Negative", default)


def test_S13_an_unknown_op_type_is_an_error_where_it_is_written():
    with pytest.raises(gg.RegionError, match=r"'Matmul'.*'MatMul'"):
        select.op("Exp", "Matmul")
    with pytest.raises(gg.RegionError, match="string"):
        select.op(exp)


def test_S04_what_is_no_selection_is_an_error(graph, model):
    for wrong in (3, None, model["x"], [model["a"].node]):
        with pytest.raises(gg.RegionError, match=r"gg\.select") as error:
            graph.mark(wrong, default)
        assert (".node" in message_of(error.value)) is (wrong is model["x"])
    with pytest.raises(gg.RegionError, match="tensors"):
        select.between("x", model["y"])
    with pytest.raises(gg.RegionError, match="nodes or tensors"):
        select.nodes("x")


def test_S04_nodes_of_another_graph_are_an_error(graph, model):
    with gg.Graph():
        x = placeholder(())
        with gg.override_gradient(default) as region:
            y = exp(x)
    for wrong in (y.node, region, select.nodes(y), select.between(x, y), select.op("Exp") | region):
        with pytest.raises(gg.GraphError, match="not in"):
            graph.mark(wrong, default)
