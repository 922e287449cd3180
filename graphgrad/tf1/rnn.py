"""Recurrent networks: cells, and the loops over time that run them."""

from __future__ import annotations

from collections import namedtuple
from functools import partial
from typing import Any

from .create import apply, constant, convert_to_tensor, name_scope
from .dtypes import as_dtype
from .graph import Tensor
from .initializers import constant_initializer, zeros_initializer
from .loops import while_loop
from .nest import flatten, map_structure, pack_sequence_as
from .ops import array as A
from .ops import math as M
from .ops import nn
from .shapes import TensorShape
from .tensor_array import TensorArray
from .variable_scope import Scoped, get_variable, variable_scope

__all__ = [
    "BasicLSTMCell", "BasicRNNCell", "DropoutWrapper", "GRUCell", "LSTMCell", "LSTMStateTuple",
    "MultiRNNCell", "RNNCell", "bidirectional_dynamic_rnn", "dynamic_rnn", "raw_rnn", "static_rnn",
]  # fmt: skip

LSTMStateTuple = namedtuple("LSTMStateTuple", ("c", "h"))


class RNNCell(Scoped):
    """One step in time: cell(inputs, state) gives (output, new state)."""

    _default = "cell"

    def __init__(
        self, trainable: bool = True, name: Any = None, dtype: Any = None, **kwargs: Any
    ) -> None:
        self.trainable, self._name = trainable, name
        self._dtype = None if dtype is None else as_dtype(dtype)
        self._reuse = kwargs.pop("_reuse", kwargs.pop("reuse", None))
        self.built = False
        self._scope: Any = None

    @property
    def state_size(self) -> Any:
        """The lengths of the state."""
        raise NotImplementedError(f"{type(self).__name__} must say its state_size")

    @property
    def output_size(self) -> Any:
        """The length of the output."""
        raise NotImplementedError(f"{type(self).__name__} must say its output_size")

    @property
    def name(self) -> str:
        """The name of its scope."""
        return self._name or self._default

    def build(self, inputs_shape: Any) -> None:
        """Make variables."""
        self.built = True

    def add_variable(self, name: str, shape: Any, initializer: Any = None, **kwargs: Any) -> Any:
        """A variable of the cell."""
        return get_variable(name, shape, initializer=initializer, trainable=self.trainable)

    add_weight = add_variable

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        if scope is None and self._scope is None:
            with variable_scope(self._name or self._default) as opened:
                return self._called(inputs, state, opened)
        with variable_scope(scope if scope is not None else self._scope) as opened:
            return self._called(inputs, state, opened)

    def _called(self, inputs: Any, state: Any, scope: Any) -> Any:
        self._scope = self._scope or scope
        if not self.built and hasattr(self, "call"):
            shapes = map_structure(lambda t: convert_to_tensor(t).shape, inputs)
            self.build(shapes)
            self.built = True
        return self.call(inputs, state)

    def call(self, inputs: Any, state: Any) -> Any:
        """What a step does."""
        raise NotImplementedError(f"{type(self).__name__} must write call(inputs, state)")

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """A state of zeros."""
        with name_scope(type(self).__name__ + "ZeroState"):
            return map_structure(lambda n: _zeros(batch_size, n, dtype), self.state_size)

    def get_initial_state(
        self, inputs: Any = None, batch_size: Any = None, dtype: Any = None
    ) -> Any:
        """A state of zeros for inputs."""
        if inputs is not None:
            inputs = convert_to_tensor(inputs)
            batch_size, dtype = A.shape(inputs)[0], inputs.dtype
        return self.zero_state(batch_size, dtype)

    trainable_weights, weights = Scoped.trainable_variables, Scoped.variables


def _zeros(batch: Any, n: Any, dtype: Any) -> Tensor:
    lengths = n.as_list() if isinstance(n, TensorShape) else [int(n)]
    made = A.zeros([batch, *lengths], dtype)
    if not isinstance(batch, Tensor):
        batch = None if batch is None else int(batch)
        made.set_shape([batch, *lengths])
    else:
        made.set_shape([None, *lengths])
    return made


class BasicRNNCell(RNNCell):
    """h = tanh([x, h] kernel + bias)."""

    _default = "basic_rnn_cell"

    def __init__(
        self, num_units: int, activation: Any = None, reuse: Any = None, name: Any = None,
        dtype: Any = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(name=name, dtype=dtype, _reuse=reuse)
        self._num_units, self._activation = num_units, activation or M.tanh

    state_size = property(lambda self: self._num_units)
    output_size = property(lambda self: self._num_units)

    def build(self, inputs_shape: Any) -> None:
        """Make kernel and bias."""
        n = inputs_shape[-1].value
        self._kernel = get_variable("kernel", [n + self._num_units, self._num_units])
        self._bias = get_variable("bias", [self._num_units], initializer=zeros_initializer())

    def call(self, inputs: Any, state: Any) -> Any:
        """tanh([x, h] kernel + bias)."""
        made = M.matmul(A.concat([inputs, state], 1), self._kernel)
        output = self._activation(nn.bias_add(made, self._bias))
        return output, output


class GRUCell(RNNCell):
    """h = u h + (1 - u) tanh([x, r h] kernel + bias)."""

    _default = "gru_cell"

    def __init__(
        self, num_units: int, activation: Any = None, reuse: Any = None,
        kernel_initializer: Any = None, bias_initializer: Any = None, name: Any = None,
        dtype: Any = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(name=name, dtype=dtype, _reuse=reuse)
        self._num_units, self._activation = num_units, activation or M.tanh
        self._kernel_init, self._bias_init = kernel_initializer, bias_initializer

    state_size = property(lambda self: self._num_units)
    output_size = property(lambda self: self._num_units)

    def build(self, inputs_shape: Any) -> None:
        """Make kernels and biases of gates and candidate."""
        n, m = inputs_shape[-1].value, self._num_units
        gate = self._bias_init or constant_initializer(1.0)
        self._gate_kernel = get_variable("gates/kernel", [n + m, 2 * m],
                                         initializer=self._kernel_init)  # fmt: skip
        self._gate_bias = get_variable("gates/bias", [2 * m], initializer=gate)
        self._kernel = get_variable("candidate/kernel", [n + m, m], initializer=self._kernel_init)
        self._bias = get_variable("candidate/bias", [m],
                                  initializer=self._bias_init or zeros_initializer())  # fmt: skip

    def call(self, inputs: Any, state: Any) -> Any:
        """Gates, candidate, and what is between the old state and it."""
        gates = M.matmul(A.concat([inputs, state], 1), self._gate_kernel)
        r, u = A.split(M.sigmoid(nn.bias_add(gates, self._gate_bias)), 2, 1)
        candidate = M.matmul(A.concat([inputs, r * state], 1), self._kernel)
        c = self._activation(nn.bias_add(candidate, self._bias))
        new = u * state + (1 - u) * c
        return new, new


class BasicLSTMCell(RNNCell):
    """c = c sigmoid(f + forget_bias) + sigmoid(i) tanh(j); h = tanh(c) sigmoid(o)."""

    _default = "basic_lstm_cell"

    def __init__(
        self, num_units: int, forget_bias: float = 1.0, state_is_tuple: bool = True,
        activation: Any = None, reuse: Any = None, name: Any = None, dtype: Any = None,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(name=name, dtype=dtype, _reuse=reuse)
        self._num_units, self._forget = num_units, forget_bias
        self._tuple, self._activation = state_is_tuple, activation or M.tanh

    @property
    def state_size(self) -> Any:
        """The lengths of c and h."""
        n = self._num_units
        return LSTMStateTuple(n, n) if self._tuple else 2 * n

    output_size = property(lambda self: self._num_units)

    def build(self, inputs_shape: Any) -> None:
        """Make kernel and bias."""
        n, m = inputs_shape[-1].value, self._num_units
        self._kernel = get_variable("kernel", [n + m, 4 * m])
        self._bias = get_variable("bias", [4 * m], initializer=zeros_initializer())

    def call(self, inputs: Any, state: Any) -> Any:
        """Gates, and the new state."""
        c, h = state if self._tuple else A.split(state, 2, 1)
        gates = nn.bias_add(M.matmul(A.concat([inputs, h], 1), self._kernel), self._bias)
        i, j, f, o = A.split(gates, 4, 1)
        keep, fresh = M.sigmoid(f + self._forget), M.sigmoid(i)
        new_c = M.add(M.multiply(c, keep), M.multiply(fresh, self._activation(j)))
        new_h = M.multiply(self._activation(new_c), M.sigmoid(o))
        state = LSTMStateTuple(new_c, new_h) if self._tuple else A.concat([new_c, new_h], 1)
        return new_h, state


class LSTMCell(BasicLSTMCell):
    """`BasicLSTMCell` with initializers, peepholes, clipping and a projection."""

    _default = "lstm_cell"

    def __init__(
        self, num_units: int, use_peepholes: bool = False, cell_clip: Any = None,
        initializer: Any = None, num_proj: Any = None, proj_clip: Any = None,
        num_unit_shards: Any = None, num_proj_shards: Any = None, forget_bias: float = 1.0,
        state_is_tuple: bool = True, activation: Any = None, reuse: Any = None, name: Any = None,
        dtype: Any = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(num_units, forget_bias, state_is_tuple, activation, reuse, name, dtype)
        self._peepholes, self._clip, self._init = use_peepholes, cell_clip, initializer
        self._proj, self._proj_clip = num_proj, proj_clip

    @property
    def state_size(self) -> Any:
        """The lengths of c and h."""
        n, m = self._num_units, self._proj or self._num_units
        return LSTMStateTuple(n, m) if self._tuple else n + m

    output_size = property(lambda self: self._proj or self._num_units)

    def build(self, inputs_shape: Any) -> None:
        """Make kernel, bias, and what peepholes and a projection need."""
        n, m, out = inputs_shape[-1].value, self._num_units, self._proj or self._num_units
        self._kernel = get_variable("kernel", [n + out, 4 * m], initializer=self._init)
        self._bias = get_variable("bias", [4 * m], initializer=zeros_initializer())
        if self._peepholes:
            names = ("w_f_diag", "w_i_diag", "w_o_diag")
            self._diags = [get_variable(w, [m], initializer=self._init) for w in names]
        if self._proj is not None:
            self._projection = get_variable("projection/kernel", [m, out], initializer=self._init)

    def call(self, inputs: Any, state: Any) -> Any:
        """Gates, and the new state."""
        n = self._num_units
        c, h = state if self._tuple else (state[:, :n], state[:, n:])
        gates = nn.bias_add(M.matmul(A.concat([inputs, h], 1), self._kernel), self._bias)
        i, j, f, o = A.split(gates, 4, 1)
        f = f + self._forget
        if self._peepholes:
            f, i = f + self._diags[0] * c, i + self._diags[1] * c
        new_c = M.sigmoid(f) * c + M.sigmoid(i) * self._activation(j)
        if self._clip is not None:
            new_c = M.clip_by_value(new_c, -self._clip, self._clip)
        if self._peepholes:
            o = o + self._diags[2] * new_c
        new_h = M.sigmoid(o) * self._activation(new_c)
        if self._proj is not None:
            new_h = M.matmul(new_h, self._projection)
            if self._proj_clip is not None:
                new_h = M.clip_by_value(new_h, -self._proj_clip, self._proj_clip)
        state = LSTMStateTuple(new_c, new_h) if self._tuple else A.concat([new_c, new_h], 1)
        return new_h, state


class MultiRNNCell(RNNCell):
    """Cells on top of each other."""

    _default = "multi_rnn_cell"

    def __init__(self, cells: Any, state_is_tuple: bool = True) -> None:
        super().__init__()
        if not cells:
            raise ValueError("Must specify at least one cell for MultiRNNCell.")
        self._cells = list(cells)

    state_size = property(lambda self: tuple(c.state_size for c in self._cells))
    output_size = property(lambda self: self._cells[-1].output_size)

    def call(self, inputs: Any, state: Any) -> Any:
        """Each cell with what the one below gave."""
        states = []
        for i, (cell, s) in enumerate(zip(self._cells, state, strict=True)):
            with variable_scope(f"cell_{i}"):
                inputs, new = cell(inputs, s)
            states.append(new)
        return inputs, tuple(states)


class DropoutWrapper(RNNCell):
    """A cell with dropout of what goes in and comes out."""

    def __init__(
        self, cell: Any, input_keep_prob: Any = 1.0, output_keep_prob: Any = 1.0,
        state_keep_prob: Any = 1.0, seed: Any = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__()
        self._cell, self._in, self._out = cell, input_keep_prob, output_keep_prob
        self._keep, self._seed = state_keep_prob, seed

    state_size = property(lambda self: self._cell.state_size)
    output_size = property(lambda self: self._cell.output_size)

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        inputs = self._dropped(inputs, self._in)
        output, new = self._cell(inputs, state, scope)
        return self._dropped(output, self._out), new

    def _dropped(self, x: Any, keep: Any) -> Any:
        if isinstance(keep, float | int) and keep >= 1:
            return x
        return nn.dropout(x, keep_prob=keep, seed=self._seed)


def _first_state(cell: Any, initial: Any, batch: Any, dtype: Any) -> Any:
    if initial is not None:
        return initial
    if dtype is None:
        raise ValueError("If there is no initial_state, you must give a dtype.")
    return cell.zero_state(batch, dtype)


def dynamic_rnn(
    cell: Any,
    inputs: Any,
    sequence_length: Any = None,
    initial_state: Any = None,
    dtype: Any = None,
    parallel_iterations: Any = None,
    swap_memory: bool = False,
    time_major: bool = False,
    scope: Any = None,
) -> Any:
    """A cell run over time: (outputs of all steps, last state).

    Behind a row's `sequence_length` its outputs are zeros and its state stays.
    """
    with variable_scope(scope or "rnn"):
        flat = [convert_to_tensor(x) for x in flatten(inputs)]
        if not time_major:
            flat = [_turned(x) for x in flat]
        lengths = None if sequence_length is None else M.to_int32(sequence_length)
        steps = _length(flat[0], 0)
        batch = _length(flat[0], 1)
        state = _first_state(cell, initial_state, batch, dtype)
        state = map_structure(convert_to_tensor, state)
        kind = as_dtype(dtype or flatten(state)[0].dtype).base_dtype
        structure = map_structure(lambda n: n, cell.output_size)
        arrays = [TensorArray(kind, steps) for _ in flatten(structure)]

        def step(time: Any, held: Any, written: Any) -> Any:
            parts = []
            for x in flat:
                part = apply("GatherV2", x, time, 0, batch_dims=0)
                part.set_shape(x.shape[1:])
                parts.append(part)
            output, new = cell(pack_sequence_as(inputs, parts), held)
            outputs = [convert_to_tensor(o) for o in flatten(output)]
            if lengths is not None:
                done = apply("GreaterEqual", time, lengths)
                outputs = [_kept(done, A.zeros_like(o), o) for o in outputs]
                new = map_structure(lambda old, n: _kept(done, old, n), held, new)
            stored = [a.write(time, o) for a, o in zip(written, outputs, strict=True)]
            return time + 1, new, stored

        _, last, arrays = while_loop(
            lambda time, *_: time < steps, step, (constant(0, name="time"), state, arrays)
        )
        outputs = [a.stack() for a in arrays]
        for o in outputs:
            if o.shape.ndims is not None:
                o.set_shape([flat[0].shape[0].value, flat[0].shape[1].value, *o.shape.lengths[2:]])
        if not time_major:
            outputs = [_turned(o) for o in outputs]
        return pack_sequence_as(structure, outputs), last


def _kept(done: Tensor, old: Tensor, new: Tensor) -> Tensor:
    made: Tensor = apply("Select", done, old, new)
    made.set_shape(new.shape)
    return made


def _turned(x: Tensor) -> Tensor:
    """With the first two axes exchanged."""
    n = x.shape.ndims
    if n is None:
        raise ValueError("dynamic_rnn needs inputs of known rank")
    return A.transpose(x, [1, 0, *range(2, n)])


def _length(x: Tensor, axis: int) -> Any:
    known = x.shape[axis].value
    return A.shape(x)[axis] if known is None else known


def static_rnn(
    cell: Any, inputs: Any, initial_state: Any = None, dtype: Any = None,
    sequence_length: Any = None, scope: Any = None,
) -> Any:  # fmt: skip
    """A cell run over a list of inputs: (list of outputs, last state)."""
    with variable_scope(scope or "rnn") as opened:
        first = convert_to_tensor(flatten(inputs[0])[0])
        state = _first_state(cell, initial_state, _length(first, 0), dtype)
        outputs = []
        for time, x in enumerate(inputs):
            if time > 0:
                opened.reuse_variables()
            output, new = cell(x, state)
            if sequence_length is not None:
                done = apply("GreaterEqual", time, M.to_int32(sequence_length))
                output = _kept(done, A.zeros_like(output), output)
                new = map_structure(partial(_kept, done), state, new)
            state = new
            outputs.append(output)
        return outputs, state


def bidirectional_dynamic_rnn(
    cell_fw: Any, cell_bw: Any, inputs: Any, sequence_length: Any = None,
    initial_state_fw: Any = None, initial_state_bw: Any = None, dtype: Any = None,
    parallel_iterations: Any = None, swap_memory: bool = False, time_major: bool = False,
    scope: Any = None,
) -> Any:  # fmt: skip
    """Two cells, one forward and one backward in time."""
    with variable_scope(scope or "bidirectional_rnn"):
        with variable_scope("fw") as fw:
            out_fw, state_fw = dynamic_rnn(cell_fw, inputs, sequence_length, initial_state_fw,
                                           dtype, time_major=time_major, scope=fw)  # fmt: skip
        axis, batch = (0, 1) if time_major else (1, 0)

        def turned(x: Any) -> Any:
            if sequence_length is None:
                return A.reverse(x, [axis])
            return A.reverse_sequence(x, sequence_length, axis, batch)

        with variable_scope("bw") as bw:
            out_bw, state_bw = dynamic_rnn(cell_bw, turned(inputs), sequence_length,
                                           initial_state_bw, dtype, time_major=time_major,
                                           scope=bw)  # fmt: skip
        return (out_fw, turned(out_bw)), (state_fw, state_bw)


def raw_rnn(*_: Any, **__: Any) -> Any:
    """Not there."""
    raise NotImplementedError("raw_rnn: write tf.while_loop with a TensorArray")
