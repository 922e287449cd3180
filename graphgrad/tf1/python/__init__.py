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
_module("framework.function", function)
_module("framework.dtypes", dtypes, bool=dtypes.bool_)
_module("framework.tensor_shape", shapes, scalar=lambda: shapes.TensorShape([]),
        vector=lambda n: shapes.TensorShape([n]),
        matrix=lambda m, n: shapes.TensorShape([m, n]))  # fmt: skip
_module("framework.tensor_util", static, is_tensor=lambda x: isinstance(x, graph.Tensor))
_module("framework.errors", errors)
_module("framework.errors_impl", errors)
_module("framework.constant_op", create)
_module("framework.random_seed", random)
_module("framework.registry", registry)
_module("framework.indexed_slices", misc)
_module("ops.array_ops", array, create, slice=array.slice_)
_module("ops.math_ops", math, create)
_module("ops.nn_ops", nn)
_module("ops.nn", nn, rnn, math)
_module("ops.nn_impl", nn)
_module("ops.clip_ops", math)
_module("ops.random_ops", random)
_module("ops.linalg_ops", linalg)
_module("ops.control_flow_ops", control_flow, loops, tuple=control_flow.tuple_,
        Assert=function.Assert)  # fmt: skip
_module("ops.control_flow_util", control_flow)
_module("ops.functional_ops", loops)
_module("ops.map_fn", loops)
_module("ops.script_ops", function)
_module("ops.custom_gradient", function)
_module("ops.logging_ops", function)
_module("ops.variables", variables)
_module("ops.state_ops", variables)
_module("ops.variable_scope", variable_scope)
_module("ops.init_ops", initializers)
_module("ops.tensor_array_ops", tensor_arrays)
_module("ops.rnn", rnn)
_module("ops.rnn_cell", rnn)
_module("ops.rnn_cell_impl", rnn, _RNNCell=rnn.RNNCell)
_module("ops.gen_nn_ops", generated, nn)
_module("ops.gen_math_ops", generated, math)
_module("ops.gen_array_ops", array)
_module("ops.array_grad", array_grad)
_module("ops.resource_variable_ops", variables, ResourceVariable=variables.Variable)
_module("ops.template", variable_scope)
_module("ops.check_ops", checks)
_module("ops.special_math_ops", math)
_module("ops.data_flow_ops", array)
_module("ops.image_ops", image)
_module("ops.image_ops_impl", image)
_module("ops.losses.losses", losses)
_module("ops.losses.losses_impl", losses)
_module("ops.distributions.distributions", distributions)
_module("layers.core", layers)
_module("layers.convolutional", layers)
_module("layers.normalization", layers)
_module("layers.pooling", layers)
_module("layers.layers", layers)
_module("summary.summary", summary)
_module("training.moving_averages", averages)
_module("training.optimizer", optimizer)
_module("training.slot_creator", slots)
_module("training.training_util", steps)
_module("training.learning_rate_decay", schedules)
_module("training.saver", saver)
_module("training.gradient_descent", optimizers)
_module("training.adam", optimizers)
_module("training.training", optimizers, averages, saver, schedules, steps)
_module("platform.flags", flags)
_module("platform.app", flags, flags=flags)
_module("platform.tf_logging", tf_logging)
_module("client.session", session)
_module("client.device_lib", list_local_devices=lambda *_: [
    SimpleNamespace(name="/device:CPU:0", device_type="CPU")])  # fmt: skip
_module("util.nest", nest)
_module("util.tf_export", tf_export=lambda *_, **__: lambda f: f)
_module("util.deprecation", deprecated=lambda *_, **__: lambda f: f)
_module("eager.context", executing_eagerly=lambda: False, in_graph_mode=lambda: True,
        in_eager_mode=lambda: False)  # fmt: skip
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
