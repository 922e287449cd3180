"""Every op type at its edges, and the table of gradients, are TensorFlow's."""

import json

import pytest

import graphgrad.tf1 as tf
from graphgrad.tf1.definition import DEFINITIONS
from graphgrad.tf1.derived import _lower
from graphgrad.tf1.function import _call
from graphgrad.tf1.registry import gradient_registry
from tests.tf1.recorded.running import differences, records_of
from tests.tf1.recorded.sweep import LEFT_OUT, TABLE, Trial, attempt, results_of

KEPT = {
    "a second gradient where TensorFlow registers none for the first one's op": (
        "Softsign", "Igamma", "Igammac", "LRN", "ResizeNearestNeighbor", "ResizeBilinear",
        "RandomGamma",
    ),
    "a gradient where TensorFlow's kernel has none": (
        "GatherNd all", "MaxPool depth", "MaxPool3D none", "MatrixDeterminant singular",
    ),
    "the true gradient of a product with zeros": ("Cumprod", "Prod"),
    "the true gradient of elements that others replace": ("DynamicStitch twice",),
    "the gradient of the padding value": ("PadV2",),
    "no NaN for a segment without rows": ("SegmentMean gaps",),
    "NaN through the vectors of equal eigenvalues": ("SelfAdjointEigV2 singular",),
    "the first of equal elements, in rows": ("MaxPool3D valid", "MaxPool3D wild"),
    "the second derivative that both sides of a kink have": ("BesselI0e kinks",),
    "SciPy's values at poles and infinities": (
        "Acosh kinks", "Lgamma", "Digamma", "Ndtri kinks", "BesselI1e",
        "Zeta wild",
    ),
}  # fmt: skip
"""What is not as in TensorFlow, on purpose: op types, or single calls. docs/tf1.md says why."""
EXCEPT = {name for names in KEPT.values() for name in names}
OWN = {"GradientOf", "SumLike", "SpreadLike", "MatrixExponential", "LogicalXor"}
"""Op types that TensorFlow does not have, or does not use."""
PARTS = 4


def differing(op_type):
    """{call: where it differs from its record}; calls that TensorFlow refuses run alone."""
    record = records_of("sweep")[op_type]
    found = {}
    for refused in (False, True):
        calls = [c for c in TABLE[op_type] if (record[c.name]["values"] == "raises") is refused]
        for group in [[c] for c in calls] if refused else [calls] if calls else []:
            found |= json.loads(json.dumps(results_of(tf, group)))
    lines = {f"{op_type} {name}": differences(record[name], found[name]) for name in record}
    return {name: said for name, said in lines.items() if said}


@pytest.mark.parametrize(
    "part", [pytest.param(i, marks=pytest.mark.ci) if i else i for i in range(PARTS)]
)
def test_edges_are_as_in_tensorflow(part):
    wrong = []
    for op_type in list(TABLE)[part::PARTS]:
        found = differing(op_type)
        kept = {name for name in found if name in EXCEPT or op_type in EXCEPT}
        wrong += [f"{name}: {said}" for name, said in found.items() if name not in kept]
        expected = {name for name in EXCEPT if name.split(" ")[0] == op_type}
        wrong += [f"{e}: no difference any more" for e in expected if not kept_by(e, kept)]
    assert not wrong, "\n".join(wrong)


def kept_by(entry, names):
    """Whether an op type or call of KEPT is among the calls that differ."""
    return entry in names or any(name.split(" ")[0] == entry for name in names)


def test_each_op_type_is_swept_or_left_out_for_a_reason():
    known = {t for t, d in DEFINITIONS.items() if d.lower not in (_lower, _call)}
    left_out = {t for types in LEFT_OUT.values() for t in types}
    assert set(TABLE) | left_out >= known
    assert not set(TABLE) & left_out
    assert {t: set(calls) for t, calls in records_of("sweep").items()} == {
        t: {c.name for c in calls} for t, calls in TABLE.items()
    }


def test_the_calls_of_an_op_type_make_such_ops():
    missing = []
    for op_type, calls in TABLE.items():
        with tf.Graph().as_default() as graph:
            for c in calls:
                attempt(Trial.values, Trial(tf, c))
            if op_type not in {op.type for op in graph.get_operations()}:
                missing.append(op_type)
    assert not missing


def test_the_table_of_gradients_is_tensorflows():
    record = records_of("differentiable")
    expected = dict.fromkeys(record["differentiable"], "rule")
    expected |= dict.fromkeys(record["not differentiable"], "none")
    table = gradient_registry._registry
    kinds = {t: "none" if table[t]["type"] is None else "rule" for t in table}
    types = {t for t, d in DEFINITIONS.items() if d.lower not in (_lower, _call)} - OWN
    assert {t: kinds.get(t) for t in types} == {t: expected.get(t) for t in types}


def test_a_gradient_through_an_op_that_the_table_does_not_have_is_an_error():
    x = tf.constant([5.0, 7.0])
    for y in (
        tf.unique(x)[0],
        tf.unique_with_counts(x)[0],
        tf.bincount([0, 1], weights=x),
        tf.random_poisson(x, [3]),
    ):
        with pytest.raises(LookupError, match=r"No gradient defined.*test_sweep.py"):
            tf.gradients(y, x)
    assert tf.gradients(tf.unique(x)[0], tf.constant([1.0])) == [None]


def test_a_mean_of_channels_is_refused_where_it_is_built():
    with pytest.raises(NotImplementedError, match="reduce_mean"):
        tf.nn.avg_pool(tf.ones([1, 2, 2, 4]), [1, 1, 1, 2], [1, 1, 1, 2], "VALID")
