"""The plan: a pure function of the configuration, and fair."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apexrl.runs.errors import ConfigurationError
from litaagent_std.tournament.competitors.names import resolve
from litaagent_std.tournament.config import FREE, TournamentConfig, executor_name
from litaagent_std.tournament.folder import what_is_played
from litaagent_std.tournament.plan import make_plan


@settings(max_examples=60)
@given(
    n=st.integers(1, 9),
    configs=st.integers(1, 4),
    runs=st.integers(1, 3),
    cycles=st.integers(1, 3),
    extra=st.integers(0, 8),
    kind=st.sampled_from(["all", "some", "mix", "robin"]),
    seed=st.integers(0, 2**40),
)
def test_every_competitor_plays_every_seat_equally_often(n, configs, runs, cycles, extra, kind, seed):
    options = {"configs": configs, "runs": runs, "seed": seed}
    if kind == "robin":
        options |= {"round_robin": True, "n_competitors_per_world": min(2, n)}
    else:
        options |= {"max_worlds_per_config": n * cycles + extra % n}
        options |= {"some": {"n_competitors_per_world": max(1, n - 1)}, "mix": {"official_mix": True}}.get(kind, {})
    config = TournamentConfig(**options)
    plan = make_plan(config, n)
    assert plan == make_plan(config, n)
    assert [spec.world for spec in plan.worlds] == list(range(len(plan.worlds)))
    assert plan.formula.endswith(f"= {len(plan.worlds)} worlds")
    groups = {}
    for spec in plan.worlds:
        groups.setdefault((spec.config, spec.run), []).append(spec)
        assert len(set(spec.seats)) == len(spec.seats), "nobody sits twice in a world"
    assert len(groups) == configs * runs
    for worlds in groups.values():
        assert len({(w.config_seed, w.seed) for w in worlds}) == 1, "all assignments share market and luck"
        seats = Counter((seat, who) for w in worlds for seat, who in enumerate(w.seats))
        assert len(seats) == n * len(worlds[0].seats)
        assert len(set(seats.values())) == 1
        if kind == "mix":
            assert min(2, n) <= len(worlds[0].seats) <= min(4, n)


def test_runs_and_configurations_have_luck_of_their_own():
    worlds = make_plan(TournamentConfig(configs=3, runs=2), 2).worlds
    assert len({w.config_seed for w in worlds}) == 3
    assert len({w.seed for w in worlds}) == 6


def test_the_official_scale_is_that_of_document_000():
    assert make_plan(TournamentConfig(), 11).formula == "20 configurations x 2 runs x 11 worlds each = 440 worlds"


def test_a_target_is_reached_by_whole_configurations():
    plan = make_plan(TournamentConfig(target_worlds=1000), 17)
    assert len(plan.worlds) == 1020


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ({"max_worlds_per_config": 10}, ["--max-worlds-per-config 10", "each of the 11 competitors", "11 or more"]),
        ({"n_competitors_per_world": 12}, ["12 is more than the 11"]),
        ({"official_mix": True, "n_competitors_per_world": 2}, ["--official-mix", "2 to 4"]),
        ({"official_mix": True, "round_robin": True}, ["--round-robin"]),
        (
            {"round_robin": True, "n_competitors_per_world": 3, "max_worlds_per_config": 400},
            ["takes 495 worlds"],
        ),
    ],
)
def test_unfair_numbers_are_refused_with_the_rule(options, parts):
    with pytest.raises(ConfigurationError) as refused:
        make_plan(TournamentConfig(**options), 11)
    assert all(part in str(refused.value) for part in parts), str(refused.value)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({}, "processes"),
        ({"parallelism": "serial"}, "inline"),
        ({"parallelism": "loky"}, "processes"),
        ({"parallelism": "parallel", "executor": "processes"}, "processes"),
        ({"parallelism": "ray", "address": "auto"}, "ray"),
        ({"executor": "inline"}, "inline"),
    ],
)
def test_parallelism_is_another_name_of_the_executor(options, name):
    assert executor_name(TournamentConfig(**options)) == name


@pytest.mark.parametrize("options", [{"parallelism": "loky", "executor": "ray"}, {"address": "auto"}])
def test_contradicting_names_are_an_error(options):
    with pytest.raises(ConfigurationError, match="eave"):
        executor_name(TournamentConfig(**options))


def test_what_is_played_does_not_depend_on_how_it_is_run():
    one = TournamentConfig()
    other = TournamentConfig(executor="ray", engine="scml", csv=False, workers=7, foreground=True, time_limit=5)
    who = resolve(["a.B"])
    assert what_is_played(one, who) == what_is_played(other, who)
    assert what_is_played(one, who) != what_is_played(TournamentConfig(steps=50), who)
    assert all(hasattr(one, name) for name in FREE)
