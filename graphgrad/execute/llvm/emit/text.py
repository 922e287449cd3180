"""Writing LLVM IR: lines, fresh names, and the few shapes of control flow that kernels need."""

from __future__ import annotations

from collections.abc import Callable

Act = Callable[[], None]


class Text:
    """The body of one function. Calling it adds a value; integers are i64, addresses are bytes."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._count = 0

    def __call__(self, expression: str) -> str:
        """The name of a new value."""
        self._count += 1
        self.lines.append(f"  %v{self._count} = {expression}")
        return f"%v{self._count}"

    def do(self, line: str) -> None:
        """An instruction without a value."""
        self.lines.append(f"  {line}")

    def label(self, name: str) -> None:
        """The start of a block."""
        self.lines.append(f"{name}:")

    def new(self, stem: str) -> str:
        """A name nobody has."""
        self._count += 1
        return f"{stem}{self._count}"

    def block(self, stem: str) -> str:
        """A new block, which what came before leads to."""
        name = self.new(stem)
        self.do(f"br label %{name}")
        self.label(name)
        return name

    def at(self, base: str, offset: str | int) -> str:
        """The address `offset` bytes on."""
        return self(f"getelementptr i8, ptr {base}, i64 {offset}")

    def load(self, kind: str, where: str) -> str:
        """The value of this type at an address."""
        return self(f"load {kind}, ptr {where}")

    def add(self, a: str | int, b: str | int) -> str:
        """a + b"""
        return self(f"add i64 {a}, {b}")

    def sub(self, a: str | int, b: str | int) -> str:
        """a - b"""
        return self(f"sub i64 {a}, {b}")

    def mul(self, a: str | int, b: str | int) -> str:
        """a * b"""
        return self(f"mul i64 {a}, {b}")

    def div(self, a: str | int, b: str | int) -> str:
        """a // b for lengths."""
        return self(f"udiv i64 {a}, {b}")

    def ceil(self, a: str | int, b: int) -> str:
        """How many b cover a."""
        return self.div(self.add(a, b - 1), b)

    def least(self, a: str | int, b: str | int) -> str:
        """min(a, b)"""
        return self(f"call i64 @llvm.smin.i64(i64 {a}, i64 {b})")

    def chosen(self, condition: str, kind: str, a: str | int, b: str | int) -> str:
        """a where the condition holds, else b"""
        return self(f"select i1 {condition}, {kind} {a}, {kind} {b}")

    def loop(
        self, start: str | int, stop: str | int, step: str | int, body: Callable[[str], None]
    ) -> None:
        """for i in range(start, stop, step): body(i)"""
        i, following, more = (f"%{self.new(s)}" for s in ("i", "next", "more"))
        test, inside, end, after = (self.new(s) for s in ("test", "body", "end", "done"))
        head = self.block("head")
        self.do(f"br label %{test}")
        self.label(test)
        self.do(f"{i} = phi i64 [{start}, %{head}], [{following}, %{end}]")
        self.do(f"{more} = icmp slt i64 {i}, {stop}")
        self.do(f"br i1 {more}, label %{inside}, label %{after}")
        self.label(inside)
        body(i)
        self.do(f"br label %{end}")
        self.label(end)
        self.do(f"{following} = add i64 {i}, {step}")
        self.do(f"br label %{test}")
        self.label(after)

    def when(self, condition: str, then: Act, other: Act | None = None) -> None:
        """if condition: then() else: other()"""
        yes, no, after = (self.new(s) for s in ("then", "else", "after"))
        self.do(f"br i1 {condition}, label %{yes}, label %{no}")
        for name, act in ((yes, then), (no, other)):
            self.label(name)
            if act is not None:
                act()
            self.do(f"br label %{after}")
        self.label(after)

    def value_if(self, condition: str, kind: str, read: Callable[[], str], missing: str) -> str:
        """read() where the condition holds, else `missing`"""
        there, end, after = (self.new(s) for s in ("there", "end", "after"))
        before = self.block("before")
        self.do(f"br i1 {condition}, label %{there}, label %{after}")
        self.label(there)
        value = read()
        self.do(f"br label %{end}")
        self.label(end)
        self.do(f"br label %{after}")
        self.label(after)
        return self(f"phi {kind} [{missing}, %{before}], [{value}, %{end}]")


def function(
    result: str, name: str, takes: str, text: Text, value: str = "", *, internal: bool = True
) -> str:
    """The definition of a function. It is not inlined: code size is what compiling costs.

    Nothing is thrown through it, so no tables for unwinding go with it, which would be registered
    with the C runtime when code is loaded.
    """
    body = "\n".join(text.lines)
    kind = "internal " if internal else ""
    head = f"define {kind}{result} @{name}({takes}) noinline nounwind"
    return f"{head} {{\n{body}\n  ret {result} {value}\n}}"
