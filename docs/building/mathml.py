"""Formulas as MathML, from the Python that computes them."""

import ast

GREEK = {"alpha", "beta", "gamma", "delta", "epsilon", "eta", "mu", "phi", "pi", "sigma", "tau"}
WORDS = {"sigmoid": "s", "maximum": "max", "minimum": "min", "rint": "round"}
SIGNS = {ast.Add: "+", ast.Sub: "&minus;", ast.Mult: "&it;", ast.Lt: "&lt;", ast.LtE: "&le;"}
SIGNS |= {ast.Gt: "&gt;", ast.GtE: "&ge;", ast.Eq: "=", ast.NotEq: "&ne;"}
LEVELS = {ast.Add: 1, ast.Sub: 1, ast.Mult: 2, ast.Div: 2, ast.Pow: 4}
JOINED = {"logical_and": "&and;", "logical_or": "&or;"}


class Unwritten(Exception):
    """What has no form here; the formula stays code."""


def formula(text):
    """MathML of statements such as `dx = a * b; c`; None where a part has no form."""
    try:
        lines = [line(statement) for statement in ast.parse(text.replace("; ", "\n")).body]
    except (SyntaxError, Unwritten):
        return None
    rows = "".join(f"<mtr><mtd>{made}</mtd></mtr>" for made in lines)
    if not lines:
        return None
    return f'<math display="block"><mtable columnalign="left">{rows}</mtable></math>'


def line(node):
    """A statement."""
    if isinstance(node, ast.Assign):
        return f"{row(node.targets[0])}<mo>=</mo>{row(node.value)}"
    if isinstance(node, ast.Expr):
        return row(node.value)
    raise Unwritten


def row(node, level=0):
    """An expression, in brackets where what is around it binds more."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return f"<mn>{node.value:g}</mn>"
    if isinstance(node, ast.Name):
        return f"<mi>{f'&{node.id};' if node.id in GREEK else node.id}</mi>"
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return bracketed(f"<mo>&minus;</mo>{row(node.operand, 3)}", level > 1)
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        sign = SIGNS.get(type(node.ops[0]), "=")
        return f"{row(node.left, 1)}<mo>{sign}</mo>{row(node.comparators[0], 1)}"
    if isinstance(node, ast.BinOp):
        return operation(node, level)
    if isinstance(node, ast.Constant) and isinstance(node.value, str | None):
        return f"<mtext>{node.value}</mtext>"
    if isinstance(node, ast.IfExp):
        return cases(*map(row, (node.test, node.body, node.orelse)))
    if isinstance(node, ast.Tuple):
        return "<mo>,</mo>".join(map(row, node.elts))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        return call(node.func.id, node.args, level)
    raise Unwritten


def operation(node, level):
    """Two operands."""
    kind = type(node.op)
    if kind is ast.Div:
        return f"<mfrac><mrow>{row(node.left)}</mrow><mrow>{row(node.right)}</mrow></mfrac>"
    if kind is ast.Pow:
        return f"<msup><mrow>{row(node.left, 5)}</mrow><mrow>{row(node.right)}</mrow></msup>"
    if kind not in LEVELS:
        raise Unwritten
    own = LEVELS[kind]
    right = row(node.right, own + (kind is ast.Sub))
    return bracketed(f"{row(node.left, own)}<mo>{SIGNS[kind]}</mo>{right}", level > own)


def call(name, args, level):
    """A function."""
    given = [row(a) for a in args]
    if name in ("square", "exp", "exp2"):
        base = row(args[0], 5) if name == "square" else f"<mi>{'e' if name == 'exp' else 2}</mi>"
        power = "<mn>2</mn>" if name == "square" else given[0]
        return f"<msup><mrow>{base}</mrow><mrow>{power}</mrow></msup>"
    if name == "abs":
        return f"<mrow><mo>|</mo>{given[0]}<mo>|</mo></mrow>"
    if name == "sqrt":
        return f"<msqrt>{given[0]}</msqrt>"
    if name == "floor":
        return f"<mrow><mo>&lfloor;</mo>{given[0]}<mo>&rfloor;</mo></mrow>"
    if name in JOINED:
        return f"<mo>{JOINED[name]}</mo>".join(given)
    if name == "where":
        return cases(*given)
    return f"<mi>{WORDS.get(name, name.strip('_'))}</mi>{bracketed('<mo>,</mo>'.join(given), True)}"


def cases(condition, here, elsewhere):
    """One of two."""
    both = f"<mtr><mtd>{here}</mtd><mtd><mtext>if </mtext>{condition}</mtd></mtr>"
    both += f"<mtr><mtd>{elsewhere}</mtd><mtd><mtext>else</mtext></mtd></mtr>"
    return f'<mrow><mo>{{</mo><mtable columnalign="left">{both}</mtable></mrow>'


def bracketed(text, needed):
    """In round brackets, if it needs them."""
    return f"<mrow><mo>(</mo>{text}<mo>)</mo></mrow>" if needed else f"<mrow>{text}</mrow>"
