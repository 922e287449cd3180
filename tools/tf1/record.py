"""Record what TensorFlow does in the cases and examples that graphgrad.tf1 is held to.

    TF_USE_LEGACY_KERAS=1 python tools/tf1/record.py [group ...]

Needs TensorFlow 2 and tf_keras (for layers and cells). Without a group, all groups and the
examples. Every case is run twice: what is not the same both times cannot be recorded.
"""

import sys
from pathlib import Path

import tensorflow.compat.v1 as tf

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.tf1.recorded import running


def main(groups):
    """Record these groups, or all."""
    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.ERROR)
    for group in groups or running.GROUPS:
        records = {name: recorded(name, c) for name, c in running.cases_of(group).items()}
        running.write_records(group, records)
        print(f"{group}: {len(records)} cases")


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


if __name__ == "__main__":
    main(sys.argv[1:])
