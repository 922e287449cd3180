"""Functions of NumPy arrays in LLVM IR, which Python calls as built-in functions.

A built-in function of METH_FASTCALL gets its arguments as an array of objects. What it reads of an
array is laid down by NumPy's C interface, PyArrayObject: after the object's header of 16 bytes
come the data pointer, the number of axes (an int), the lengths and the strides.
"""

from __future__ import annotations

from .text import Text, function

TAKES = "ptr %self, ptr %args, i64 %count"
DECLARATIONS = (
    "declare void @Py_IncRef(ptr)",
    "declare i64 @PyLong_AsLong(ptr)",
    "declare ptr @PyEval_SaveThread()",
    "declare void @PyEval_RestoreThread(ptr)",
)


def argument(t: Text, place: int) -> str:
    """The object at this place of the call."""
    return t.load("ptr", t.at("%args", 8 * place))


def number(t: Text, place: int) -> str:
    """The Python integer at this place of the call."""
    return t(f"call i64 @PyLong_AsLong(ptr {argument(t, place)})")


def built_in(name: str, t: Text, result: str, *more: str) -> str:
    """The function of this body, which returns one of its arguments. more: what else it takes."""
    t.do(f"call void @Py_IncRef(ptr {result})")
    return function("ptr", name, ", ".join((TAKES, *more)), t, result, internal=False)


class ArrayArgument:
    """What a kernel reads of an array; axes are counted from the last, which is 1."""

    def __init__(self, t: Text, place: int) -> None:
        self.t = t
        self.object = argument(t, place)
        self.data = t.load("ptr", t.at(self.object, 16))
        self._axes = t(f"sext i32 {t.load('i32', t.at(self.object, 24))} to i64")
        self._lengths = t.load("ptr", t.at(self.object, 32))
        self._strides = t.load("ptr", t.at(self.object, 40))

    def _read(self, table: str, axis: int) -> str:
        return self.t.load("i64", self.t.at(table, self.t.mul(self.t.sub(self._axes, axis), 8)))

    def length(self, axis: int) -> str:
        """The length of an axis."""
        return self._read(self._lengths, axis)

    def stride(self, axis: int) -> str:
        """Bytes from one entry along an axis to the next."""
        return self._read(self._strides, axis)

    def has(self, axis: int) -> str:
        """Whether there are this many axes."""
        return self.t(f"icmp sge i64 {self._axes}, {axis}")

    def length_or_one(self, axis: int) -> str:
        """The length of an axis that need not be there."""
        return self.t.value_if(self.has(axis), "i64", lambda: self.length(axis), "1")

    def step(self, axis: int) -> str:
        """The stride of an axis that broadcasts: 0 where it is missing or of length 1."""

        def read() -> str:
            single = self.t(f"icmp eq i64 {self.length(axis)}, 1")
            return self.t.chosen(single, "i64", 0, self.stride(axis))

        return self.t.value_if(self.has(axis), "i64", read, "0")


class Unlocked:
    """Between `start` and `stop`, other Python threads run, if the condition held at the start."""

    def __init__(self, t: Text, condition: str) -> None:
        self.t = t
        self.condition = condition
        self._state = ""

    def start(self) -> None:
        """Give the interpreter lock back."""
        save = "call ptr @PyEval_SaveThread()"
        self._state = self.t.value_if(self.condition, "ptr", lambda: self.t(save), "null")

    def stop(self) -> None:
        """Take it again."""
        restore = f"call void @PyEval_RestoreThread(ptr {self._state})"
        self.t.when(self.condition, lambda: self.t.do(restore))
