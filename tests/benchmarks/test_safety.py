from benchmarks import safety


def made_up(units, **changes):
    total = {"worlds": 25, "seats": 70, "checked": 900, "exceptions": 0, "oversold": 0, "shortfall_units": 3, **changes}
    return {key: {"total": dict(total), "shortfall": [0.0, 0.02], "examples": []} for key in units}


def test_at_least_500_worlds_are_played_at_the_shipped_setting():
    units = safety.plan(False)
    shipped = [unit["count"] for key, unit in units.items() if key.startswith("shipped-0")]
    assert sum(shipped) == 500
    assert len({unit["code"] for unit in units.values()}) == 2  # the cautious variant has a module of its own


def test_every_setting_has_its_own_figures():
    units = safety.plan(False)
    figures = {figure.name: figure for figure in safety.report(made_up(units))}
    assert all(figure.ok for figure in figures.values())
    assert figures["shipped: shortfall penalties"].value == 1.0
    assert "of 18000 in 1400 seats of 500 worlds" in figures["shipped: unsafe actions"].note


def test_one_unsafe_action_or_exception_misses_the_goal():
    units = safety.plan(False)
    results = made_up(units)
    results["shipped-0025"]["total"]["unsafe/cash"] = 1
    results["risk-budget-0-0000"]["total"]["oversold"] = 1
    results["shipped-among-finalists-0000"]["total"]["exceptions"] = 2
    missed = {figure.name: figure.value for figure in safety.report(results) if not figure.ok}
    assert missed == {
        "shipped: unsafe actions": 1,
        "risk budget 0: oversold days": 1,
        "shipped, among finalists: exceptions": 2,
    }


def test_a_unit_plays_and_audits():
    found = safety.play(first=0, count=1, days=(8, 8), code="any", cautious=True)
    assert found["total"]["worlds"] == 1
    assert len(found["shortfall"]) == found["total"]["seats"] >= 2
    assert not any(kind.startswith("unsafe/") for kind in found["total"])


def test_random_networks_ask_for_what_l1_must_bound():
    networks = safety.random_networks(0)
    assert all(array.any() for weights in networks.nets.values() for array in weights.arrays.values())
    found = safety.play(first=0, count=1, days=(6, 6), code="any", networks=True)
    plain = safety.play(first=0, count=1, days=(6, 6), code="any")
    assert found["total"]["checked"] != plain["total"]["checked"]  # they do change what is asked for
    assert not any(kind.startswith("unsafe/") for kind in found["total"])
    planned = [unit["count"] for unit in safety.plan(False).values() if unit.get("networks")]
    assert sum(planned) >= 1000
