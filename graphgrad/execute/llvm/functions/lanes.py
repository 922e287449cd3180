"""What only few lanes need."""

from __future__ import annotations

from collections.abc import Callable

from ..emit.values import Value


def rarely(few: Value, here: Value, there: Callable[[], Value]) -> Value:
    """here, but there() in lanes where `few` holds; it is computed only where there are any."""
    body = here.body
    some = few.name
    if here.lanes > 1:
        reduce = f"llvm.vector.reduce.or.v{here.lanes}i1"
        body.module.declare(reduce, "i1", few.type)
        some = body(f"call i1 @{reduce}({few.type} {few.name})")
    warm = body.block("warm")
    cold, after = body.new("cold"), body.new("after")
    body.do(f"br i1 {some}, label %{cold}, label %{after}")
    body.label(cold)
    mixed = few.where(there(), here)
    body.do(f"br label %{after}")
    body.label(after)
    return here.let(f"phi {here.type} [{here.name}, %{warm}], [{mixed.name}, %{cold}]")
