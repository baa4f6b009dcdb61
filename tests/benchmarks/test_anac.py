import contextlib

import pytest
from negmas.mechanisms import Mechanism

from benchmarks import anac


def make_results(gaps):
    """Results of as many batches of one set as there are gaps; ours is ahead by the gap."""
    results = {}
    for variant in anac.VARIANTS:
        for batch, gap in enumerate(gaps):
            scores = [["LitaAgentHRL", "00@0", 1.0 + batch + gap], ["SBD", "01@0", 1.0 + batch]]
            key = f"{variant.replace(' ', '-')}-{batch:03d}-0"
            results[key] = {"config": f"c{batch}", "worlds": 2, "scores": scores}
    return results


def test_the_roster_is_the_finalists_and_ours():
    roster = anac.roster()
    assert len(roster) == 16
    assert next(iter(roster)) == "LitaAgentHRL"
    assert {"HorizonAwareAgent", "PenguinAgent", "AS0", "COW"} <= set(roster)


@pytest.mark.parametrize("batch", range(8))
def test_everyone_counts_once_in_a_batch_and_sets_are_of_one_size(batch):
    names = list(anac.roster())
    sets = anac.deal(names, batch)
    assert sorted(name for own, counted in sets for name in own[:counted]) == sorted(names)
    assert len({len(own) for own, _ in sets}) == 1
    assert all(len(set(own)) == len(own) and 2 <= len(own) <= 4 for own, _ in sets)
    assert sets == anac.deal(names, batch)


def test_the_plan_has_enough_worlds_of_each_variant_in_whole_batches():
    units = anac.plan(False, 400, "code")
    for variant, integer in anac.VARIANTS.items():
        own = {key: unit for key, unit in units.items() if key.startswith(variant.replace(" ", "-"))}
        assert 400 <= sum(len(unit["names"]) for unit in own.values()) < 420
        assert {unit["integer"] for unit in own.values()} == {integer}
        last = max(unit["seed"] for unit in own.values())
        counted = sum(unit["counted"] for unit in own.values() if unit["seed"] == last)
        assert counted == len(anac.roster())
    assert len(anac.plan(True, 400, "code")) == 2


def test_a_batch_counts_when_all_its_sets_are_played():
    found = make_results([0.2, 0.3])
    found["as-shipped-001-1"] = None
    found["whole-numbers-000-0"] = None
    assert set(anac.whole_batches(found)) == {"as-shipped-000-0", "whole-numbers-001-0"}
    del found["whole-numbers-001-0"]
    figures = {figure.name: figure for figure in anac.report(anac.whole_batches(found))}
    assert figures["as shipped: worlds"].value == 2
    assert figures["whole numbers: worlds"].value == 0
    assert not figures["whole numbers: worlds"].ok
    assert "whole numbers: our rank" not in figures


def test_rank_and_probability_of_being_first():
    figures = {figure.name: figure for figure in anac.report(make_results([0.2, 0.3, 0.1]))}
    assert figures["as shipped: our rank"].value == 1
    assert figures["whole numbers: probability of being first"].value == 1.0
    assert not figures["as shipped: worlds"].ok
    figures = {figure.name: figure for figure in anac.report(make_results([-0.2, -0.3, 0.1, -0.1]))}
    assert figures["as shipped: our rank"].value == 2
    assert figures["as shipped: 1. SBD"].value == pytest.approx(2.5)
    chance = figures["as shipped: probability of being first"]
    assert 0.0 < chance.value < 0.2
    assert not chance.ok


def test_sets_of_different_configurations_are_refused():
    results = make_results([0.1])
    results["as-shipped-000-1"] = {**results["as-shipped-000-0"], "config": "another"}
    with pytest.raises(ValueError, match="played different configurations"):
        list(anac.report(results))


def test_the_cast_class_is_imported_by_a_plain_name():
    from benchmarks import cast_finalists

    assert cast_finalists.COW.__name__ == "COW"
    assert cast_finalists.COW.__mro__[1].__name__ == "COW"
    with pytest.raises(AttributeError, match="no attribute 'Nobody'"):
        cast_finalists.Nobody  # noqa: B018 - asking is the test


def test_sparing_scml_its_bookkeeping_changes_no_score(monkeypatch):
    # negmas draws a random number in every second that a negotiation lasts: slow machines would not play the same twice
    monkeypatch.setattr(Mechanism, "time", property(lambda mechanism: 0.0))
    game = (["LitaAgentHRL", "PenguinAgent"], 2, 5, True, "code", 8)
    without = anac.play(*game)
    monkeypatch.setattr(anac, "no_bookkeeping", contextlib.nullcontext)
    with_files = anac.play(*game)
    assert sorted(without.pop("scores")) == sorted(with_files.pop("scores"))
    assert without == with_files
