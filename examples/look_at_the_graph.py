"""Look at what was built: where the marks are, and which rule made which part of the gradient."""

import graphgrad as gg


@gg.register_gradient("never_more_than_one")
def never_more_than_one(site, dy):
    return [gg.clip(dx, -1.0, 1.0) for dx in site.default(dy)]


with gg.Graph("model") as graph:
    x = gg.placeholder(("N", 3), name="x")
    w = gg.variable([[1.0], [2.0], [3.0]], name="w")
    with gg.name_scope("head"), gg.override_gradient("never_more_than_one") as region:
        y = gg.exp(x @ w)
    loss = gg.sum(y)
    dw = gg.gradients(loss, w)

gg.print_graph([loss, dw])
dot = gg.to_dot([loss, dw], title="a rule in a graph")
print(f"\n{len(graph.nodes)} nodes, {len(dot.splitlines())} lines of DOT for Graphviz")
print("the region:", region)
print("made by the rule:", [n.name for n in graph.nodes if "never_more_than_one" in repr(n.origin)])

assert "never_more_than_one" in dot
assert dot.startswith("digraph")
assert [n.name for n in graph.find("head/*")] == [n.name for n in graph.nodes if n.region is region]
