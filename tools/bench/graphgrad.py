"""graphgrad as a peer of the side-by-side benchmark (see peers.py).

The benchmark loads this file by its path, so that `import graphgrad` is the package. For the same
reason nothing that imports graphgrad can be run as a script in this folder. Parameters are
variables, data are fed, custom gradients are override scopes.
"""

import time

import numpy as np
from ops import Ops

import graphgrad as gg


class GraphOps(Ops):
    """The functions that workloads are written with."""

    exp = staticmethod(gg.exp)
    log = staticmethod(gg.log)
    log1p = staticmethod(gg.log1p)
    tanh = staticmethod(gg.tanh)
    sin = staticmethod(gg.sin)
    sqrt = staticmethod(gg.sqrt)
    abs = staticmethod(gg.abs)
    round = staticmethod(gg.round)
    maximum = staticmethod(gg.maximum)
    where = staticmethod(gg.where)
    sum = staticmethod(gg.sum)
    mean = staticmethod(gg.mean)
    max = staticmethod(gg.max)
    reshape = staticmethod(gg.reshape)
    transpose = staticmethod(gg.transpose)
    matmul = staticmethod(gg.matmul)
    concat = staticmethod(gg.concat)
    const = staticmethod(gg.constant)
    zeros_like = staticmethod(gg.zeros_like)
    stop = staticmethod(gg.stop_gradient)
    relu = staticmethod(gg.nn.relu)
    sigmoid = staticmethod(gg.nn.sigmoid)
    softmax = staticmethod(gg.nn.softmax)
    conv2d = staticmethod(gg.nn.conv)

    def gelu(self, x):
        """By tanh, as the peers have it."""
        return gg.nn.gelu(x, approximate=True)

    def xent(self, logits, labels):
        """Mean cross entropy with one-hot labels."""
        return gg.nn.cross_entropy(logits, labels, reduction="mean")

    def maxpool2(self, x):
        """The largest element of each window of 2 by 2."""
        return gg.nn.max_pool(x, 2)

    def checkpoint(self, fn):
        """fn, whose inside is computed again going backward."""
        return gg.rules.checkpoint(lambda *args: fn(self, *args))

    def custom(self, name, fwd, bwd, tf_op=None):
        """fwd under an override scope, whose rule is bwd."""

        @gg.register_gradient(name, replace=True)
        def rule(site, dy):
            (x,), (y,) = site.inputs, site.outputs
            return bwd(self, dy, x, y)

        def marked(x):
            with gg.override_gradient(name):
                return fwd(self, x)

        return marked


class Peer:
    """One workload at a time: built, compiled, and run."""

    backend = "auto"

    def __init__(self):
        self.ops = GraphOps()

    def w1(self, workload):
        """Seconds to build, to differentiate, and to compile; the results of a first run."""
        names = workload["wrt"]
        with gg.Graph():
            inputs = {k: gg.placeholder(v.shape, v.dtype) for k, v in workload["inputs"].items()}
            start = time.perf_counter()
            loss = workload["fn"](self.ops, inputs)
            built = time.perf_counter()
            grads = gg.gradients(loss, [inputs[k] for k in names])
            differentiated = time.perf_counter()
            run = gg.compile([*inputs.values()], [loss, grads], backend=self.backend)
        compiled = time.perf_counter()
        loss, grads = run(*workload["inputs"].values())
        done = time.perf_counter()
        self.out = loss, dict(zip(names, grads, strict=True))
        return {
            "build": built - start,
            "grad": differentiated - built,
            "compile": compiled - differentiated,
            "first_run": done - compiled,
        }

    def build(self, workload):
        """Build, compile and run once; the seconds of each."""
        start = time.perf_counter()
        kind, self.names = workload["kind"], workload["wrt"]
        self.kind = kind
        fed = [k for k in workload["inputs"] if k not in workload["state"]]
        with gg.Graph() as self.graph:
            tensors = {
                k: gg.placeholder(v.shape, v.dtype, name=k) if k in fed else gg.variable(v, name=k)
                for k, v in workload["inputs"].items()
            }
            self.wrt = [tensors[k] for k in self.names]
            loss = workload["fn"](self.ops, tensors)
            outputs, updates = self._asked(kind, loss, workload)
            built = time.perf_counter()
            inputs = [tensors[k] for k in fed]
            self.compiled = gg.compile(inputs, outputs, updates=updates, backend=self.backend)
        compiled = time.perf_counter()
        self.args = [np.array(workload["inputs"][k]) for k in fed]
        self.run()
        done = time.perf_counter()
        return {"graph": built - start, "compile": done - built, "first": done - compiled}

    def _asked(self, kind, loss, workload):
        """What to compile: outputs, updates."""
        if kind == "call":
            return [loss], {}
        grads = gg.gradients(loss, self.wrt)
        if kind == "grad":
            return [loss, *grads], {}
        if kind == "train":
            rate = workload["lr"]
            return [loss], {w: w - rate * g for w, g in zip(self.wrt, grads, strict=True)}
        vectors = [workload["vec"][k] for k in self.names]
        along = sum(gg.sum(g * v) for g, v in zip(grads, vectors, strict=True))
        return [along, *gg.gradients(along, self.wrt)], {}

    def run(self):
        """One step."""
        self.found = self.compiled(*self.args)

    def results(self):
        """(Loss, {name: gradient, or the parameter after a step})."""
        loss, *grads = self.found
        if self.kind == "train":
            grads = [self.graph.state[w] for w in self.wrt]
        return loss, dict(zip(self.names, grads, strict=False))
