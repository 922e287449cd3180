"""Rules beside `heal`: marked before, they count; chosen after, they count or are refused."""

import numpy as np
import pytest

import graphgrad as gg


def seven(site, *dys):
    return 7.0 * dys[0]


def softplus_of(x):
    return gg.log(1 + gg.exp(x))


def test_S5_what_is_chosen_for_what_healing_replaced_is_an_error():
    x = gg.placeholder(())
    y = softplus_of(x)
    made = gg.heal(y).ys
    assert gg.compile(x, gg.gradients(y, x, overrides={"Log": seven}))(1.0) == pytest.approx(
        7 * np.e, rel=1e-15
    )
    for key in ("Log", "Exp", y.node, gg.select.op("Log")):
        with pytest.raises(gg.RegionError, match="log1pexp stands for it") as error:
            gg.gradients(made, x, overrides={key: seven})
        assert "test_rules_and_healing.py" in str(error.value)
    plain = gg.gradients(made, x, overrides="none")
    assert gg.compile(x, plain)(1000.0) == 1.0


def test_S5_a_type_that_only_healing_built_is_an_error():
    x = gg.placeholder((3,))
    made = gg.heal(gg.log(gg.mean(gg.exp(x)))).ys
    with pytest.raises(gg.RegionError, match=r"made by gg\.heal"):
        gg.gradients(made, x, overrides={"Expm1": lambda site, dy: dy})


def test_S5_what_is_chosen_for_what_is_built_anew_counts():
    x = gg.placeholder(())
    inner = softplus_of(x)
    y = gg.tanh(inner)
    with gg.override_gradient(seven) as region:
        z = gg.sin(y)
    made = gg.heal(z).ys
    for choice in ({}, {"Tanh": seven}, {y.node: seven}, {region: None}, {region: lambda s, d: d}):
        both = [gg.gradients(t, x, overrides=choice) for t in (z, made)]
        written, healed = gg.compile(x, both)(1.0)
        assert healed == pytest.approx(written, rel=1e-14)
    group = gg.select.nodes(inner.node, y.node)
    with pytest.raises(gg.RegionError, match=r"after gg\.heal"):
        gg.gradients(made, x, overrides={group: seven})


def test_S4_what_is_marked_after_healing_is_an_error_or_counts():
    x = gg.placeholder(())
    y = gg.tanh(softplus_of(x))
    made = gg.heal(y).ys
    x.graph.mark(gg.select.op("Tanh"), seven)
    written, healed = gg.compile(x, [gg.gradients(t, x) for t in (y, made)])(1.0)
    assert healed == pytest.approx(written, rel=1e-14)
    x.graph.mark(gg.select.op("Log"), seven)
    assert gg.gradients(y, x) is not None
    with pytest.raises(gg.RegionError, match="was marked after"):
        gg.gradients(made, x)


def test_S2_healing_builds_outside_of_what_is_open():
    x = gg.placeholder(())
    y = gg.exp(x) - 1
    with gg.gradient_override_map({"Expm1": seven}, allow_empty=True):
        made = gg.heal(y).ys
    with gg.override_gradient(seven, allow_empty=True):
        again = gg.heal(y).ys
    for t in (made, again):
        assert gg.compile(x, gg.gradients(t, x))(0.5) == pytest.approx(np.exp(0.5))


def test_a_marked_node_within_a_formula_leaves_it_alone():
    x = gg.placeholder(())
    with gg.override_gradient(seven):
        inner = gg.exp(x)
    made = gg.heal(gg.log(inner / (1 + inner)))
    slopes = [gg.gradients(t, x) for t in (gg.log(inner / (1 + inner)), made.ys)]
    written, healed = gg.compile(x, slopes)(0.5)
    assert healed == pytest.approx(written, rel=1e-12)


@pytest.mark.parametrize("travel", ["copy", "save"])
def test_S27_what_was_healed_is_known_after_travel(travel, tmp_path):
    x = gg.placeholder((), name="x")
    made = gg.heal(softplus_of(x)).ys
    graph = x.graph
    if travel == "save":
        gg.save(tmp_path / "graph.gg", graph)
        there = gg.load(tmp_path / "graph.gg").graph
    else:
        there = graph.copy()
    y = there.nodes[made.node.index].outputs[0]
    with pytest.raises(gg.RegionError, match="stands for it"):
        gg.gradients(y, there.tensor("x:0"), overrides={"Log": seven})
    assert gg.heal(y).sites == ()


FORMS = {
    "a norm": lambda x: x / gg.sqrt(gg.sum(x**2)),
    "log(1 + x**2)": lambda x: gg.log(1 + x * x),
    "log(cosh)": lambda x: gg.log(gg.cosh(x)),
    "expm1 / x": lambda x: (gg.exp(x) - 1) / x,
    "x - sin": lambda x: x - gg.sin(x),
    "x log x": lambda x: x * gg.log(x),
    "a choice": lambda x: gg.where(x > 0, gg.log(x), gg.sqrt(-x)),
    "a ratio": lambda x: gg.log((x * x + 2) / (x * x + 1)),
    "tanh / x": lambda x: gg.tanh(x) / x,
    "a mean": lambda x: gg.sum(x * gg.exp(x)) / gg.sum(gg.exp(x)),
}


@pytest.mark.parametrize("name", FORMS)
def test_healing_what_is_healed_changes_nothing(name):
    x = gg.placeholder((3,))
    made = gg.heal(FORMS[name](x))
    assert made.sites
    again = gg.heal(made.ys)
    assert again.ys is made.ys
    assert again.sites == ()


def test_the_table_says_what_is_left_alone_in_a_region():
    x = gg.placeholder((3,))
    with gg.override_gradient(gg.rules.ste()):
        whole = gg.log(1 + gg.exp(x))
    again = gg.rules.checkpoint(lambda t: gg.sqrt(gg.sum(t * t)))(x)
    with gg.gradient_override_map({"Log": "Identity"}):
        stamped = gg.log(1 + gg.exp(x))
    made = gg.heal([whole, again, stamped])
    assert [y is t for y, t in zip(made.ys, [whole, again, stamped], strict=True)] == [True] * 3
    assert {site.now for site in made.sites} == {"left alone: marked"}
    assert [site.name for site in made.sites] == ["log1pexp", "norm", "log1pexp"]


def test_what_is_above_a_formula_that_is_left_alone_reads_what_was_written():
    x = gg.placeholder(())
    with gg.override_gradient(seven):
        inner = gg.exp(x)
    ratio = (inner + x) / (x + 1) - inner / (x + 1)
    made = gg.heal([gg.sqrt(ratio * ratio), gg.log(gg.exp(ratio) * x)])
    said = {(site.name, site.now) for site in made.sites}
    assert ("difference_of_ratios", "left alone: marked") in said
    assert ("abs", "|x|") in said
    slopes = [gg.gradients(t, x) for t in (ratio, made.ys[0])]
    written, healed = gg.compile(x, slopes)(0.5)
    assert healed == written
