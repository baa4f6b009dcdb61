"""The digest of L1 follows its code and parameters, not its words."""

import ast
import inspect

import pytest

from litaagent_std.policy.l1 import digest as module
from litaagent_std.policy.l1.digest import L1_MODULES, check_l1_digest, l1_digest
from litaagent_std.policy.parameters import Parameters


@pytest.fixture
def digest_with(monkeypatch):
    """The digest with the source of one module changed."""

    def make(name, change):
        plain = inspect.getsource

        def source(of):
            text = plain(of)
            return change(text) if of.__name__.endswith(name) else text

        with monkeypatch.context() as patch:
            patch.setattr(module.inspect, "getsource", source)
            return l1_digest.__wrapped__()

    return make


def test_comments_and_docstrings_do_not_count(digest_with):
    assert digest_with("l1_baseline", lambda text: "# a remark\n" + text) == l1_digest()
    assert digest_with("l1_safety", lambda text: text.replace('"""', '"""Indeed: ', 1)) == l1_digest()


@pytest.mark.parametrize("name", [one.__name__.rpartition(".")[2] for one in L1_MODULES])
def test_code_counts_in_every_module(digest_with, name):
    assert digest_with(name, lambda text: text + "\nextra = 1\n") != l1_digest()


def test_default_parameters_count(monkeypatch):
    changed = Parameters(sell_curve=2.0)
    with monkeypatch.context() as patch:
        patch.setattr(module, "Parameters", lambda: changed)
        assert l1_digest.__wrapped__() != l1_digest()


def test_every_module_of_ours_that_the_baseline_uses_is_counted():
    """L1's modules import no other module of the policy that decides anything."""
    counted = {one.__name__.rpartition(".")[2] for one in L1_MODULES}
    used = set()
    for one in L1_MODULES:
        for node in ast.walk(ast.parse(inspect.getsource(one))):
            if isinstance(node, ast.ImportFrom) and node.level:
                used |= {node.module} if node.module else {alias.name for alias in node.names}
    # The acceptance models are remembered, but the baseline asks none; the interface is types only.
    assert used - counted <= {"l3_decisions", "interface"}


def test_another_l1_is_refused():
    check_l1_digest(l1_digest(), "these weights")
    with pytest.raises(ValueError, match=r"these weights was made with L1 0000.*make it again"):
        check_l1_digest("0" * 64, "these weights")
