"""A value inside a marked region is looked at afterwards: the region and its rule stay as they are.

What a rule is called with never depends on who else reads a value.
"""

import graphgrad as gg

calls = []


@gg.register_gradient("counted")
def counted(site, *dys):
    calls.append(len(dys))
    return [3.0 * dx for dx in site.default(*dys)]


with gg.Graph():
    x = gg.placeholder((), name="x")
    with gg.override_gradient("counted"):
        inside = gg.exp(x)
        y = gg.tanh(inside)
    before = gg.gradients(y, x)

    monitor = gg.log(inside)  # somebody wants to see it
    after = gg.gradients(y, x)
    f = gg.compile(x, {"before": before, "after": after, "monitor": monitor})

    try:
        gg.gradients(monitor, x)  # a gradient through the back door has no rule
    except gg.GraphGradError as error:
        complaint = str(error)

found = f(0.5)
print(found)
print("gradient of the monitor:", complaint)
assert found["before"] == found["after"]
assert calls == [1, 1]
assert abs(found["monitor"] - 0.5) < 1e-15
