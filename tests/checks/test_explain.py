"""explain: sites on the paths, the rules they use, and why a result is None."""

import pytest

import graphgrad as gg
from graphgrad.checks.explain import explain


def ste(site, dy):
    return dy


STE = gg.Rule(ste, "ste", contract=gg.surrogate_of(lambda x: x))


def names(path):
    return [(type(use.site).__name__, use.rule) for use in path.sites]


def test_S39_the_sites_on_a_path_in_order():
    x, w = gg.placeholder((3,), name="x"), gg.placeholder((3,), name="w")
    with gg.override_gradient(STE) as first:
        a = gg.sign(x)
    with gg.gradient_override_map({"Tanh": "Identity"}):
        b = gg.tanh(a)
    with gg.override_gradient(lambda site, *dys: site.default(*dys)):
        c = b * w
    path = explain(gg.sum(c), [x, w])[x]
    assert names(path) == [("Region", "ste"), ("Node", "Identity"), ("Region", "<lambda>")]
    assert path.found
    assert path.reason == ""
    assert path.sites[0].site is first
    assert path.sites[0].defined.startswith("test_explain.py:")
    assert "surrogate" in path.sites[0].contract
    assert names(explain(gg.sum(c), w)[w]) == [("Region", "<lambda>")]


def test_S39_a_site_that_is_on_no_path_of_x_is_not_listed():
    x, w = gg.placeholder((3,)), gg.placeholder((3,))
    with gg.override_gradient(STE):
        a = gg.sign(w)
    with gg.override_gradient(STE):
        gg.sign(x)  # leads nowhere
    path = explain(gg.sum(x * a), x)[x]
    assert path.sites == ()
    assert path.found
    assert "own gradients" in str(path)


@pytest.mark.parametrize("case", ["integer", "stop_gradient", "stops", "apart", "cast", "ys"])
def test_S39_why_there_is_nothing(case):
    x, k = gg.placeholder((3,), name="x"), gg.placeholder((3,), "int64", name="k")
    other = gg.placeholder((3,))
    y, asked, stops = gg.sum(x * other), x, None
    if case == "integer":
        y, words = gg.sum(gg.argmax(x) * other), ["integer path", "ArgMax", "test_explain.py"]
    elif case == "stop_gradient":
        y, words = gg.sum(gg.stop_gradient(x) * other), ["stop_gradient", "test_explain.py"]
    elif case == "stops":
        h = gg.exp(x)
        y, stops, words = gg.sum(h), [h], ["stop_gradients", h.name]
    elif case == "apart":
        y, words = gg.sum(other), ["not connected"]
    elif case == "cast":
        asked, words = k, ["int64", "cast"]
    else:
        y, words = gg.argmax(x), ["no y is floating"]
    path = explain(y, asked, stop_gradients=stops)[0]
    assert not path.found
    for word in words:
        assert word in path.reason
    assert "no gradient:" in str(path)


def test_S39_a_rule_that_returned_nothing_is_named():
    x, w = gg.placeholder((3,), name="x"), gg.placeholder((3,), name="w")

    def only_w(site, dy):
        return gg.NO_GRAD, dy

    with gg.override_gradient(only_w):
        y = x * w
    found = explain(gg.sum(y), [x, w])
    assert found[w].found
    assert not found[x].found
    assert "rule 'only_w' (test_explain.py:" in found[x].reason
    assert "returned nothing for x:0" in found[x].reason


def test_S39_an_input_that_is_disconnected_inside_a_region():
    x, w = gg.placeholder((3,), name="x"), gg.placeholder((3,), name="w")
    with gg.override_gradient(lambda site, *dys: (1.0, dys[1])):
        a, b = gg.exp(x), gg.exp(w)
    gg.sum(a)
    path = explain(gg.sum(b), x)[x]
    assert not path.found
    assert "disconnected inside region" in path.reason
    assert "none of the outputs in use" in path.reason


def test_S39_a_stop_of_the_op_itself_is_named():
    x = gg.placeholder((3,), name="x")
    with gg.gradient_override_map({"Exp": lambda op, dy: gg.NO_GRAD}):
        y = gg.exp(x)
    assert "Exp" in explain(gg.sum(y), x)[x].reason


def test_S39_marks_inside_a_region_count_only_if_it_asks():
    x = gg.placeholder((3,))
    with gg.override_gradient(STE), gg.gradient_override_map({"Sign": "Identity"}):
        y = gg.sign(x)
    (use,) = explain(gg.sum(y), x)[x].sites
    assert use.inside == (f"node {y.node.name!r} ({y.where})",)
    assert "site.default" in str(use)


def test_S39_overrides_of_the_call_are_seen():
    x = gg.placeholder((3,))
    with gg.override_gradient(STE) as region:
        y = gg.sign(x)
    s = gg.sum(y)
    assert explain(s, x, overrides="none")[x].sites == ()
    other = gg.Rule(ste, "other")
    assert names(explain(s, x, overrides={region: other})[x]) == [("Region", "other")]


def test_S39_sites_in_the_bodies_of_control_flow():
    x, p = gg.placeholder((3,)), gg.placeholder((), "bool")
    with gg.gradient_override_map({"Sign": "Identity"}):
        y = gg.cond(p, lambda: gg.sign(x), lambda: gg.exp(x))
    assert names(explain(gg.sum(y), x)[x]) == [("Node", "Identity")]


def test_S39_it_is_the_same_each_time_and_adds_no_forward_node(graph):
    x = gg.placeholder((3,), name="x")
    with gg.override_gradient(STE):
        y = gg.sign(x)
    s = gg.sum(y)
    n = len(graph)
    first = str(explain(s, [x]))
    assert first == str(explain(s, [x]))
    assert all(node.origin is not None for node in graph.nodes[n:])
    assert first.splitlines()[0].startswith("x:0: float64[3] (test_explain.py:")


def test_S39_structures_and_what_is_no_tensor():
    x = gg.placeholder((3,), name="x")
    found = explain({"a": gg.sum(x)}, {"x": (x,)})
    assert found[0].found
    with pytest.raises(KeyError, match="is not one of the xs"):
        found[gg.placeholder(())]
    with pytest.raises(gg.GradientError, match="tensors"):
        explain([1.0], [x])


def test_a_repr_is_one_short_line():
    x, w, k = (
        gg.placeholder((3,), name="x"),
        gg.placeholder((3,), name="w"),
        gg.placeholder((), "int64", name="k"),
    )
    with gg.override_gradient(STE):
        a = gg.sign(x)
    found = explain(gg.sum(a * w), [x, w, k])
    assert repr(found) == "<explanation: x:0 through 'ste'; w:0 by no rule; k:0 has no gradient>"
    assert repr(found[x]) == "<x:0 through 'ste'>"
    assert repr(found[x].sites[0]).startswith("<region 'ste' #0 (test_explain.py:")
    many = explain(gg.sum(a), [gg.placeholder((), name=f"y{i}") for i in range(9)])
    assert repr(many).endswith("; and 5 more>")
    assert len(repr(many)) < 200


def test_long_names_are_shortened():
    with gg.Graph():
        x = gg.placeholder((3,), name="n" * 1000)
        y = gg.sin(x)
    assert max(map(len, str(gg.explain(y, x)).splitlines())) < 200
    assert len(repr(gg.explain(y, x))) < 200


def test_S39_the_sites_on_a_path_through_complex_numbers_and_of_a_complex_y():
    x = gg.placeholder((3,), name="x")
    with gg.override_gradient(lambda site, dy: gg.real(dy)):
        z = gg.exp(1j * x)
    for y in (gg.sum(abs(z)), z):
        path = explain(y, x)[x]
        assert path.found
        assert len(path.sites) == 1


def test_what_only_waits_for_x_does_not_depend_on_it():
    x, c = gg.placeholder((), name="x"), gg.placeholder((), name="c")
    y = gg.rules.checkpoint(gg.sin)(c)
    gg.gradients(y, c, x * 2.0)  # what is computed again waits for the gradient of y
    (after,) = (n for n in x.graph.nodes if n.type == "After")
    path = explain(after.outputs[0], x)[x]
    assert not path.found
    assert "After" in path.reason
    assert "only waits for it" in path.reason


def test_the_way_leads_on_through_what_is_complex_to_where_it_ends():
    x = gg.placeholder((), name="x")
    w = gg.exp(1j * x)
    y = gg.equal(w, w).astype("float64")
    assert "makes bool" in explain(y, x)[x].reason
