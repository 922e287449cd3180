"""`tf.contrib.opt`: optimizers of other packages, run on a session."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from ..gradients import gradients
from ..graph import GraphKeys, get_default_graph
from ..ops import array as A

__all__ = ["ExternalOptimizerInterface", "ScipyOptimizerInterface"]


class ExternalOptimizerInterface:
    """Minimises a loss by a function of flat arrays."""

    def __init__(
        self, loss: Any, var_list: Any = None, equalities: Any = None, inequalities: Any = None,
        var_to_bounds: Any = None, **optimizer_kwargs: Any,
    ) -> None:  # fmt: skip
        if equalities or inequalities:
            raise NotImplementedError("constraints are not there: add them to the loss")
        self._loss = loss
        self._vars = var_list or get_default_graph().get_collection(GraphKeys.TRAINABLE_VARIABLES)
        self._bounds, self.optimizer_kwargs = var_to_bounds, optimizer_kwargs
        found = gradients(loss, self._vars)
        self._grads = [
            A.zeros_like(v) if g is None else g for g, v in zip(found, self._vars, strict=True)
        ]

    def minimize(
        self, session: Any = None, feed_dict: Any = None, fetches: Any = None,
        step_callback: Any = None, loss_callback: Any = None, **run_kwargs: Any,
    ) -> None:  # fmt: skip
        """Minimise, and leave the result in the variables."""
        feeds, fetches = feed_dict or {}, list(fetches or [])

        def put(flat: Any) -> None:
            at, values = 0, {}
            for v in self._vars:
                shape = v.shape.as_list()
                n = int(np.prod(shape))
                kind = v.dtype.base_dtype.numpy
                values[v.op] = np.asarray(flat[at : at + n], kind).reshape(shape)
                at += n
            session._commit(values)

        def loss_and_gradient(flat: Any) -> Any:
            put(flat)
            loss, grads, extra = session.run([self._loss, self._grads, fetches], feeds)
            if loss_callback is not None:
                loss_callback(*extra)
            return float(loss), _flat(grads)

        start = _flat(session.run(self._vars))

        def step(flat: Any) -> None:
            if step_callback is not None:
                step_callback(flat)

        put(self._minimize(start, loss_and_gradient, step))

    def _minimize(self, start: Any, function: Any, step: Any) -> Any:
        raise NotImplementedError("a subclass says how")


def _flat(arrays: Any) -> Any:
    return np.concatenate([np.asarray(a, "float64").reshape(-1) for a in arrays])


class ScipyOptimizerInterface(ExternalOptimizerInterface):
    """Minimises a loss by scipy.optimize.minimize, L-BFGS-B by default."""

    def _minimize(self, start: Any, function: Any, step: Any) -> Any:
        from_scipy = scipy_minimize()
        kwargs = {"method": "L-BFGS-B", **self.optimizer_kwargs}
        bounds = None
        if self._bounds is not None:
            bounds = []
            for v in self._vars:
                low, high = self._bounds.get(v, (-np.inf, np.inf))
                n = int(np.prod(v.shape.as_list()))
                both = [np.broadcast_to(b, v.shape.as_list()).reshape(-1) for b in (low, high)]
                bounds += [(both[0][i], both[1][i]) for i in range(n)]
        found = from_scipy(function, start, jac=True, callback=step, bounds=bounds, **kwargs)
        return found.x


def scipy_minimize() -> Any:
    """scipy's minimize."""
    return import_module("scipy.optimize").minimize
