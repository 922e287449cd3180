"""The plugin of pytest: `--graphgrad-rules` checks every registered rule, an item each.

It stands beside the package so that pytest imports nothing of graphgrad unless the flag is given.
"""

from importlib import import_module

import pytest

FLAG = "--graphgrad-rules"


class Hooks:
    """What a conftest.py may implement."""

    @pytest.hookspec
    def pytest_graphgrad_examples(self, config):
        """Examples for rules: {name: a gg.testing.Example, several, or a strategy of them}.

        A rule with examples is held to what it declares; None for its name leaves it out.
        """


class RuleItem(pytest.Item):
    """A rule under check."""

    def __init__(self, *, rule, on, **options):
        super().__init__(**options)
        self.rule, self.on = rule, on

    def runtest(self):
        """Check it."""
        import_module("graphgrad.testing").check_rule(self.rule, self.on)

    def repr_failure(self, excinfo, style=None):
        """What was found, without the frames that found it."""
        errors = import_module("graphgrad.base.errors")
        if isinstance(excinfo.value, errors.GradientError):
            return "\n".join([str(excinfo.value), *getattr(excinfo.value, "__notes__", [])])
        return super().repr_failure(excinfo, style)

    def reportinfo(self):
        """Where the rule was defined."""
        code = getattr(import_module("graphgrad").get_gradient(self.rule), "__code__", None)
        place = (code.co_filename, code.co_firstlineno - 1) if code else (self.path, None)
        return *place, f"rule {self.rule!r}"


def pytest_addhooks(pluginmanager):
    """Declare the hook."""
    pluginmanager.add_hookspecs(Hooks)


def pytest_addoption(parser):
    """Declare the flag, and which packages have rules."""
    group = parser.getgroup("graphgrad")
    group.addoption(FLAG, action="store_true", help="check every registered gradient rule")
    parser.addini("graphgrad_import", "modules that register rules", type="args", default=[])


def pytest_collection_modifyitems(session, config, items):
    """An item for each rule that is registered by now."""
    if not config.getoption(FLAG):
        return
    for module in config.getini("graphgrad_import"):
        import_module(module)
    examples = {}
    for given in config.hook.pytest_graphgrad_examples(config=config):
        examples |= given
    names = import_module("graphgrad.testing").rules_of_users()
    unknown = sorted(examples.keys() - set(names))
    if unknown:
        raise pytest.UsageError(f"examples for rules that are not registered: {unknown}")
    for name in names:
        if name not in examples or examples[name] is not None:
            item = RuleItem.from_parent(
                session, name=f"rule[{name}]", rule=name, on=examples.get(name)
            )
            items.append(item)
