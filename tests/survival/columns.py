"""The columns of the matrix, with their headings."""

from __future__ import annotations

from dataclasses import dataclass

from graphgrad.optimise.rewrite import rewrite
from graphgrad.optimise.rules.catalogue import ALGEBRA

from ..optimise.helpers import (
    eliminate_common_subexpressions,
    fold_constants,
    remove_residuals_and_identities,
)
from . import batches as b
from . import contexts as c
from . import edited as e
from . import slots as s
from . import transforms as t
from .transforms import Transform, one_pass


@dataclass(frozen=True)
class Column:
    """A transform with its heading.

    needs   a package
    sample  the rows that are tried by default; the others are by .ci/run. None: every third
    """

    title: str
    run: Transform
    needs: str = ""
    sample: tuple[str, ...] | None = None


LOOPED = ("Linear", "Values", "Many", "Variables", "Nested", "OpensRegion", "CallsGradients")


JOURNEYS: dict[str, t.Journey] = {
    "copy": t.copy_of,
    "import": t.import_of,
    "pickle": t.stored,
    "file": t.saved,
    "subgraph": t.part_of,
}
EDITS = {"unmarked": e.UNMARKED, "replaced": e.REPLACED, "marked inside": e.INSIDE}
EDITED: list[Column] = [
    column
    for how, edit in EDITS.items()
    for column in (
        *(
            Column(f"{way}, {how}", e.edited(edit, go), sample=LOOPED if way == "file" else None)
            for way, go in {"stay": t.stay, **JOURNEYS}.items()
        ),
        Column(f"vmap, {how}", e.edited_batch(edit)),
        Column(f"checkpoint, {how}", e.edited_checkpoint(edit)),
    )
]
HOME_EDITED = [Column(f"{way}, home edited", e.home_edited(go)) for way, go in JOURNEYS.items()]
CHOSEN = [
    *(Column(f"{way}, overrides=", e.chosen(go)) for way, go in JOURNEYS.items()),
    Column("vmap, overrides=", e.chosen_in_a_batch),
]
NAMES = [
    Column("copy, name registered anew", e.named_anew(t.copy_of)),
    Column("vmap, name registered anew", e.named_anew_in_a_batch),
    Column("pickle, name registered anew", e.named_anew(t.stored, keeps=True)),
    Column("file, name registered anew", e.named_anew(t.saved, keeps=True), sample=LOOPED),
]

COLUMNS: list[Column] = [
    Column("gradients", t.gradients),
    Column("second order", t.second_order),
    Column("third order", t.third_order),
    Column("grad_ys", t.grad_ys),
    Column("stop_gradients", t.stop_gradients),
    Column("fan-out", t.fan_out),
    Column("CSE twins", t.cse_twins),
    Column("hidden tensor fed", t.hidden_fed),
    Column("jvp", t.jvp),
    Column("jvp of a copy", t.jvp_after_copy),
    Column("jvp of an import", t.jvp_after_import),
    Column("jvp of a pickle", t.jvp_after_pickle),
    Column("jvp of a file", t.jvp_after_file, sample=LOOPED),
    Column("jvp of gradients", t.jvp_of_gradients),
    Column("vmap(jvp)", t.vmap_of_jvp),
    Column("jvp(vmap)", t.jvp_of_vmap),
    Column("jacobian", t.jacobian),
    Column("hvp", t.hvp),
    Column("hessian", t.hessian),
    Column("overrides=", t.call_overrides),
    Column("retrofit", t.retrofit),
    Column("two in a row", t.two_in_a_row),
    Column("inside cond", t.in_a_branch),
    Column("gradients inside cond", t.asked_in_a_branch),
    Column("around cond", t.around_a_choice),
    Column("inside a region", t.inside_a_region),
    Column("checkpoint", t.checkpoint),
    Column("vmap(grad)", t.vmap_of_grad),
    Column("grad(vmap)", t.grad_of_vmap),
    Column("vmap(vmap(grad))", t.vmap_of_vmap),
    Column("vmap of cond: all alike", t.of_a_choice_of_batches),
    Column("vmap of cond: each its own", t.of_a_batch_of_choices),
    Column("vmap around cond", t.of_a_batch_around_choices),
    Column("numpy, optimised", t.numpy_optimised),
    Column("numpy, as built", t.numpy_plain),
    Column("pass: identities", one_pass(remove_residuals_and_identities)),
    Column("pass: fold", one_pass(fold_constants)),
    Column("pass: simplify", one_pass(rewrite(*ALGEBRA))),
    Column("pass: merge", one_pass(eliminate_common_subexpressions)),
    Column("jax, optimised", t.jax_optimised, "jax"),
    Column("jax, as built", t.jax_plain, "jax"),
    Column("copy", t.copied),
    Column("copy of a copy", t.copied_twice),
    Column("deepcopy", t.deep_copied),
    Column("gradients, copy, gradients", t.with_gradient(t.copy_of)),
    Column("pickle", t.pickled),
    Column("pickle, import", t.pickled_imported),
    Column("file", t.in_file),
    Column("around cond, copy", t.copied_around_cond),
    Column("around cond, pickle", t.pickled_around_cond),
    Column("inside cond, pickle", t.pickled_in_a_branch),
    Column("import", t.imported),
    Column("import under scopes", t.imported_under_scopes),
    Column("import into a region", t.imported_into_a_region),
    Column("copy, import, copy", t.copied_imported_copied),
    Column("subgraph", t.cut_out),
    Column("threads", t.threads),
    Column("pickle, subgraph", t.cut_out_of_stored),
    Column("vmap, copy", e.batch_carried(e.copied)),
    Column("vmap, import", e.batch_carried(e.imported)),
    Column("vmap, pickle", e.batch_carried(e.stored)),
    Column("vmap, file", e.batch_carried(e.saved), sample=LOOPED),
    Column("vmap, subgraph", e.batch_carried(e.cut_out)),
    Column("gradients, import, gradients", t.with_gradient(t.import_of)),
    Column("gradients, pickle, gradients", t.with_gradient(t.stored)),
    Column("gradients, file, gradients", t.with_gradient(t.saved), sample=LOOPED),
    Column("gradients, subgraph, gradients", t.with_gradient(t.part_of)),
    Column("grad(vmap(grad))", t.grad_of_vmap_of_grad),
    *EDITED,
    *HOME_EDITED,
    *CHOSEN,
    *NAMES,
    Column("in tasks", c.in_tasks),
    Column("in turns", c.in_turns),
    Column("in copied contexts", c.in_a_copied_context),
    Column("in a worker thread", c.in_a_worker),
    Column("vmap, shared arguments", b.shared),
    Column("vmap, mixed", b.mixed),
    Column("vmap inside cond", b.in_a_branch),
    Column("one output of two", t.one_of_two()),
    Column("one output of two, copy", t.one_of_two(t.copy_of)),
    Column("one output of two, pickle", t.one_of_two(t.stored)),
    Column("one output of two, inside cond", t.one_of_two(body=t.within_cond)),
    Column("one output of two, checkpoint", t.one_of_two(body=t.recomputed)),
    Column("jvp, one input of two", t.jvp_one_of_two),
    Column("gg.function", t.as_function),
    Column("checkpoint of a gradient", t.checkpoint_of_gradients),
    Column("inside scan", t.in_a_scan, sample=LOOPED),
    Column("inside while", t.in_a_while, sample=LOOPED),
    Column("inside map", t.in_a_map, sample=LOOPED),
    Column("around scan", t.around_a_loop, sample=LOOPED),
    Column("one tensor twice, import", s.one_for_two(t.stay)),
    Column("one tensor twice, vmap", s.one_for_two(t.stay, s.batch_of_two)),
    *(
        Column(f"one tensor twice, {way}", s.one_for_two(go), sample=LOOPED)
        for way, go in JOURNEYS.items()
        if way != "import"
    ),
]
