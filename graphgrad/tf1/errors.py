"""The errors of a run, by TensorFlow's names: `tf.errors.FailedPreconditionError`, ..."""

from __future__ import annotations

from typing import Any

__all__ = [
    "AbortedError", "AlreadyExistsError", "CancelledError", "DataLossError",
    "DeadlineExceededError", "FailedPreconditionError", "InternalError", "InvalidArgumentError",
    "NotFoundError", "OpError", "OperatorNotAllowedInGraphError", "OutOfRangeError",
    "PermissionDeniedError", "ResourceExhaustedError", "UnauthenticatedError", "UnavailableError",
    "UnimplementedError", "UnknownError",
]  # fmt: skip


class OperatorNotAllowedInGraphError(TypeError):
    """A tensor was used as a Python truth value, or iterated over."""


class OpError(Exception):
    """An op failed in a run.

    op        the Operation, or None
    node_def  its description, or None
    message   what happened
    """

    code = 2

    def __init__(self, node_def: Any, op: Any, message: str, error_code: int | None = None) -> None:
        super().__init__(message)
        self._node_def, self._op, self._message = node_def, op, message
        self._error_code = self.code if error_code is None else error_code

    @property
    def message(self) -> str:
        """What happened."""
        return self._message

    @property
    def op(self) -> Any:
        """The Operation that failed, or None."""
        return self._op

    @property
    def node_def(self) -> Any:
        """The description of the Operation, or None."""
        return self._node_def

    @property
    def error_code(self) -> int:
        """TensorFlow's number of this kind of error."""
        return self._error_code

    def __str__(self) -> str:
        if self._op is None:
            return self._message
        return (
            f"{self._message}\n\t [[node {self._op.name} ({self._op.type}), "
            f"built at {self._op.where}]]"
        )

    def __reduce__(self) -> Any:
        return type(self), (None, None, str(self), self._error_code)


def _kind(name: str, number: int, doc: str) -> Any:
    return type(name, (OpError,), {"code": number, "__doc__": doc, "__module__": __name__})


CancelledError = _kind("CancelledError", 1, "An op was cancelled.")
UnknownError = _kind("UnknownError", 2, "A Python function called by an op failed.")
InvalidArgumentError = _kind("InvalidArgumentError", 3, "An op got a value that does not fit.")
DeadlineExceededError = _kind("DeadlineExceededError", 4, "An op took too long.")
NotFoundError = _kind("NotFoundError", 5, "A file or a value is not there.")
AlreadyExistsError = _kind("AlreadyExistsError", 6, "It is there already.")
PermissionDeniedError = _kind("PermissionDeniedError", 7, "It is not allowed.")
ResourceExhaustedError = _kind("ResourceExhaustedError", 8, "There is not enough memory.")
FailedPreconditionError = _kind("FailedPreconditionError", 9, "A variable has no value yet.")
AbortedError = _kind("AbortedError", 10, "An op was aborted.")
OutOfRangeError = _kind("OutOfRangeError", 11, "There is no more of it.")
UnimplementedError = _kind("UnimplementedError", 12, "This is not there.")
InternalError = _kind("InternalError", 13, "Something inside is wrong.")
UnavailableError = _kind("UnavailableError", 14, "It cannot be had now.")
DataLossError = _kind("DataLossError", 15, "Data is broken.")
UnauthenticatedError = _kind("UnauthenticatedError", 16, "It is not known who asks.")
