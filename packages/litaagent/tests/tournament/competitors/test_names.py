"""Names of competitors: what they stand for, the same in every command."""

import json
import sys

import pytest

from apexrl.runs.errors import ConfigurationError
from lita import tournament as commands
from litaagent_std.agents.explain import from_seed
from litaagent_std.arena.config import ArenaConfig
from litaagent_std.arena.contest import plan_of
from litaagent_std.hrl_xf.online.config import PoolConfig
from litaagent_std.hrl_xf.online.opponents import OpponentPool
from litaagent_std.tournament.competitors.integer_offers import FORMER_PREFIX, integer_path
from litaagent_std.tournament.competitors.names import (
    agent_text,
    opponents,
    read_agent,
    require_classes,
    resolve,
    resolve_one,
)
from litaagent_std.tournament.competitors.registry import (
    OURS,
    default_roster,
    finalists,
    present_path,
    ranking,
    registry_name,
)
from litaagent_std.tournament.config import TournamentConfig
from litaagent_std.tournament.folder import what_is_played
from litaagent_std.world.isolated import isolated_path
from litaagent_std.world.setup import AgentSpec

LITA = "litaagent_std.agents.hrl.LitaAgentHRL"
HORIZON = "scml_agents.scml2026.standard.team_21653.horizon_aware_agent.HorizonAwareAgent"
PENGUIN = "scml_agents.scml2024.standard.team_penguin.PenguinAgent"
RANDOM = "scml.std.agents.rand.RandomStdAgent"


def names(*what, **options):
    return [competitor.name for competitor in resolve(what, **options)]


def test_names_paths_and_parameters():
    competitors = resolve(["lita", 'lita:{"l4": "greedy"}', "HorizonAwareAgent", "RandomStd"])
    assert [one.name for one in competitors] == ["lita", 'lita{"l4": "greedy"}', "HorizonAwareAgent", "RandomStdAgent"]
    assert competitors[1].spec.params == {"l4": "greedy"}
    assert competitors[1].spec.path == competitors[0].spec.path == LITA
    assert competitors[2].spec.path == integer_path(HORIZON)


def test_results_call_an_agent_as_it_was_asked_for():
    assert names("lita", "RandomStd") == ["lita", "RandomStdAgent"]
    assert names(LITA) == names("LitaAgentHRL") == ["LitaAgentHRL"]
    assert names("lita", LITA) == ["lita"], "one agent takes part once"


def test_as_shipped_and_cast_beside_it():
    competitors = resolve([HORIZON, f"int:{HORIZON}"], integer_offers=False)
    assert [one.name for one in competitors] == ["HorizonAwareAgent", "int:HorizonAwareAgent"]
    assert [one.path for one in competitors] == [HORIZON, integer_path(HORIZON)]


def test_the_default_roster_is_that_of_the_documents():
    small = names(*default_roster(2, 2))
    assert len(small) == 11
    assert small[:5] == ["LitaAgentY", "LitaAgentYR", "LitaAgentCIR", "LitaAgentN", "LitaAgentP"]
    assert small[5:] == [
        "AS0", "XenoSotaAgent", "PenguinAgent", "CautiousStdAgent", "RandomStdAgent", "SyncRandomStdAgent",
    ]  # fmt: skip
    full = names(*default_roster())
    assert len(full) == 17
    assert full[9] == "PonponAgent", "the best of 2025 who was no finalist"


def test_ranks_begin_with_the_finalists():
    for year, n_finalists, n_all in ((2024, 5, 8), (2025, 4, 7), (2026, 6, 20)):
        assert ranking(year)[: len(finalists(year))] == finalists(year)
        assert (len(finalists(year)), len(ranking(year))) == (n_finalists, n_all)
    assert names("top-2024:1") == ["PenguinAgent"]


def test_whoever_is_named_twice_plays_once():
    assert names("top-2024", "finalists-2024") == names("finalists-2024", "top-2024")
    assert names("int:a.B", "a.B") == ["int:B", "B"]
    assert names("a.B", "c.B") == ["a.B", "c.B"]
    assert len(opponents(["finalists-2026", "HorizonAwareAgent"])) == 6


@pytest.mark.parametrize("name", ["Penguin", "top-2019", "top-2025:x", "", "a b.C"])
def test_unknown_names_are_refused_with_the_choices(name):
    with pytest.raises(ConfigurationError, match="finalists-2026"):
        resolve([name])


@pytest.mark.parametrize(
    ("name", "close"),
    [("PengiunAgent", "PenguinAgent"), ("randomstd", "RandomStd"), ("finalist-2026", "finalists-2026")],
)
def test_a_misspelt_name_is_answered_by_close_ones(name, close):
    with pytest.raises(ConfigurationError, match=f"Did you mean .*{close}"):
        resolve([name])


def test_nobody_is_refused():
    with pytest.raises(ConfigurationError, match="at least one"):
        resolve(["top-2025:0"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["lita", "lita"], "there already"),
        (["lita", "litaagent_std.hrl_xf.agent.LitaAgentHRL"], "there already"),
        (["lita:{l4}"], "no JSON"),
        (['lita:{"parameters": "no/such/file.json"}'], "no/such/file.json"),
        (['lita:{"l2": "learned", "weights": "no/such/weights"}'], "no weights"),
    ],
)
def test_what_cannot_take_part_is_refused(words, message):
    with pytest.raises(ConfigurationError, match=message):
        resolve(words, distinct=True)


def test_one_agent_is_one():
    assert resolve_one("lita").spec == AgentSpec(LITA, competitor=True)
    with pytest.raises(ConfigurationError, match="stands for 3 competitors"):
        resolve_one("built-in")


SAME = {
    "lita": AgentSpec(LITA),
    'lita:{"l4": "greedy", "parameters": "shipped"}': None,
    'LitaAgentHRL:{"label": "again"}': AgentSpec(LITA, {"label": "again"}),
    "RandomStd": AgentSpec(RANDOM),
    "LitaAgentYR": None,
    "PenguinAgent": AgentSpec(integer_path(PENGUIN)),
    "top-2024:1": AgentSpec(integer_path(PENGUIN)),
    "int:RandomStd": AgentSpec(integer_path(RANDOM)),
    "my_module.MyAgent": AgentSpec("my_module.MyAgent"),
    "isolated:RandomStd": AgentSpec(isolated_path(RANDOM)),
    "litaagent_std.hrl_xf.agent.LitaAgentHRL": AgentSpec(LITA),
}


@pytest.mark.parametrize("name", SAME)
def test_a_name_means_the_same_in_every_command(name, capsys, tmp_path, monkeypatch):
    text = "from scml.std.agents.rand import RandomStdAgent\n\n\nclass MyAgent(RandomStdAgent):\n    pass\n"
    (tmp_path / "my_module.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "my_module", raising=False)
    spec = resolve_one(name).spec
    expected = SAME[name]
    assert expected is None or (spec.path, dict(spec.params)) == (expected.path, dict(expected.params))
    # collect, tournament: what is recorded as played
    played = what_is_played(TournamentConfig(), resolve([name]))
    assert read_agent(played["competitors"][0]) == spec
    # arena: the agent, those it is compared with, and the other competitors
    focal = plan_of(ArenaConfig(agent=name, against=("SyncRandomStd",)))
    assert focal.focal.spec == spec
    plan = plan_of(ArenaConfig(agent="SyncRandomStd", against=(name,), opponents=(name,)))
    assert plan.against[0].spec == read_agent(plan.rules.opponents[0]) == spec
    # train-online: the pool
    pool = OpponentPool(PoolConfig(competitors=(name,), held_out=(), slots=1))
    assert [pool._spec(known) for known in pool.chances()] == [spec]
    # explain
    setup = from_seed(0, name, days=5, levels=2).setup
    assert {(agent.path, agent_text(agent)) for agent in setup.agents if agent.competitor} == {
        (spec.path, agent_text(spec))
    }
    # competitors
    assert commands.competitors(commands.CompetitorsConfig(names=(name,))) == 0
    assert registry_name(spec.path).rpartition(".")[2].removeprefix("int:") in capsys.readouterr().out


def test_lita_competitors_prints_whole_paths(capsys):
    commands.competitors(commands.CompetitorsConfig(names=("lita-2025",)))
    assert "scml_agents.scml2025.standard.team_276.litaagent_std.litaagent_cir.LitaAgentCIR" in capsys.readouterr().out


FORMER = {
    "litaagent_std.hrl_xf.agent.LitaAgentHRL": LITA,
    "litaagent_std.hrl_xf.variants.LitaAgentGreedy": OURS["LitaAgentGreedy"],
    "litaagent_std.arena.ablations.LitaL1": "benchmarks.ablations.LitaL1",
    FORMER_PREFIX + PENGUIN.replace(".", ":"): integer_path(PENGUIN),
    FORMER_PREFIX + "litaagent_std:hrl_xf:agent:LitaAgentHRL": integer_path(LITA),
    RANDOM: RANDOM,
    integer_path(RANDOM): integer_path(RANDOM),
}


@pytest.mark.parametrize("path", FORMER)
def test_class_paths_of_older_records_are_understood(path):
    assert present_path(path) == FORMER[path]
    assert read_agent(f"{path}:{json.dumps({'l4': 'greedy'})}").path == FORMER[path]
    AgentSpec(present_path(path)).load()


def test_registry_names_hold_no_path_of_ours():
    assert registry_name(LITA) == registry_name("litaagent_std.hrl_xf.agent.LitaAgentHRL") == "LitaAgentHRL"
    assert registry_name(integer_path(PENGUIN)) == f"int:{PENGUIN}"
    assert registry_name(FORMER_PREFIX + PENGUIN.replace(".", ":")) == f"int:{PENGUIN}"
    assert registry_name("my_module.MyAgent") == "my_module.MyAgent"


@pytest.mark.parametrize("name", ["PenguinAgent", "finalists-2026", "top-2025:3"])
def test_without_the_published_agents_the_message_says_how_to_install_them(monkeypatch, name):
    from litaagent_std.world.scml import published

    monkeypatch.setattr(published, "find_spec", lambda module: None)
    published.finalists.cache_clear()
    published.ranking.cache_clear()
    with pytest.raises(ConfigurationError, match="pip install --no-deps scml-agents"):
        resolve([name])
    assert resolve(["lita", "RandomStd"])  # ours and scml's own need nothing more


def test_isolated_competitors_are_named_and_kept_apart():
    [apart] = resolve(["isolated:PenguinAgent"])
    assert apart.name == "PenguinAgent"
    assert apart.path == isolated_path(integer_path(PENGUIN))
    assert names("lita", "isolated:lita", "RandomStd") == ["lita", "isolated:lita", "RandomStdAgent"]
    assert names("isolated:int:RandomStd", "RandomStd") == ["isolated:int:RandomStdAgent", "RandomStdAgent"]
    assert read_agent(agent_text(apart.spec)) == apart.spec
    assert registry_name(apart.path) == f"isolated:int:{PENGUIN}"
    assert present_path(isolated_path("litaagent_std.hrl_xf.agent.LitaAgentHRL")) == isolated_path(LITA)
    assert [one.path for one in resolve(["RandomStd"], isolate=True)] == [isolated_path(RANDOM)]


def test_isolation_is_part_of_what_is_played_by_the_agents_alone():
    plain, apart = TournamentConfig(competitors=("lita",)), TournamentConfig(competitors=("lita",), isolate=True)
    played = [what_is_played(config, resolve(config.competitors, isolate=config.isolate)) for config in (plain, apart)]
    assert played[0]["competitors"] == [LITA]
    assert played[1] == played[0] | {"competitors": [isolated_path(LITA)]}


def test_an_isolated_class_that_cannot_be_loaded_is_refused_without_importing_it_here(tmp_path, monkeypatch):
    (tmp_path / "exits_on_import.py").write_text("import os; os._exit(1)")
    tmp_path.chmod(0o755)  # root's isolated agents play as nobody
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ConfigurationError, match="its process ended"):
        require_classes([resolve_one("isolated:exits_on_import.Agent").spec])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("litaagent_std.agents.hrl.Nobody", "no attribute 'Nobody'"),
        ("scml.std.agents.greedy.Nobody", "no attribute 'Nobody'"),
        ('lita:{"l2": "learnd"}', "l2='learnd' does not exist"),
        ('lita:{"weights": "no_such_run"}', "there are no weights 'no_such_run'"),
        ('GreedyStd:{"hodl": 1}', "unexpected keyword argument 'hodl'"),
    ],
)
def test_what_cannot_be_made_is_refused_before_a_world_is_played(name, message):
    with pytest.raises(ConfigurationError, match=message):
        require_classes([resolve_one(name).spec])


def test_what_can_be_made_and_published_agents_are_let_through():
    texts = ("lita", 'lita:{"l2": "learned", "l4": "greedy"}', f"isolated:{PENGUIN}", f"{PENGUIN}Misspelt")
    require_classes([resolve_one(text).spec for text in texts])
