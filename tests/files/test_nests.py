"""Random nests of loops, choices, batches and rules, each carried away in a file."""

import pytest

import graphgrad as gg

from ..fuzz import nests


class InFiles:
    """In place of pickle: a graph goes through a file, and is the same file from there."""

    def __init__(self, folder):
        self.folder = folder

    def dumps(self, pair):
        graph, named = pair
        before = len(graph)
        gg.save(self.folder / "a.gg", graph)
        assert len(graph) == before
        return {name: (t.node.index, t.index) for name, t in named.items()}

    def loads(self, places):
        there = gg.load(self.folder / "a.gg").graph
        gg.save(self.folder / "b.gg", there)
        assert (self.folder / "a.gg").read_bytes() == (self.folder / "b.gg").read_bytes()
        return there, {name: there.nodes[i].outputs[k] for name, (i, k) in places.items()}


@pytest.mark.ci
@pytest.mark.parametrize("first", [500_000, 500_010])
def test_random_nests_in_files_are_what_a_tape_makes_of_them(first, tmp_path, monkeypatch):
    monkeypatch.setattr(nests, "pickle", InFiles(tmp_path))
    monkeypatch.setattr(nests, "WAYS", ["pickle"])
    found = [nests.check(nests.question(seed, "numpy")) for seed in range(first, first + 8)]
    assert found.count("agreed") > 4
