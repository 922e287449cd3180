"""A profile: whose time it is, that all of it is counted once, and the trace file."""

import json

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.execute.loading import load_backend
from graphgrad.execute.run.timed import Run, Span, timed_runs
from graphgrad.inspect.scene.profile import Profile, Share, region_of
from graphgrad.ir.program import Program
from graphgrad.lower.fused import gathered
from graphgrad.lower.loop_ir import Fusion, Space

SECOND = 1_000_000_000
EVIL = 'evil\n"\u202e'


def profiled(outputs, inputs, *arrays, repeat=2, backend="auto"):
    program = Program(inputs, outputs)
    return Profile(timed_runs(load_backend(backend), program, arrays, repeat), program)


def by_hand(program, *runs):
    """A profile of runs in which each node takes the seconds that are given."""
    made = []
    for run in runs:
        now = start = made[-1].end if made else 5 * SECOND
        spans = []
        for node, seconds in zip(program.nodes, run, strict=True):
            spans.append(Span(node, now, now + seconds * SECOND, 8))
            now += seconds * SECOND
        made.append(Run(start, now + SECOND, tuple(spans)))
    return Profile(made, program)


def tanh_rule(site, dy):
    (y,) = site.outputs
    return dy * (1.0 - y * y)


@pytest.fixture
def network():
    """Inputs, outputs: one marked activation, gradients, and an update."""
    with gg.Graph():
        x, w = gg.placeholder((2, 3), name="x"), gg.placeholder((3, 3), name="w")
        h = x @ w
        with gg.override_gradient(tanh_rule):
            h = gg.tanh(h)
        loss = gg.sum(h * h)
        dw = gg.gradients(loss, w)
        yield [x, w], [loss, w - 0.1 * dw]


def test_limits_say_how_fast_the_rows_could_be():
    """The least time is that of the bytes or that of the operations, whichever is longer."""
    x, w = gg.placeholder((10, 20)), gg.placeholder((20, 30))
    program = Program([x, w], [gg.exp(x @ w)])
    (made,) = by_hand(program, (2, 4)).runs
    most = gg.Limits(16.0, {np.dtype("float64"): 3000.0}, 1)
    product, exponential = sorted(
        Profile([made], program, limits=most).by_op(), key=lambda share: share.seconds
    )
    assert (product.name, product.flops) == ("MatMul", 2 * 10 * 20 * 30)
    assert product.least == 12_000 / 3000
    assert exponential.flops == 300
    assert exponential.least == 8 / 16  # the bytes of a span
    text = repr(Profile([made], program, limits=most))
    assert "limits of the machine: <1 thread: 0.0 GB/s; GFLOP/s: 0.0 float64>" in text
    assert "200 %" in text
    assert "limit" not in repr(Profile([made], program))


def test_of_a_dtype_without_a_measured_product_bytes_count():
    x = gg.placeholder((10, 10), "int64")
    (node,) = Program([x], [x @ x]).nodes
    assert gg.Limits(4.0, {np.dtype("float64"): 1.0}, 1).least([node], 8.0, 2000.0) == 2.0


def test_limits_of_this_machine(network):
    inputs, outputs = network
    f = gg.compile(inputs, outputs, num_threads=1)
    profile = f.profile(np.ones((2, 3)), np.ones((3, 3)), repeat=1, limits=True)
    assert profile.limits.threads == 1
    assert profile.limits.bytes > 1e8
    assert all(rate > 1e8 for rate in profile.limits.flops.values())
    assert sum(share.flops for share in profile.by_op()) > 2 * 2 * 3 * 3
    assert f.profile(np.ones((2, 3)), np.ones((3, 3)), repeat=1).limits is None


def test_steps_are_medians_over_runs():
    x = gg.placeholder(())
    profile = by_hand(Program([x], [gg.exp(gg.sin(x))]), (1, 10), (2, 30), (9, 20))
    assert [(s.node.type, s.seconds) for s in profile.steps] == [("Sin", 2.0), ("Exp", 20.0)]
    assert profile.seconds == 30.0


def test_by_op_adds_up_nodes_of_one_type_the_longest_first():
    x = gg.placeholder(())
    profile = by_hand(Program([x], [gg.sin(gg.exp(gg.sin(x)))]), (1, 10, 2))
    assert profile.by_op() == [Share("Exp", 1, 10.0, 8.0, 1.0), Share("Sin", 2, 3.0, 16.0, 2.0)]


def test_a_group_shares_its_time_among_its_nodes_but_for_constants_and_views():
    x = gg.placeholder((2, 2))
    program = Program([x], [gg.exp(gg.sin(x.T) * gg.constant(2.0))])
    (step,) = gathered(program, [Fusion(program.nodes, Space((2, 2)))]).nodes
    assert step.type == "Fused"
    profile = Profile([Run(0, 6 * SECOND, (Span(step, 0, 6 * SECOND, 24),))], program)
    shares = {share.name: share for share in profile.by_op()}
    assert shares == {name: Share(name, 1, 2.0, 8.0, 4.0) for name in ("Sin", "Multiply", "Exp")}
    assert profile.by_direction() == [Share("forward", 3, 6.0, 24.0, 12.0)]


def test_directions(network):
    inputs, outputs = network
    profile = profiled(outputs, inputs, np.ones((2, 3)), np.ones((3, 3)))
    named = {node.type: profile.direction(node) for s in profile.steps for node in s.nodes}
    assert named["Tanh"] == "forward"
    assert named["ReduceSum"] == "forward"
    assert {s.name for s in profile.by_direction()} == {
        "forward",
        "backward",
        "built from gradients",
    }


def test_the_second_order_is_a_direction_of_its_own():
    x = gg.placeholder(())
    second = gg.gradients(gg.gradients(gg.exp(x * x), x), x)
    names = {s.name for s in profiled([second], [x], np.array(0.5)).by_direction()}
    assert names == {"forward", "backward", "backward, order 2"}


def test_regions_and_the_calls_of_their_rules(network):
    inputs, outputs = network
    profile = profiled(outputs, inputs, np.ones((2, 3)), np.ones((3, 3)))
    names = [s.name for s in profile.by_region()]
    (region,) = [name for name in names if name.startswith("override")]
    (call,) = [name for name in names if name.startswith("spliced")]
    assert "test_profile.py" in region
    assert "for #0" in call
    assert "(none)" in names
    nodes = {s.name: s.nodes for s in profile.by_region()}
    assert nodes[region] == 1
    assert nodes[call] >= 2


def test_regions_of_one_rule_are_together_by_rule():
    x = y = gg.placeholder(())
    for _ in range(3):
        with gg.override_gradient(tanh_rule):
            y = gg.tanh(y)
    dx = gg.gradients(y, x)
    profile = profiled([y, dx], [x], np.array(0.5))
    assert len(profile.by_region()) == 6
    rules = {share.name: share.nodes for share in profile.by_rule()}
    assert set(rules) == {'inside "tanh_rule"', 'built by "tanh_rule"'}
    assert rules['inside "tanh_rule"'] == 3


def test_every_way_of_adding_up_counts_every_step_once(network):
    inputs, outputs = network
    profile = profiled(outputs, inputs, np.ones((2, 3)), np.ones((3, 3)))
    whole = sum(step.seconds for step in profile.steps)
    moved = sum(step.bytes for step in profile.steps)
    for shares in (profile.by_op(), profile.by_direction(), profile.by_region(), profile.by_rule()):
        assert sum(s.seconds for s in shares) == pytest.approx(whole)
        assert sum(s.bytes for s in shares) == pytest.approx(moved)


def test_any_key_will_do(network):
    inputs, outputs = network
    profile = profiled(outputs, inputs, np.ones((2, 3)), np.ones((3, 3)))
    (share,) = profile.by(lambda node: "all")
    assert share.nodes == sum(len(step.nodes) for step in profile.steps)


def test_the_tables(network):
    inputs, outputs = network
    text = repr(profiled(outputs, inputs, np.ones((2, 3)), np.ones((3, 3))))
    head, ops, directions, rules = text.split("\n\n")
    assert "us a call (median of 2)" in head
    assert ops.splitlines()[0].split() == [
        "op",
        "nodes",
        "us",
        "%",
        "MB",
        "GB/s",
        "MFLOP",
        "GFLOP/s",
    ]
    assert [line.split()[0] for line in directions.splitlines()[:1]] == ["direction"]
    assert rules.startswith("override")
    assert 'inside "tanh_rule"' in rules
    assert 'built by "tanh_rule"' in rules
    assert max(map(len, text.splitlines())) <= 100


def test_no_table_of_regions_without_regions_and_few_rows():
    x = y = gg.placeholder(())
    for fn in (gg.sin, gg.cos, gg.tan, gg.exp, gg.log1p, gg.abs, gg.sqrt, gg.square, gg.tanh):
        y = fn(y)
    for fn in (gg.sinh, gg.cosh, gg.expm1, gg.floor, gg.ceil, gg.negative):
        y = fn(y)
    program = Program([x], [y])
    profile = by_hand(program, range(1, len(program.nodes) + 1))
    _, ops, _ = repr(profile).split("\n\n")
    assert "others" in ops.splitlines()[-1]
    assert len(ops.splitlines()) == 14
    percents = [float(line.split()[-5]) for line in ops.splitlines()[1:]]
    assert sum(percents) == pytest.approx(100, abs=1)


def test_long_calls_are_shown_in_milliseconds():
    x = gg.placeholder(())
    text = repr(by_hand(Program([x], [gg.exp(x)]), (2,)))
    assert text.startswith("3000.0 ms a call (median of 1): 2000.0 ms in 1 steps, 1000.0 ms around")
    row = "Exp 1 2000.00 100.0 8e-06 0.0 1e-06 0.0"
    assert [" ".join(line.split()) for line in text.splitlines()][3] == row


def test_a_program_without_steps():
    x = gg.placeholder((2,))
    profile = profiled([x], [x], np.ones(2))
    assert profile.steps == ()
    assert profile.by_op() == []
    assert "in 0 steps" in repr(profile)


def test_no_runs_are_refused():
    x = gg.placeholder(())
    with pytest.raises(ValueError, match="at least one run"):
        Profile([], Program([x], [x]))


def test_the_trace_is_in_the_trace_event_format(network, tmp_path):
    inputs, outputs = network
    profile = profiled(outputs, inputs, np.ones((2, 3)), np.ones((3, 3)), repeat=3)
    path = tmp_path / "trace.json"
    profile.write_trace(path)
    trace = json.loads(path.read_text())
    assert trace["displayTimeUnit"] in ("ms", "ns")
    events = trace["traceEvents"]
    for event in events:
        assert {"name", "ph", "pid", "tid"} <= set(event)
        assert isinstance(event["name"], str)
        if event["ph"] == "M":
            assert event["name"] in ("process_name", "thread_name")
            assert isinstance(event["args"]["name"], str)
        else:
            assert event["ph"] == "X"
            assert isinstance(event["cat"], str)
            assert event["ts"] >= 0
            assert event["dur"] >= 0
    calls = [e for e in events if e.get("cat") == "call"]
    steps = [e for e in events if e["ph"] == "X" and e.get("cat") != "call"]
    assert [c["name"] for c in calls] == ["call 1", "call 2", "call 3"]
    assert len(steps) == 3 * len(profile.steps)
    for i, call in enumerate(calls):  # a viewer nests what lies within
        for step in steps[i * len(profile.steps) : (i + 1) * len(profile.steps)]:
            assert call["ts"] <= step["ts"]
            assert step["ts"] + step["dur"] <= call["ts"] + call["dur"] + 1e-6


def test_an_event_says_what_the_step_is(network):
    inputs, outputs = network
    arrays = np.ones((2, 3)), np.ones((3, 3))
    profile = profiled(outputs, inputs, *arrays, repeat=1, backend="numpy")  # no groups of nodes
    events = {e["name"]: e for e in profile.trace()["traceEvents"] if e["ph"] == "X"}
    tanh = events["Tanh"]
    assert tanh["cat"] == "forward"
    assert tanh["args"]["outputs"] == ["f64[2,3]"]
    assert "test_profile.py" in tanh["args"]["built"]
    assert tanh["args"]["region"].startswith("override")
    assert tanh["args"]["bytes"] == 2 * 6 * 8


def test_a_name_cannot_break_the_table_or_the_trace():
    x = gg.placeholder((), name="a")
    with gg.temporary_gradient(EVIL, lambda site, dy: dy), gg.override_gradient(EVIL):
        y = gg.exp(x)
    profile = profiled([y], [x], np.array(1.0))
    (name,) = [s.name for s in profile.by_region()]
    assert len(repr(profile).splitlines()) == 10
    assert "\n" not in name
    assert "\u202e" not in name
    json.dumps(profile.trace())
    assert region_of(y.node) == name


def test_regions_have_a_table_where_rules_have_several():
    with gg.Graph():
        x = gg.placeholder((3,))
        h = x
        for _ in range(2):
            with gg.override_gradient(tanh_rule):
                h = gg.tanh(h)
        printed = repr(profiled([h, gg.gradients(h, x)], [x], np.ones(3)))
    *_, rules, regions = printed.split("\n\n")
    assert rules.startswith("override")
    assert rules.count("inside") == 1
    assert regions.startswith("region")
    assert regions.count('override "tanh_rule" #') == 2


# --- loops ---------------------------------------------------------------------------------------


def looped(backend):
    """A loop with one in it, and one that ends by a test, backwards over 6 rows."""
    x, w = gg.placeholder((6, 3)), gg.placeholder((3, 3))

    def run(s, row):
        s = gg.fori_loop(0, 4, lambda i, c: gg.tanh(c @ w), s) + row
        return s, gg.sum(s)

    last, rows = gg.scan(run, x[0], x, reverse=True)
    end = gg.while_loop(lambda c: c < 10.0, lambda c: c + gg.exp(rows[0] * 0.0), 0.5)
    f = gg.compile([x, w], [last, rows, end], backend=backend)
    return f.profile(np.ones((6, 3)), 0.1 * np.ones((3, 3)), repeat=3)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_a_loop_says_how_often_it_ran_and_what_one_run_takes(backend):
    if backend == "llvm":
        pytest.importorskip("llvmlite")
    profile = looped(backend)
    outer, until = profile.loops
    assert (outer.runs, until.runs) == (6, 10)
    step = next(s for s in profile.steps if s.node is outer.node)
    assert outer.seconds == step.seconds == pytest.approx(6 * outer.per_run)
    assert f"{outer.node.name:<34} {6:>9}" in repr(profile)
    body = outer.body(repeat=2)
    (inner,) = body.loops
    assert inner.runs == 4
    assert {"Scan", "ReduceSum"} <= {share.name for share in body.by_op()}
    assert "Tanh" in {share.name for share in inner.body(repeat=1).by_op()}


def test_a_loop_that_did_not_run_has_no_body_to_time():
    x = gg.placeholder((None, 2))
    y = gg.scan(lambda s, row: (s + row, None), gg.zeros(2), x)[0]
    (loop,) = gg.compile(x, y).profile(np.ones((0, 2)), repeat=1).loops
    assert (loop.runs, loop.per_run) == (0, loop.seconds)
    with pytest.raises(ValueError, match="did not run"):
        loop.body()
