"""Rules and the registry of their names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar, Token
from importlib import import_module
from types import MappingProxyType
from typing import Any, TypeVar

from ..base.collector import undisturbed
from ..base.errors import (
    DuplicateGradientError,
    GradientError,
    ScopeError,
    UnknownGradientError,
    did_you_mean,
)
from ..base.flags import truth
from ..base.locks import lock_of_module
from ..base.position import Position, caller, of_function, show
from ..ir.node import Tensor, callable_name
from ..ir.op import OP_TYPES
from .contracts import Contract, as_contract

__all__ = [
    "RegisterGradient",
    "Rule",
    "get_gradient",
    "is_registered",
    "register_gradient",
    "registered_gradients",
    "temporary_gradient",
    "unregister_gradient",
]

Fn = TypeVar("Fn", bound=Callable[..., Any])


class Rule:
    """A gradient rule: fn(site, *dys) -> one gradient per input of the site.

    Parameters:
        fn: the function; it is graph code. It returns a tensor, a number, an array, NO_GRAD, None
            or DEFAULT for each input, as one value for one input, else in a list, tuple or mapping.
        name: what it is called in messages and pictures; None: the function's name.
        contract: what it declares itself to be; None: nothing.
        linear: whether it is linear in dys; None: find out from what it builds.
        jvp: jvp(site, *dxs) -> one tangent per output, for forward mode; None: transpose fn.
        position: where it was defined; None: where fn was.

    Raises: ValueError for another contract.

    >>> half = gg.Rule(lambda site, dy: dy / 2, "half", contract=gg.scaled(0.5))
    >>> x = gg.constant(1.0)
    >>> gg.evaluate(gg.gradients(gg.override(half)(lambda x: 3 * x)(x), x))
    array(0.5)
    """

    __slots__ = ("contract", "fn", "jvp", "linear", "name", "on_tensors", "position")
    on_tensors: Callable[[Sequence[Tensor]], None] | None
    """Raises where it cannot be the rule of a site of these tensors; None: it can be of any."""

    def __init__(
        self,
        fn: Callable[..., Any],
        name: str | None = None,
        *,
        contract: Contract | str | None = None,
        linear: bool | None = None,
        jvp: Callable[..., Any] | None = None,
        position: Position | None = None,
    ) -> None:
        self.fn = fn
        self.name = name or callable_name(fn)
        self.contract = None if contract is None else as_contract(contract)
        self.linear = None if linear is None else truth("linear", linear)
        self.jvp = jvp
        self.position = position or of_function(fn)
        self.on_tensors = None

    @property
    def exact(self) -> bool:
        """Whether it is declared to be the true derivative."""
        return self.contract is not None and self.contract.kind == "exact"

    @property
    def where(self) -> str:
        """`grads.py:3`: where the function was defined, or a rule of the library asked for."""
        return show(self.position)

    def __repr__(self) -> str:
        return f"<rule {self.name!r}, {self.where}>"


class BuiltinRule(Rule):
    """The own rule of an op type, used under its name for other sites."""

    __slots__ = ("op_type",)

    def __init__(self, op_type: str) -> None:
        super().__init__(OP_TYPES[op_type].vjp, op_type)
        self.op_type = op_type


_rules: dict[str, Rule] = {}
_registered_at: dict[str, Position | None] = {}
_own: dict[str, Rule] = {}
_library: dict[str, Callable[..., Any]] = {}
_lock = lock_of_module()

OWN = {"gg.rules.": "graphgrad.rules", "gg.healing.": "graphgrad.healing.forms"}
"""What the names of graphgrad's own rules begin with, and the module that names them."""

_OWN_STARTS = tuple(OWN)


def _import_library() -> None:
    """Import `gg.rules`, which offers its functions here and names its own rules."""
    import_module("graphgrad.rules")


def offer(make: Callable[..., Any]) -> None:
    """Know a function of `gg.rules`, for who gives its name, or itself, where a rule is wanted."""
    _library[make.__name__] = make


def own_rule(name: str, fn: Callable[..., Any], **declared: Any) -> str:
    """Name a rule that graphgrad puts itself, and that nobody can register.

    It knows nothing but its site, so the name goes wherever that is carried: into copies, files and
    batches. There it may come before `gg.rules` is imported.
    """
    _own[name] = Rule(fn, name, **declared)
    return name


def _own_of(name: str) -> Rule | None:
    """The rule of this name that graphgrad puts itself."""
    for start, module in OWN.items():
        if name.startswith(start):
            import_module(module)
    return _own.get(name)


def is_own(rule: Any) -> bool:
    """Whether it is the name of such a rule."""
    if not isinstance(rule, str) or not rule.startswith(_OWN_STARTS):
        return False
    return _own_of(rule) is not None


def register_gradient(
    name: str,
    *,
    replace: bool = False,
    contract: Contract | str | None = None,
    linear: bool | None = None,
    jvp: Callable[..., Any] | None = None,
) -> Callable[[Fn], Fn]:
    """Decorator: register fn(site, *dys) under a name.

    Parameters:
        name: the name by which scopes, marks and overrides refer to the rule.
        replace: whether to replace an existing rule with this name.
        contract: the property that the rule declares, which check_gradient tests: "exact", "stop",
            "estimator", "attribution", "policy", gg.surrogate_of(f), gg.scaled(s).
        linear: whether the rule is linear in dys, which forward mode needs to know; None: detect
            it.
        jvp: jvp(site, *dxs) -> tangents of the outputs: the rule's own forward mode.

    Returns: a decorator that returns the function unchanged.

    Raises: DuplicateGradientError, with both lines, for a name that is already taken, unless it is
    the same function (same module and qualified name, such as when a notebook cell runs twice) or
    replace=True; TypeError if name is not a string or fn is not a function.

    >>> @gg.register_gradient("double")
    ... def double(site, dy):
    ...     return 2 * dy
    >>> gg.get_gradient("double") is double
    True
    """
    truth("replace", replace)
    if not isinstance(name, str) or not name:
        raise TypeError(
            f"register_gradient takes the name to register under, got {name!r}. "
            'Write @register_gradient("name").'
        )
    at = caller()
    declared = {"contract": as_contract(contract), "linear": linear, "jvp": jvp}

    def register(fn: Fn) -> Fn:
        _check_function(fn)
        with _lock:
            _check_free(name, fn, replace, at)
            _rules[name] = Rule(fn, name, **declared)  # type: ignore[arg-type]
            _registered_at[name] = at
        return fn

    return register


RegisterGradient = register_gradient


def _check_function(fn: Any) -> None:
    if not callable(fn):
        raise TypeError(f"a gradient rule is a function, got {fn!r}")
    _check_made(fn)


def _check_made(fn: Any) -> None:
    """GradientError for what makes a rule, and is none before it is called."""
    if isinstance(fn, type):
        raise GradientError(
            f"{fn.__name__} is a class, and a gradient rule is an object of it: write "
            f"{fn.__name__}(...)."
        )
    name = getattr(fn, "__name__", "")
    if _library.get(name) is fn:
        raise GradientError(f"gg.rules.{name} makes a gradient rule: write gg.rules.{name}(...).")


def _check_not_taken(name: str, at: Position | None) -> None:
    if name in OP_TYPES or is_own(name):
        what = (
            "an op type, whose own gradient" if name in OP_TYPES else "a part of graphgrad, which"
        )
        raise DuplicateGradientError(
            f"{name!r} is {what} has that name (registered again at {show(at)}). Choose another "
            "name, and map the type to it."
        )


def _check_free(name: str, fn: Callable[..., Any], replace: bool, at: Position | None) -> None:
    _check_not_taken(name, at)
    old = _rules.get(name)
    if old is None or replace or _identity(old.fn) == _identity(fn):
        return
    raise DuplicateGradientError(
        f"a gradient is already registered as {name!r}: first at {show(_registered_at[name])}, "
        f"again at {show(at)}.\nChoose another name, or say replace=True."
    )


def _identity(fn: Any) -> tuple[Any, ...]:
    """What makes two functions the same one, defined again; lambdas by their code too."""
    name = getattr(fn, "__qualname__", id(fn))
    code = getattr(fn, "__code__", None)
    body = (code.co_code, code.co_consts) if code and "<lambda>" in str(name) else ()
    return getattr(fn, "__module__", None), name, body


def is_registered(name: str) -> bool:
    """Whether a rule has this name here; op types, also rule names, do not count.

    Parameters: name: any string.

    Returns: a bool.

    >>> gg.is_registered("Relu")
    False
    """
    return name in _rules or name in temporary_rules()


def get_gradient(name: str) -> Callable[..., Any]:
    """The function registered under a name.

    Parameters: name: a registered or temporary name, or an op type.

    Returns: the function fn(site, *dys).

    Raises: UnknownGradientError with the nearest name.

    >>> f = gg.register_gradient("halved")(lambda site, dy: dy / 2)
    >>> gg.get_gradient("halved") is f
    True
    """
    return find_rule(name).fn


def unregister_gradient(name: str) -> None:
    """Forget a registered name.

    Parameters: name: a registered name; a temporary one ends with its block.

    Returns: nothing.

    Raises: UnknownGradientError where there is none.

    >>> _ = gg.register_gradient("passing")(lambda site, dy: dy)
    >>> gg.unregister_gradient("passing")
    >>> gg.is_registered("passing")
    False
    """
    with _lock:
        if name not in _rules:
            raise unknown(name, lambda: "named in unregister_gradient()")
        del _rules[name], _registered_at[name]


def registered_gradients() -> dict[str, Callable[..., Any]]:
    """The functions that have a name here, temporary ones included, by name.

    Returns: a dict, a copy.

    >>> before = set(gg.registered_gradients())
    >>> with gg.temporary_gradient("minus", lambda site, dy: -dy):
    ...     set(gg.registered_gradients()) - before
    {'minus'}
    """
    with _lock:
        return {name: rule.fn for name, rule in {**_rules, **temporary_rules()}.items()}


class _Temporary:
    """A name that one `with` gives to a rule."""

    __slots__ = ("open", "position", "rule")

    def __init__(self, rule: Rule, position: Position | None) -> None:
        self.rule = rule
        self.position = position
        self.open = True

    def found(self) -> Rule:
        """The rule; ScopeError after the block."""
        if self.open:
            return self.rule
        raise ScopeError(
            f"{self.rule.name!r} is looked up at {show(caller())}, in a task or context that was "
            f"started in the block of temporary_gradient at {show(self.position)} and continues "
            "after it, where the name means nothing.\n"
            "Await it inside the block, or register the rule with @register_gradient."
        )


_Names = Mapping[str, _Temporary]
_temporary: ContextVar[_Names] = ContextVar("temporary", default=MappingProxyType({}))


class temporary_gradient:
    """`with temporary_gradient(name, fn):` fn under a name; after the block what was before.

    It acts in this context, from the `with` to its end, and is not an entry of the registry:
    threads and tasks do not see each other's. One that is started in the block with a copy of its
    context sees it until the block ends. It may be entered again, inside itself too.

    Parameters:
        name: any string that is not an op type; a registered rule of that name is hidden.
        fn: a rule, fn(site, *dys).

    Raises: DuplicateGradientError for an op type; TypeError if fn is not a function; ScopeError for
    its use in a context that outlived the block, and for leaving it in the wrong order or in
    another context.

    >>> x = gg.constant(2.0)
    >>> with gg.temporary_gradient("minus", lambda site, dy: -dy):
    ...     y = gg.override("minus")(gg.exp)(x)
    ...     dx = gg.gradients(y, x)
    >>> gg.evaluate(dx)
    array(-1.)
    """

    def __init__(self, name: str, fn: Callable[..., Any]) -> None:
        if not isinstance(name, str) or not name:
            raise TypeError(f"temporary_gradient takes the name for the rule, got {name!r}")
        _check_function(fn)
        self.position = caller()
        _check_not_taken(name, self.position)
        self.rule = Rule(fn, name)
        self._entered: list[tuple[_Names, Token[_Names]]] = []

    def __enter__(self) -> None:
        names = {**_temporary.get(), self.rule.name: _Temporary(self.rule, self.position)}
        before = _temporary.get()
        try:
            self._entered.append((names, undisturbed(_temporary.set, names)))
        except BaseException:  # an interrupt: it was not entered
            if _temporary.get() is not before:
                _temporary.set(before)
            raise

    def __exit__(self, *exc: object) -> None:
        try:
            self._leave()
        except ScopeError:
            raise
        except BaseException:  # an interrupt on the way: left all the same
            with suppress(ScopeError):
                self._leave()
            raise

    def _leave(self) -> None:
        names = _temporary.get()
        for entered in reversed(tuple(self._entered)):  # other threads enter and leave it, too
            if entered[0] is names and _was_reset(entered[1]):
                self._entered.remove(entered)
                names[self.rule.name].open = False
                return
        raise ScopeError(
            f"temporary_gradient({self.rule.name!r}) of {show(self.position)} was left in the "
            "wrong order, or in another thread or task than the one that entered it"
        )


def _was_reset(token: Token[_Names]) -> bool:
    try:
        undisturbed(_temporary.reset, token)
    except ValueError:  # of another context
        return False
    return True


def temporary_rules() -> dict[str, Rule]:
    """The rules that have a temporary name here, by name."""
    return {name: each.rule for name, each in _temporary.get().items() if each.open}


Who = Callable[[], str] | None
"""Who names a rule, for messages; called only when there is something to say."""


def find_rule(name: str, who: Who = None) -> Rule:
    """The rule of a registered name or op type; UnknownGradientError with the nearest name."""
    temporary = _temporary.get().get(name)
    if temporary is not None:
        return temporary.found()
    rule = _rules.get(name) or _own_of(name)
    if rule is not None:
        return rule
    if name in OP_TYPES:
        return BuiltinRule(name)
    raise unknown(name, who)


def unknown(name: str, who: Who) -> UnknownGradientError:
    """The error for a name that nobody registered."""
    known = [*registered_gradients(), *OP_TYPES]
    hint = did_you_mean(
        name,
        known,
        "Use @register_gradient to add it; where that comes later, late=True at the scope waits "
        "for it.",
    )
    _import_library()
    if name in _library:
        hint = f"Did you mean gg.rules.{name}()? What the library makes is given without a name."
    return UnknownGradientError(
        f"no gradient is registered as {name!r}{f', {who()}' if who else ''}.\n{hint}"
    )


def as_rule(rule: Any, who: Who = None) -> Rule:
    """The rule of a name, a callable or a rule object."""
    if isinstance(rule, str):
        return find_rule(rule, who)
    if isinstance(rule, Rule):
        return rule
    _check_callable(rule)
    return Rule(rule)


def _check_callable(rule: Any) -> None:
    if not callable(rule):
        raise GradientError(f"a gradient rule is a name, a function or a rule object, got {rule!r}")
    _check_made(rule)


def check_reference(rule: Any, who: Who, late: bool) -> None:
    """Raise, at the line that puts a rule somewhere, what as_rule would raise later."""
    if not isinstance(rule, str):
        if not isinstance(rule, Rule):
            _check_callable(rule)
    elif not late:
        find_rule(rule, who)
