"""Arithmetic on lengths is that of the ints they become; what is proved of them holds."""

import copy
import operator
import pickle

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.base.bounds import at_least, never_equal
from graphgrad.base.length import (
    LONGEST,
    MOST_TERMS,
    Length,
    LengthTooLongError,
    as_length,
    divided_exactly,
    under,
)
from graphgrad.base.solving import Assumption, solved, told_names

NAMES = ("N", "M", "batch", "x.0")
SIZES = (0, 1, 2, 3, 5, 8, 13)


def drawn(rng, depth=3):
    """A random expression: (the length or int, a function of sizes that computes it in ints)."""
    if depth == 0 or rng.random() < 0.15:
        if rng.random() < 0.3:
            k = int(rng.integers(-3, 6))
            return k, lambda sizes: k
        name = NAMES[int(rng.integers(len(NAMES)))]
        return Length(name), lambda sizes: sizes[name]
    (a, f), (b, g) = drawn(rng, depth - 1), drawn(rng, depth - 1)
    kind = rng.choice(["+", "-", "*", "//", "%", "max", "min", "ceil", "neg", "quotient"])
    k = int(rng.integers(1, 6))
    if kind in ("+", "-", "*"):
        op = {"+": operator.add, "-": operator.sub, "*": operator.mul}[kind]
        return op(a, b), lambda sizes: op(f(sizes), g(sizes))
    if kind in ("max", "min"):
        op = getattr(Length, kind)
        plain = max if kind == "max" else min
        return op(a, b), lambda sizes: plain(f(sizes), g(sizes))
    if kind == "quotient" and isinstance(b, Length):
        below = Length.max(b, 1)
        return a // below, lambda sizes: f(sizes) // max(g(sizes), 1)
    return {
        "//": (a // k, lambda sizes: f(sizes) // k),
        "%": (a % k, lambda sizes: f(sizes) % k),
        "ceil": (Length.ceil_div(a, k), lambda sizes: -(-f(sizes) // k)),
    }.get(kind, (-a, lambda sizes: -f(sizes)))


def expressions(count, seed):
    """Random ones that are not too long, with a generator for sizes."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        try:
            yield rng, *drawn(rng)
        except LengthTooLongError:
            continue


def sizes_from(rng):
    return {name: int(rng.choice(SIZES)) for name in NAMES}


def value(length, sizes):
    return length.at(sizes) if isinstance(length, Length) else length


def test_arithmetic_is_that_of_ints():
    for rng, length, computed in expressions(400, seed=1):
        for _ in range(8):
            sizes = sizes_from(rng)
            assert value(length, sizes) == computed(sizes), (length, sizes)


def test_values_can_be_given_one_after_the_other():
    for rng, length, computed in expressions(200, seed=2):
        sizes = sizes_from(rng)
        part = length
        for name in rng.permutation(NAMES).tolist():
            part = value(part, {name: sizes[name]})
        assert part == computed(sizes), (length, sizes)


def test_lengths_stand_for_names_all_at_once():
    swapped = {"N": Length("M"), "M": Length("N")}
    assert Length("N//2 - M").at(swapped) == Length("M//2 - N")
    for rng, length, _ in expressions(100, seed=3):
        sizes = sizes_from(rng)
        other = {**sizes, "N": sizes["M"], "M": sizes["N"]}
        try:
            there = value(length, swapped)
        except LengthTooLongError:
            continue
        assert value(there, sizes) == value(length, other), length


def test_text_is_read_as_what_was_written():
    for _, length, _ in expressions(400, seed=4):
        if isinstance(length, Length):
            assert Length(str(length)) is length or Length(str(length)) == length
            assert hash(Length(str(length))) == hash(length)
            assert length == str(length)
            assert pickle.loads(pickle.dumps(length)) == length == copy.deepcopy(length)


@pytest.mark.parametrize(
    "name", ["a b", "N+", "max(", "'", "\\", "é", "2N", "N M", "", " ", "x.0", "a:b", "-", "N//0"]
)
def test_a_name_may_have_any_characters(name):
    if not name.strip():
        with pytest.raises(gg.ShapeError, match="name"):
            Length(name)
        return
    length = Length(name)
    assert length == name
    assert length.names == {name}
    twice = 2 * length + 1
    assert Length(str(twice)) == twice
    assert twice.at({name: 3}) == 7


def test_what_is_proved_holds():
    proved = 0
    rng = np.random.default_rng(5)
    for _ in range(500):
        try:
            (a, f), (b, g) = drawn(rng, 2), drawn(rng, 2)
            least, apart = at_least(a, b), never_equal(a, b)
        except LengthTooLongError:
            continue
        proved += least + apart
        for _ in range(12 if least or apart else 0):
            sizes = sizes_from(rng)
            assert not least or f(sizes) >= g(sizes), (a, b, sizes)
            assert not apart or f(sizes) != g(sizes), (a, b, sizes)
    assert proved > 100


def test_what_is_proved_of_facts_holds_where_they_do():
    proved = 0
    rng = np.random.default_rng(6)
    for _ in range(500):
        try:
            (a, f), (b, g), (fact, h) = drawn(rng, 2), drawn(rng, 2), drawn(rng, 1)
            if not isinstance(fact, Length):
                continue
            least, shorter = at_least(a, b, [fact]), under(a, [fact])
        except LengthTooLongError:
            continue
        for _ in range(12):
            sizes = sizes_from(rng)
            if h(sizes) >= 0:
                proved += least
                assert not least or f(sizes) >= g(sizes), (a, b, fact, sizes)
                assert value(shorter, sizes) == f(sizes), (a, shorter, fact, sizes)
    assert proved > 100


@pytest.mark.parametrize(
    ("a", "b", "known"),
    [
        ("N + 1", 1, True), ("N", 1, False), ("2*N", "N", True), ("max(N, 3)", 3, True),
        ("N", "2*(N//2)", True), ("N//2 + 1", "(N + 1)//2", True), ("N%4", 0, True),
        (3, "N%4", True), ("N*M", 0, True), ("N", "min(N, M)", True), ("N*N", "N", False),
        ("N%(N - 5)", 0, False), ("N*(M%(N - 5))", 0, False), ("N%(M + 1)", 0, True),
    ],
)  # fmt: skip
def test_at_least(a, b, known):
    assert at_least(as_length(a), as_length(b)) is known


def test_what_divides_exactly():
    N, M = Length("N"), Length("M")
    assert divided_exactly(6 * N * M, 2 * N) == 3 * M
    assert divided_exactly((N + 1) * (M + 2), N + 1) == M + 2
    assert divided_exactly(N, 2) is None
    assert divided_exactly(N, M) is None
    rng = np.random.default_rng(7)
    for _ in range(200):
        try:
            (a, _), (b, _) = drawn(rng, 2), drawn(rng, 1)
            product = a * b
        except LengthTooLongError:
            continue
        quotient = divided_exactly(product, b) if b != 0 else None
        assert quotient is None or quotient * b == product, (a, b)


# --- solving --------------------------------------------------------------------------------------


def test_names_are_solved_from_the_lengths_of_axes():
    rng = np.random.default_rng(8)
    for _ in range(200):
        sizes = sizes_from(rng)
        known = [
            (k := int(rng.integers(1, 5))) * Length(name) + int(rng.integers(-1, 4)) * (k > 1)
            for name in rng.permutation(NAMES).tolist()
        ]
        every = [*known, Length("N*M"), Length("N//2 + batch"), Length("max(N, M)")]
        axes = [(every[i], value(every[i], sizes), "in x") for i in rng.permutation(len(every))]
        assert solved(axes) == sizes
        assert told_names(d for d, _, _ in axes) == set(NAMES)


def test_what_cannot_be_solved_is_left_or_refused_in_words():
    N, M = Length("N"), Length("M")
    assert solved([(N * M, 6, "in x")]) == {}
    assert solved([(N * M, 6, "in x"), (N, 2, "in y")]) == {"N": 2, "M": 3}
    assert told_names([N * M]) == set()
    assert told_names([N // 2, N % 2]) == set()
    assert solved([(N, None, "in x"), (N, 3, "in y")]) == {"N": 3}
    with pytest.raises(gg.ShapeError, match=r"'2\*N \+ 1' is 4 in x: no length N satisfies this"):
        solved([(2 * N + 1, 4, "in x")])
    with pytest.raises(gg.ShapeError, match="no length N"):
        solved([(N + 2, 1, "in x")])
    with pytest.raises(gg.ShapeError, match="'N' is 3 in x, and 4 in y"):
        solved([(N, 3, "in x"), (N, 4, "in y")])


def test_lengths_that_others_are_have_names_of_their_own():
    """N there is no N here."""
    N, M, P = Length("N"), Length("M"), Length("P")
    swapped = [(M, N, "in x"), (Length("max(N, M)"), Length("max(N, M)"), "in y"), (N, M, "in y")]
    assert solved(swapped) == {"M": N, "N": M}
    assert solved([(M, P, "in x"), (N + M, P + N, "in y")]) == {"M": P, "N": N}
    assert solved([(M, N, "in x"), (2 * N + M, 7, "in y")]) == {"M": N}
    assert solved([(M, N, "in x"), (N + M, 7, "in y")]) == {"M": N, "N": 7 - N}
    assert solved([(N, N + 1, "in x"), (N // 2, 3, "in y")]) == {"N": N + 1}


def test_a_product_with_a_length_of_0_tells_nothing_of_the_other():
    N, M = Length("N"), Length("M")
    assert solved([(N * M, 0, "in x"), (N, 0, "in y")]) == {"N": 0}
    with pytest.raises(gg.ShapeError, match=r"'M\*N' is 3 in x, and 0 where 'N' is 0 in y"):
        solved([(N * M, 3, "in x"), (N, 0, "in y")])


# --- what a length is not -------------------------------------------------------------------------


@pytest.mark.parametrize("ask", [bool, int, float, complex, range, operator.index, np.asarray])
def test_what_needs_an_int_is_refused_in_words(ask):
    with pytest.raises(TypeError, match=r"the length N//2 is open: .* at run time"):
        ask(Length("N//2"))


def test_other_arithmetic_with_strangers_is_a_type_error():
    N = Length("N")
    for strange in ("3", None, [1], {}):
        for op in (operator.add, operator.mul, operator.floordiv, operator.lt):
            with pytest.raises(TypeError):
                op(N, strange)


def test_equality_and_hash_are_those_of_its_text():
    N = Length("N")
    assert N == "N" and hash(N) == hash("N") and {N: 1}["N"] == 1  # noqa: PT018
    assert N != "M" and N != 3 and N != None and N != 3.0  # noqa: PT018, E711
    assert (N + 1) * 2 == 2 * N + 2
    assert hash((N + 1) * 2) == hash(2 * N + 2)
    assert N - N == 0 and isinstance(N - N, int)  # noqa: PT018
    assert (N, 3) == ("N", 3)
    assert Length("2*N") == N * 2 == Length("'2*N'")


def test_comparisons_are_decided_where_they_hold_for_all():
    N, M = Length("N"), Length("M")
    assert (N + 1 > N) is True
    assert (N >= 0) is True
    assert (N < 0) is False
    assert (2 * N + M >= N) is True
    with pytest.raises(TypeError, match=r"N > 3 holds is only known at run time.*gg.assume"):
        bool(N > 3)
    assert str(N <= 2 * M) == "N <= 2*M"


@pytest.mark.parametrize("b", [0, -2])
def test_a_division_by_what_is_no_positive_int_is_refused(b):
    N = Length("N")
    with pytest.raises(ZeroDivisionError, match="N"):
        N % b
    if b == 0:
        with pytest.raises(ZeroDivisionError, match="N"):
            N // b
    with pytest.raises(gg.ShapeError, match="divides by 0"):
        (N // Length("M")).at({"N": 3, "M": 0})


def test_an_expression_that_nobody_would_read_is_refused():
    names = [Length(f"name_{i}") for i in range(MOST_TERMS + 1)]
    with pytest.raises(LengthTooLongError, match="name the length"):
        sum(names)
    with pytest.raises(LengthTooLongError):
        Length("N" * LONGEST) * 3
    with pytest.raises(LengthTooLongError):
        (Length("N") + Length("M") + Length("x.0") + 1) ** 8


def test_a_number_is_no_length():
    for text in ("3", "2 + 1", "N - N"):
        with pytest.raises(gg.ShapeError, match="number"):
            Length(text)
    with pytest.raises(gg.ShapeError, match="open"):
        Length(3)


def test_operators_of_python_on_lengths():
    N, M = Length("N"), Length("M")
    at = {"N": 7, "M": 3}
    found = [-N + 10, 5 - N, abs(N), 7 // N, 9 % M, N**2, N**1, 20 // (N - M), (N + 1) % M]
    assert [d.at(at) for d in found] == [3, -2, 7, 1, 0, 49, 7, 5, 2]
    assert N**0 == 1
    assert [d.at(at) for d in (*divmod(N, M), *divmod(20, N))] == [2, 1, 2, 6]
    assert copy.copy(N) is N
    assert copy.deepcopy(N) is N
    for wrong in ("a", None, [1]):
        with pytest.raises(TypeError):
            N // wrong
        with pytest.raises(TypeError):
            wrong % N


def test_lengths_with_tensors_arrays_and_floats_are_tensors():
    with gg.Graph():
        x = gg.placeholder(("N",))
        N = x.shape[0]
        made = [
            N * 0.5,
            0.5 + N,
            N / 2,
            3 / N,
            7.5 // N,
            N // 2.0,
            N % 2.5,
            7.5 % N,
            N**0.5,
            2.0**N,
        ]
        made += [gg.sum(x) / N, N - gg.sum(x), N * np.ones(2), np.ones(2) - N]
        run = gg.compile(x, made)
    n, total = 3, 6.0
    wanted = [n * 0.5, 0.5 + n, n / 2, 3 / n, 7.5 // n, n // 2.0, n % 2.5, 7.5 % n, n**0.5, 2.0**n]
    wanted += [total / n, n - total, n * np.ones(2), np.ones(2) - n]
    for got, want in zip(run(np.array([1.0, 2.0, 3.0])), wanted, strict=True):
        np.testing.assert_allclose(got, want)


def test_expressions_in_words():
    for text, value in {
        "N^2 + 1": 50,
        "(N + M)//M": 3,
        "max(N, M, 9) - min(N, M, 2)": 7,
        "-(N - 10)": 3,
        "'a length'*2": 10,
        "N*(M + 1)%5": 3,
    }.items():
        assert Length(text).at({"N": 7, "M": 3, "a length": 5}) == value
        assert Length(str(Length(text))) == Length(text)
    for wrong in ("N^9", "N^M", "(N", "floordiv(N, M, 2)", "mod(N)", "N +", "max(N"):
        assert Length(wrong).name == wrong  # which is a name


def test_what_is_assumed_in_a_file_is_checked():
    N = Length("N")
    assert Assumption.checked(N, ">=", 2, "a.py:1").text == "N >= 2"
    for wrong in ((2.0, "<", N, "a"), (N, "<", 2.0, "a"), (N, "==", 2, "a"), (N, "<", 2, 3)):
        with pytest.raises(gg.ShapeError, match="does not compare lengths"):
            Assumption.checked(*wrong)
    Assumption.checked(N, ">", 2, "a.py:1").check({"N": 3})
    with pytest.raises(gg.ShapeError, match=r"gg.assume\(N > 2\), stated at a.py:1, .*N is 2"):
        Assumption.checked(N, ">", 2, "a.py:1").check({"N": 2})


def test_exact_divisions():
    N, M = Length("N"), Length("M")
    assert divided_exactly(6 * N + 4, 2) == 3 * N + 2
    assert divided_exactly(6 * N + 3, 2) is None
    assert divided_exactly(N * M + M, M) == N + 1
    assert divided_exactly(N * N - M * M, N + M) == N - M
    assert divided_exactly(2 * N, 4 * N) is None
    assert divided_exactly(0, N) == 0
    assert divided_exactly(5, N) is None
    assert divided_exactly(N, 0) is None
    assert divided_exactly(N + 1, M) is None
