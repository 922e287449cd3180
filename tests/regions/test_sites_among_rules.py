"""Sites of tensors beside regions, checkpoints, rules that build, derivatives and other sites."""

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.ir.region_tree import MARKED
from graphgrad.ir.tensor_sites import crossed, makes_sited, standing_around

from .test_tensor_sites import asking, clipped, handed_on, inside, joined, reading, tanh_rule


def cut(real, tensors, rule):
    """A site, or the region of identities that it stands for."""
    if real:
        return joined(tensors, rule)
    tensors[0].graph.mark(tensors, rule, together=True)
    return tensors


def opening(site, dy):
    """Opens regions that read its tensor."""
    x = site.inputs[0]
    with gg.override_gradient(tanh_rule):
        q = gg.tanh(x)
    with gg.override_gradient(inside):
        return dy * gg.sin(x) * q


def reopening(site, dy):
    """Opens a region whose rule reads its tensor."""
    x = site.inputs[0]
    with gg.override_gradient(lambda inner, d: d * x * gg.cos(x)):
        q = gg.sin(dy)
    return q * x


def of_derivatives(real, x, w):
    dx, dw = gg.gradients(gg.sum(gg.tanh(x * w) * gg.sin(x)), [x, w])
    dx, v = cut(real, [dx, gg.variable(np.array([0.5, 0.2]))], clipped)
    return gg.sin(dx) * dw * v


def below_a_derivative(real, x, w):
    (h,) = cut(real, [gg.sin(x)], reading)
    (dx,) = cut(real, [gg.gradients(gg.sum(h * h * x), x)], clipped)
    return gg.sin(dx) * x * w


def in_two_regions(rule, real, x, w):
    marks = []

    def hidden(tensors, rule):
        if real:
            return joined(tensors, rule)
        marks.append((tensors, rule))
        return tensors

    with gg.override_gradient(inside):
        a = gg.sin(x)
        with gg.override_gradient(inside):
            h, c = hidden([gg.tanh(a * w), gg.cos(a)], rule)
            k = h * c * a
        (m,) = hidden([gg.tanh(k)], clipped)
        z = m * k * a
    for tensors, one in marks:
        x.graph.mark(tensors, one, together=True, allow_inside=True)
    return z * x


def out_of_two_regions(real, x, w):
    with gg.override_gradient(inside):
        a = gg.sin(x)
        with gg.override_gradient(tanh_rule):
            h = gg.tanh(a * 1.0)
    h, v = cut(real, [h, w], reading)
    return h * h * v


def read_by_what_makes_it(real, x, w):
    (h,) = cut(real, [gg.exp(x)], reading)
    (k,) = cut(real, [gg.tanh(h)], clipped)
    return k * k * h * w


def with_regions_of(rule, real, x, w):
    (h,) = cut(real, [gg.exp(x)], rule)
    return gg.sin(h) * h * w


def three_on_one(real, x, w):
    h, rules = gg.exp(x), [clipped, reading, asking]
    for rule in rules if real else reversed(rules):
        (h,) = cut(real, [h], rule)
    return gg.sin(h) * h * w


def beside_a_custom_gradient(real, x, w):
    @gg.custom_gradient
    def squared_sine(x):
        h = gg.sin(x)
        return h * h, lambda dy: dy * 2.0 * h * gg.cos(x)

    (a,) = cut(real, [gg.exp(x)], reading)
    (y,) = cut(real, [squared_sine(a)], clipped)
    return y * a * w


CASES = {
    "derivatives": of_derivatives,
    "below a derivative": below_a_derivative,
    "in two regions": lambda *at: in_two_regions(reading, *at),
    "in two regions, asking": lambda *at: in_two_regions(asking, *at),
    "out of two regions": out_of_two_regions,
    "read by what makes it": read_by_what_makes_it,
    "regions of its rule": lambda *at: with_regions_of(opening, *at),
    "regions of its rule whose rule reads it": lambda *at: with_regions_of(reopening, *at),
    "three on one": three_on_one,
    "custom gradient": beside_a_custom_gradient,
}


def orders(build, real, order=3):
    with gg.Graph():
        xs = [gg.variable(np.array([0.3, 0.7])), gg.variable(np.array([1.0, -2.0]))]
        y, found = gg.sum(build(real, *xs)), []
        for _ in range(order):
            dxs = gg.gradients(y, xs, unconnected="zero")
            found += dxs
            y = sum(gg.sum(dx * (0.7 + i)) for i, dx in enumerate(dxs))
        return gg.evaluate(found)


@pytest.mark.parametrize("name", CASES)
def test_S23_S46_beside_other_rules_it_is_the_region_that_it_stands_for(name):
    order = 2 if "derivative" in name else 3
    for a, b in zip(*(orders(CASES[name], real, order) for real in (True, False)), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-9, atol=1e-12)


def test_S05_S46_a_group_of_a_call_ends_at_it():
    found = []
    for real in (True, False):
        with gg.Graph():
            x = gg.variable(np.array([0.3, 0.7]))
            a = gg.exp(x)
            h = gg.sin(a)
            (k,) = cut(real, [h], reading)
            y = gg.sum(gg.cos(k) * k)
            group = {gg.select.nodes(a, h): lambda site, dy: 2.0 * site.default(dy)[0]}
            dx = gg.gradients(y, x, overrides=group)
            second = gg.gradients(gg.sum(dx), x, overrides=group)
            found.append(gg.evaluate([dx, second, gg.gradients(gg.sum(dx * x), x)]))
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-9)


def test_S13_S46_integers_and_repetitions_are_left_out(graph):
    x, n = gg.variable(np.array([3.0, 1.0, 2.0])), gg.variable(np.array([1, 2]))
    values, places = gg.topk(x, 2)
    y = gg.sum(values * values)
    seen = []

    def spy(site, *dys):
        seen.append(list(site.inputs))
        return [10.0 * d for d in dys]

    graph.mark([values, places, n, values], spy, together=True)
    np.testing.assert_array_equal(gg.evaluate(gg.gradients(y, x)), [60.0, 0.0, 40.0])
    assert len(seen) == 1
    assert len(seen[0]) == 1
    assert seen[0][0] is values


def test_S46_a_region_that_is_selected_stands_for_its_outputs(graph):
    x = gg.variable(2.0)
    with gg.override_gradient(inside) as region:
        y = gg.sin(x * x) * 3.0
    graph.mark(region, lambda site, dy: dy + 1.0, together=True)
    wanted = 1.5 * (5.0 + 1.0) * 3.0 * np.cos(4.0) * 4.0
    assert gg.evaluate(gg.gradients(y * 5.0, x)) == pytest.approx(wanted)


def test_S46_tensors_of_several_regions_are_several_sites(graph):
    x, parts = gg.variable(2.0), []
    for _ in range(2):
        with gg.override_gradient(inside):
            parts.append(gg.sin(x))
            gg.cos(parts[-1])
    with pytest.raises(gg.RegionError, match="in several regions"):
        graph.mark(parts, handed_on, together=True, allow_inside=True)
    assert not graph.sites


def test_S46_any_output_of_a_node_makes_it_one_of_a_site(graph):
    sign, size = gg.linalg.slogdet(gg.variable([[1.0, 2.0], [0.0, 1.0]]))
    assert not makes_sited(sign.node)
    graph.mark(size, handed_on, together=True)
    assert makes_sited(size.node)


def test_S46_a_site_stands_in_its_region_around_what_shows_the_tensor(graph):
    """Outermost first: the region, the site in it, and the region whose output the tensor is."""
    x = gg.variable(0.3)
    with gg.override_gradient(handed_on) as outer:
        with gg.override_gradient(handed_on) as inner:
            t = gg.sin(x)
        y = gg.exp(t)
    with pytest.raises(gg.RegionError, match=r"hidden inside[^\n]*\nSay allow_inside=True"):
        graph.mark(t, handed_on, together=True)
    (within,) = graph.mark(t, handed_on, together=True, allow_inside=True)
    (around,) = graph.mark(y, handed_on, together=True)
    assert standing_around(t, graph.sites[t], MARKED) == [outer, within, inner]
    assert standing_around(y, graph.sites[y], MARKED) == [around, outer]
    assert crossed(t, outer, graph.sites[t], MARKED) == [within, inner]
    assert crossed(t, within, graph.sites[t], MARKED) == [inner]
    assert crossed(t, inner, graph.sites[t], MARKED) == []
    assert crossed(y, None, graph.sites[y], MARKED) == [around, outer]
