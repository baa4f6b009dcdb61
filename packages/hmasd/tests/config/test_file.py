import pytest

from apexrl.runs.errors import ConfigurationError
from hmasd.config.file import load_config, read_settings
from hmasd.config.presets import PAPER, PRESETS, paper_values, preset
from hmasd.config.schema import HMASDConfig


def write(tmp_path, text, name="settings.py"):
    path = tmp_path / name
    path.write_text(text)
    return path


def test_code_is_refused_and_never_executed(tmp_path):
    trap = tmp_path / "executed"
    for text in (
        f"open({str(trap)!r}, 'w')",
        f"seed = open({str(trap)!r}, 'w')",
        "import os",
        "seed = 1 + 1",
        "a = b = 1",
    ):
        with pytest.raises(ConfigurationError, match="read, not"):
            read_settings(write(tmp_path, text))
    assert not trap.exists()


def test_a_class_of_values_negative_numbers_and_annotations_are_read(tmp_path):
    text = '"""Doc."""\nclass Config:\n    """Doc."""\n    seed: int = 3\n    lr = 1e-3\n    n_agents = None\n'
    assert read_settings(write(tmp_path, text)) == {"seed": 3, "lr": 1e-3, "n_agents": None}


def test_yaml_is_read_with_the_papers_symbols(tmp_path):
    config = load_config(write(tmp_path, "n_Z: 5\nk: 7\nseed: 2\n", "settings.yaml"), {"seed": 9})
    assert (config.n_team_skills, config.skill_steps, config.seed) == (5, 7, 9)
    assert load_config(str(tmp_path / "settings.yaml"), {"seed": 9}) == config


def test_unknown_and_doubled_names_are_refused(tmp_path):
    with pytest.raises(ConfigurationError, match="gama: unknown key"):
        load_config(write(tmp_path, "gama = 0.9"))
    with pytest.raises(ConfigurationError, match="gives skill_steps twice, as 'k' and as 'skill_steps'; keep"):
        load_config(write(tmp_path, "k = 5\nskill_steps = 6"))
    with pytest.raises(ConfigurationError, match="gives batch_size twice; keep"):
        load_config(write(tmp_path, "batch_size = 512\nseed = 1\nbatch_size = 1024"))
    with pytest.raises(ConfigurationError, match="is an expression"):
        load_config(write(tmp_path, "seed = {[]: 1}"))
    with pytest.raises(ConfigurationError, match=r"with --set is not acceptable.*total_steps: got 0"):
        load_config(write(tmp_path, "seed = 1"), {"total_steps": 0})
    with pytest.raises(ConfigurationError, match="cannot be read"):
        load_config(tmp_path / "missing.py")


def test_the_papers_symbols_are_known_in_python_too(tmp_path):
    config = preset("paper", k=25, n_Z=3, lambda_D=0.5)
    assert config == preset("paper", skill_steps=25, n_team_skills=3, lambda_team=0.5)
    assert load_config(None, {"k": 25}) == HMASDConfig(skill_steps=25)
    assert load_config(write(tmp_path, "k = 5"), {"skill_steps": 25}).skill_steps == 25
    with pytest.raises(ConfigurationError, match="gives skill_steps twice, as 'k' and as 'skill_steps'"):
        preset("paper", k=25, skill_steps=25)


def test_the_papers_preset():
    config = preset("paper", seed=4)
    assert (config.skill_steps, config.n_team_skills, config.n_agent_skills) == (50, 2, 4)
    assert (config.lambda_e, config.lambda_team, config.lambda_agent) == (0.0, 0.1, 0.2)
    assert (config.rollout_steps, config.ppo_epochs, config.lr, config.seed) == (100, 15, 5e-4, 4)
    assert config.rollout_steps % config.skill_steps == 0
    with pytest.raises(ConfigurationError, match="no preset 'papr'"):
        preset("papr")


HMASD_ONLY = {
    "skill_floor": 0.1,
    "warmup_steps": 100,
    "advantage_floor": 0.1,
    "lambda_coverage": 0.02,
    "critic_sees": "all_skills",
    "adaptive_lambda": True,
    "discriminator_decay": 0.01,
    "discriminator_lipschitz": 2.0,
}


@pytest.mark.parametrize("changes", [{"algorithm": "mappo"}, {"algorithm": "mat"}, {"ablation": "no_high"}], ids=str)
def test_settings_that_would_do_nothing_are_refused_all_at_once(changes):
    is_ablation = "ablation" in changes
    unused = dict(list(HMASD_ONLY.items())[:3]) if is_ablation else HMASD_ONLY
    with pytest.raises(ConfigurationError, match="uses none of these settings; leave them out") as refused:
        preset("paper", **HMASD_ONLY, **changes)
    assert {name for name in HMASD_ONLY if f"{name}={HMASD_ONLY[name]!r}" in str(refused.value)} == unused.keys()
    for name, value in HMASD_ONLY.items():
        if name in unused:
            with pytest.raises(ConfigurationError, match=f"rule: {name}={value!r}: "):
                preset("paper", **{name: value}, **changes)
        else:
            preset("paper", **{name: value}, **changes)
        preset("paper", **{name: value})
    default = HMASDConfig()
    preset("paper", **{name: getattr(default, name) for name in HMASD_ONLY}, **changes)


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("algorithm", ["hmasd", "mappo", "mat"])
def test_every_algorithm_trains_with_every_preset(name, algorithm):
    assert preset(name, algorithm=algorithm).algorithm == algorithm


@pytest.mark.parametrize("scenario", PAPER)
def test_every_row_of_the_papers_table_is_a_valid_configuration(scenario):
    assert preset("paper", **paper_values(scenario)).skill_steps == PAPER[scenario][0]
