"""The digest of L1 follows its answers, not its source."""

from dataclasses import replace

import numpy as np
import pytest

from litaagent_std.policy import digest as module
from litaagent_std.policy import memory
from litaagent_std.policy.columns import ObservationBatch
from litaagent_std.policy.digest import check_l1_digest, l1_digest
from litaagent_std.policy.l1 import baseline, guard, risk, safety, thread
from litaagent_std.policy.l2 import heuristic
from litaagent_std.policy.memory import Regime
from litaagent_std.policy.parameters import ParameterColumns, Parameters
from litaagent_std.policy.plan import BoundsBatch


@pytest.fixture
def digest_with(monkeypatch):
    """The digest with a function replaced by one that gets the original as its first argument."""

    def make(owner, name, change):
        original = getattr(owner, name)
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, lambda *args, **kwargs: change(original, *args, **kwargs))
            return l1_digest.__wrapped__()

    return make


CHANGES = [
    (safety, "bounds", lambda f, *a: replace(b := f(*a), buy=b.buy + 1)),
    (safety, "affordable", lambda f, *a: f(*a) + 1),
    (safety, "clip", lambda f, offer, *a: (offer, np.zeros(len(offer), bool))),
    (risk, "sellable", lambda f, *a: f(*a) + 1),
    (risk, "purchase_cap", lambda f, *a: f(*a) + 1),
    (risk, "bounded_goals", lambda f, goals, *a: goals),
    (baseline, "progress", lambda f, *a, **k: 0.5 * f(*a, **k)),
    (baseline, "reservation", lambda f, *a, **k: f(*a, **k) + 1.0),
    (thread, "_acceptable", lambda f, *a: np.zeros(len(a[0]), bool)),
    (thread, "allot", lambda f, *a: tuple(np.zeros_like(part) for part in f(*a))),
    (guard, "_accepted", lambda f, *a: np.zeros(len(a[0].threads), bool)),
    (guard, "_fitting", lambda f, *a: tuple(np.zeros_like(part) for part in f(*a))),
    (heuristic, "_need", lambda f, *a: f(*a) + 1),
    (memory, "_forward_fill", lambda f, *a: 0.5 * f(*a)),
]
UNREAD = ("_forward_fill",)
"""What L1 does not read: the urgency of sales follows from it."""


@pytest.mark.parametrize(("owner", "name", "change"), CHANGES, ids=lambda value: getattr(value, "__name__", value))
def test_another_answer_changes_the_digest(digest_with, owner, name, change):
    assert (digest_with(owner, name, change) != l1_digest()) == (name not in UNREAD)


@pytest.mark.parametrize(("owner", "name", "change"), CHANGES, ids=lambda value: getattr(value, "__name__", value))
def test_the_same_answers_keep_it(digest_with, owner, name, change):
    assert digest_with(owner, name, lambda f, *a, **k: f(*a, **k)) == l1_digest()


def test_l1_may_be_written_in_another_way(monkeypatch):
    def rewritten(obs, calendar, persistent):
        """The bounds of one factory with Python's own lists."""
        leads, one = calendar.sold.shape[1], {name: getattr(obs, name)[0] for name in ("stock_in", "n_lines", "day")}
        bought, sold = calendar.bought[0].tolist(), calendar.sold[0].tolist()
        bought[0], sold[0] = bought[0] + obs.exogenous_in[0], sold[0] + obs.exogenous_out[0]
        net = [units - promised for units, promised in zip(bought, sold, strict=True)]
        if persistent[0]:
            spare = [one["stock_in"] + units for units in net]
        else:
            spare = [one["stock_in"] + min(sum(net[: end + 1]) for end in range(k, leads)) for k in range(leads)]
        last = obs.agenda[0, 1, 3] - one["day"] if obs.trades[0, 1] else -1
        lines = [max(0, one["n_lines"] - units) if k <= last else 0 for k, units in enumerate(sold)]
        covered = [max(0, min(units, spare[k])) for k, units in enumerate(lines)]
        return BoundsBatch(np.array([lines]), np.array([covered]), np.array([spare]), safety.affordable(obs, calendar))

    before = l1_digest()
    monkeypatch.setattr(safety, "bounds", rewritten)
    assert l1_digest.__wrapped__() == before


@pytest.mark.parametrize(("changes", "counts"), [({"sell_curve": 2.0}, True), ({"learn_rate": 0.1}, False)])
def test_default_parameters_count_if_the_answers_depend_on_them(monkeypatch, changes, counts):
    changed = Parameters(**changes)
    monkeypatch.setattr(module, "Parameters", lambda: changed)
    assert (l1_digest.__wrapped__() != l1_digest()) == counts


def test_situations_cover_both_regimes_and_every_level():
    levels, regimes = set(), set()
    for history in module._histories():
        first = history[0].obs
        levels.add((first.n_levels, first.level))
        folded = memory.Memory(1, first.horizon + 1, ParameterColumns.of([Parameters()]))
        for day in history:
            folded.start_day(ObservationBatch.of([day.obs]))
            folded.note_due(day.later.bought[0], day.later.sold[0])
        row = folded.now.row(0, first.horizon + 1)
        regimes.add((row.regime, row.regime_known))
    assert levels == {(n, level) for n in (1, 2, 3) for level in range(n)}
    assert {(Regime.PERSISTENT, True), (Regime.DEPLETING, True)} <= regimes


def test_another_l1_is_refused():
    check_l1_digest(l1_digest(), "these weights")
    with pytest.raises(ValueError, match=r"these weights was made with L1 0000.*make it again"):
        check_l1_digest("0" * 64, "these weights")


def test_what_the_first_release_made_stays_usable():
    """Version 0.1 digested L1's source, and its table of features said the same in other words."""
    from litaagent_std.policy.features import check_digest, features_digest
    from litaagent_std.policy.versions import same_digest

    check_l1_digest("a0aadbc7c8bcb5264b0d3ebbc28f3061f315df332282ea74684ddfcc61cec573", "weights")
    check_digest("ed782ef460f9060b5975ba5cb6c4169590a4e555f2a771f36ca1cf1ca197f9eb", "weights")
    assert not same_digest("a0aadbc7c8bcb5264b0d3ebbc28f3061f315df332282ea74684ddfcc61cec573", features_digest())
