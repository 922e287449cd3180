"""The modules below `tensorflow.python` that programs import: other names for those here."""

from __future__ import annotations

import sys
from functools import partial
from types import ModuleType, SimpleNamespace
from typing import Any

from .. import (
    checks,
    control_flow,
    create,
    default_graph,
    distributions,
    dtypes,
    errors,
    flags,
    function,
    generated,
    gradients,
    graph,
    initializers,
    layers,
    loops,
    losses,
    misc,
    nest,
    registry,
    rnn,
    second_order,
    session,
    shapes,
    static,
    summary,
    variable_scope,
    variables,
)
from .. import logging as tf_logging
from .. import tensor_array as tensor_arrays
from ..missing import import_absent_below, missing
from ..ops import array, array_grad, image, linalg, math, math_grad, nn, nn_grad, random
from ..training import averages, optimizer, optimizers, saver, schedules, slots, steps

__all__: list[str] = []


def _module(path: str, *sources: ModuleType, **names: Any) -> ModuleType:
    """A module of that path, with the names of others."""
    full = f"{__name__}.{path}"
    made = ModuleType(full, f"Other names for {', '.join(s.__name__ for s in sources)}.")
    for source in sources:
        made.__dict__.update({k: v for k, v in vars(source).items() if not k.startswith("__")})
    made.__dict__.update(names)
    _put(path, made)
    return made


def _put(path: str, module: ModuleType) -> None:
    """Make a module known under a path, and its parents with it."""
    sys.modules[f"{__name__}.{path}"] = module
    parent, _, last = path.rpartition(".")
    if not parent:
        globals()[last] = module
        return
    holder = sys.modules.get(f"{__name__}.{parent}")
    if holder is None:
        holder = ModuleType(f"{__name__}.{parent}")
        holder.__path__ = []
        holder.__dict__["__getattr__"] = partial(missing, prefix=f"python.{parent}.")
        _put(parent, holder)
    setattr(holder, last, module)


_module(
    "framework.ops", graph, registry, create,
    _gradient_registry=registry.gradient_registry,
    gradient_registry=registry.gradient_registry,
    control_dependencies=control_flow.control_dependencies,
    uid=function.uid,
    op_scope=default_graph.op_scope,
    device=misc.device,
    colocate_with=misc.colocate_with,
    IndexedSlices=misc.IndexedSlices,
    get_default_session=session.get_default_session,
    add_to_collection=default_graph.add_to_collection,
    add_to_collections=default_graph.add_to_collections,
    get_collection=default_graph.get_collection,
    get_collection_ref=default_graph.get_collection_ref,
    executing_eagerly_outside_functions=lambda: False,
)  # fmt: skip
_module("framework.dtypes", dtypes, bool=dtypes.bool_)
_module("framework.tensor_shape", shapes, scalar=lambda: shapes.TensorShape([]),
        vector=lambda n: shapes.TensorShape([n]),
        matrix=lambda m, n: shapes.TensorShape([m, n]))  # fmt: skip
_module("framework.tensor_util", static, is_tensor=lambda x: isinstance(x, graph.Tensor))
_module("ops.array_ops", array, create, slice=array.slice_)
_module("ops.math_ops", math, create)
_module("ops.nn", nn, rnn, math)
_module("ops.control_flow_ops", control_flow, loops, tuple=control_flow.tuple_,
        Assert=function.Assert)  # fmt: skip
_module("ops.rnn_cell_impl", rnn, _RNNCell=rnn.RNNCell)
_module("ops.gen_nn_ops", generated, nn)
_module("ops.gen_math_ops", generated, math)
_module("ops.resource_variable_ops", variables, ResourceVariable=variables.Variable)
_module("training.training", optimizers, averages, saver, schedules, steps)
_module("platform.app", flags, flags=flags)
_module("client.device_lib", list_local_devices=lambda *_: [
    SimpleNamespace(name="/device:CPU:0", device_type="CPU")])  # fmt: skip
_module("util.tf_export", tf_export=lambda *_, **__: lambda f: f)
_module("util.deprecation", deprecated=lambda *_, **__: lambda f: f)
_module("eager.context", executing_eagerly=lambda: False, in_graph_mode=lambda: True,
        in_eager_mode=lambda: False)  # fmt: skip
_SAME: dict[ModuleType, str] = {
    function: "framework.function ops.script_ops ops.custom_gradient ops.logging_ops",
    errors: "framework.errors framework.errors_impl",
    create: "framework.constant_op",
    random: "framework.random_seed ops.random_ops",
    registry: "framework.registry",
    misc: "framework.indexed_slices",
    nn: "ops.nn_ops ops.nn_impl",
    math: "ops.clip_ops ops.special_math_ops",
    linalg: "ops.linalg_ops",
    control_flow: "ops.control_flow_util",
    loops: "ops.functional_ops ops.map_fn",
    variables: "ops.variables ops.state_ops",
    variable_scope: "ops.variable_scope ops.template",
    initializers: "ops.init_ops",
    tensor_arrays: "ops.tensor_array_ops",
    rnn: "ops.rnn ops.rnn_cell",
    array: "ops.gen_array_ops ops.data_flow_ops",
    array_grad: "ops.array_grad",
    checks: "ops.check_ops",
    image: "ops.image_ops ops.image_ops_impl",
    losses: "ops.losses.losses ops.losses.losses_impl",
    distributions: "ops.distributions.distributions",
    layers: "layers.core layers.convolutional layers.normalization layers.pooling layers.layers",
    summary: "summary.summary",
    averages: "training.moving_averages",
    optimizer: "training.optimizer",
    slots: "training.slot_creator",
    steps: "training.training_util",
    schedules: "training.learning_rate_decay",
    saver: "training.saver",
    optimizers: "training.gradient_descent training.adam",
    flags: "platform.flags",
    tf_logging: "platform.tf_logging",
    session: "client.session",
    nest: "util.nest",
}
"""Modules here, and the paths below `tensorflow.python` by which programs know them."""

for _source, _paths in _SAME.items():
    for _path in _paths.split():
        _module(_path, _source)
setattr(gradients, "hessians", second_order.hessians)  # noqa: B010
setattr(gradients, "_hessian_vector_product", second_order.hessian_vector_product)  # noqa: B010
for _path, _real in {
    "ops.gradients": gradients,
    "ops.gradients_impl": gradients,
    "ops.gradients_util": gradients,
    "ops.math_grad": math_grad,
    "ops.nn_grad": nn_grad,
}.items():
    _put(_path, _real)
import_absent_below(__name__)
