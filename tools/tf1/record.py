"""Record what TensorFlow does in the cases and examples that graphgrad.tf1 is held to.

    TF_USE_LEGACY_KERAS=1 python tools/tf1/record.py [group or example ...]

Needs TensorFlow 2, tf_keras for layers and cells, tf_slim for what was in tf.contrib. Without a
name, all groups and examples. Cases are run twice: what is not the same cannot be recorded.
"""

import sys
from contextlib import redirect_stdout
from importlib import import_module
from io import StringIO
from pathlib import Path
from types import ModuleType, SimpleNamespace

import graph_editor
import tensorflow.compat.v1 as tf

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.tf1.recorded import running, sweep


def main(names):
    """Record these groups and examples, or all."""
    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.ERROR)
    with_contrib()
    for group in running.GROUPS:
        if not names or group in names:
            records = {name: recorded(name, c) for name, c in running.cases_of(group).items()}
            running.write_records(group, records)
            print(f"{group}: {len(records)} cases")
    if not names or "differentiable" in names:
        table = import_module("tensorflow.python.framework.ops").gradient_registry
        rules = {t: table.lookup(t) for t in sorted(table.list())}
        none = [t for t, rule in rules.items() if rule is None]
        both = {"differentiable": sorted(set(rules) - set(none)), "not differentiable": none}
        running.write_records("differentiable", both)
        print(f"differentiable: {len(rules)} op types")
    if not names or "sweep" in names:
        records = {t: sweep.results_of(tf, calls) for t, calls in sweep.TABLE.items()}
        running.write_records("sweep", records)
        print(f"sweep: {len(records)} op types, {sum(map(len, records.values()))} calls")
    for example in running.EXAMPLES:
        if not names or example in names:
            running.write_printed(example, printed(example))
            print(f"{example}: printed")


def with_contrib():
    """Put in place what there is of `tf.contrib`, which TensorFlow 2 does not have."""
    for name in ("", ".base", ".convolutional", ".core", ".normalization", ".pooling"):
        module = import_module(f"tf_keras.src.legacy_tf_layers{name}")
        sys.modules[f"tf_keras.legacy_tf_layers{name}"] = module  # where tf_slim looks for it
    import_module("tensorflow.python.framework.ops").Tensor = tf.Tensor  # moved since
    slim = import_module("tf_slim")
    contrib = ModuleType("tensorflow.contrib")
    contrib.graph_editor = graph_editor
    contrib.slim = contrib.layers = contrib.framework = slim
    contrib.image = SimpleNamespace(rotate=rotate)
    tf.contrib = sys.modules[contrib.__name__] = contrib


def rotate(images, angles, interpolation="NEAREST"):
    """What `tf.contrib.image.rotate` was: a turn round the middle, zeros from outside."""
    height, width = (tf.cast(n - 1, tf.float32) for n in tf.unstack(tf.shape(images)[1:3]))
    angles = tf.reshape(tf.convert_to_tensor(angles, tf.float32), [-1])
    cos, sin, zeros = tf.cos(angles), tf.sin(angles), tf.zeros_like(angles)
    x = (width - (cos * width - sin * height)) / 2.0
    y = (height - (sin * width + cos * height)) / 2.0
    return tf.raw_ops.ImageProjectiveTransformV2(
        images=images,
        transforms=tf.stack([cos, -sin, x, sin, cos, y, zeros, zeros], 1),
        output_shape=tf.shape(images)[1:3],
        interpolation=interpolation,
    )


def recorded(name, case):
    """The result of a case, which has to be the same a second time."""
    first, second = (running.result_of(case, tf) for _ in range(2))
    if different := running.differences(first, second, name):
        raise SystemExit("\n".join(different))
    return shortened(first)


def shortened(record):
    """A record with an error's own class alone, not its bases."""
    if running.is_error(record):
        return {**record, "raised": record["raised"][:1]}
    if isinstance(record, dict):
        return {k: shortened(v) for k, v in record.items()}
    return [shortened(v) for v in record] if isinstance(record, list) else record


def printed(example):
    """What an example prints under TensorFlow: the same source but for its imports."""
    path = running.LEGACY / f"{example}.py"
    source = path.read_text().replace("import graphgrad.tf1 as", "import tensorflow.compat.v1 as")
    code = compile(source.replace("graphgrad.tf1", "tensorflow"), str(path), "exec")
    with tf.Graph().as_default(), redirect_stdout(StringIO()) as out:
        exec(code, {"__name__": "__main__"})
    return out.getvalue()


if __name__ == "__main__":
    main(sys.argv[1:])
