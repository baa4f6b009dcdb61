import random
import xml.etree.ElementTree as ET
from contextlib import nullcontext

import numpy as np
import pytest
import torch

from apexrl.charts import color_of
from apexrl.runs.errors import ConfigurationError
from apexrl.runs.metrics.jsonl import JsonlSink
from apexrl.runs.rng import capture_rng
from hmasd.command import RenderCommand, render
from hmasd.envs.alice_and_bob import SIDE, AliceAndBobEnv
from hmasd.envs.overcooked import LAYOUTS
from hmasd.pictures.episodes import animate, record
from hmasd.pictures.render import render_checkpoint, render_metrics
from hmasd.pictures.skills import SkillReport, skill_charts, skill_report
from hmasd.tasks import make_env
from hmasd.training.trainer import FINAL_NAME, train

SVG = "{http://www.w3.org/2000/svg}"


def parse(text):
    return ET.fromstring(text)


def test_the_album_of_a_checkpoint(small, tmp_path):
    train(small(), models=tmp_path / "models", sinks=(JsonlSink(tmp_path / "metrics.jsonl"),))
    written = render_checkpoint(tmp_path / "models" / FINAL_NAME, tmp_path / "album")
    written += render_metrics(tmp_path / "metrics.jsonl", tmp_path / "album", "run")
    assert {path.name for path in written} == {
        "episode.svg",
        "team_skill_usage.svg",
        "individual_skill_usage.svg",
        "team_confusion.svg",
        "individual_confusion.svg",
        "evaluation.svg",
    }
    assert all(parse(path.read_text()).tag == f"{SVG}svg" for path in written)


def test_an_episode_shows_where_agents_were_and_which_skills_they_followed(small):
    trainer = train(small())
    episode = record(trainer.agent, trainer.config, seed=3)
    assert episode.positions.shape == (10, 2, 2)
    steps = np.abs(np.diff(episode.positions, axis=0)).sum(axis=-1) * SIDE
    assert steps.max() == pytest.approx(1.0), "one cell at a time"
    changes = np.flatnonzero((np.diff(episode.skills, axis=0) != 0).any(axis=1)) + 1
    assert set(changes) <= {4, 8}, "skills change every k = 4 steps"
    picture = parse(animate(episode, "alice_and_bob"))
    circles = picture.findall(f"{SVG}circle")
    assert len(circles) == 2
    fills = circles[0].findall(f"{SVG}animate")[2].get("values").split(";")
    assert fills == [color_of(skill) for skill in episode.skills[:, 1]]


def test_uav_episodes_show_users(small):
    trainer = train(small(task="uav_relay", num_envs=2, batch_size=24, total_steps=24))
    episode = record(trainer.agent, trainer.config, seed=0)
    assert episode.users.shape == (50, 2)
    assert episode.positions.min() >= 0.0
    assert episode.positions.max() <= 1.0
    assert len(parse(animate(episode, "uav_relay")).findall(f"{SVG}circle")) == 55


@pytest.mark.parametrize("task", ["coordination_ring", "cramped_room_old_dynamics"])
def test_kitchens_show_the_cooks_on_the_floor(small, task):
    trainer = train(small(task=task, num_envs=2, batch_size=20, total_steps=20))
    episode = record(trainer.agent, trainer.config, seed=0)
    assert episode.positions.shape == (10, 2, 2)
    picture = parse(animate(episode, task))
    assert len(picture.findall(f"{SVG}circle")) == 2
    labels = [text.text for text in picture.findall(f"{SVG}text")]
    assert {"onions", "dishes", "pot", "serve"} <= set(labels)
    layout = LAYOUTS[task.removesuffix("_old_dynamics")]
    columns, rows = np.floor(episode.positions * layout.width).astype(int).transpose(2, 0, 1)
    assert set((rows * layout.width + columns).ravel()) <= set(layout.floor)


@pytest.mark.parametrize(("algorithm", "n_pictures"), [("hmasd", 4), ("mappo", 0)])
def test_of_a_task_without_positions_the_skills_are_drawn(small, tmp_path, algorithm, n_pictures):
    task = "pettingzoo:mpe2.simple_spread_v3"
    config = small(task=task, algorithm=algorithm, num_envs=2, batch_size=20, total_steps=20)
    trainer = train(config, models=tmp_path / "models")
    with pytest.raises(ConfigurationError, match="have no positions to draw"):
        record(trainer.agent, trainer.config, seed=0)
    checkpoint = tmp_path / "models" / FINAL_NAME
    written = render_checkpoint(checkpoint, tmp_path / "album", task=task)
    assert len(written) == n_pictures
    assert all("episode" not in path.name for path in written)
    status = render(RenderCommand(model_path=checkpoint, task=task, out=tmp_path / "again")) if n_pictures else 0
    assert status == 0
    if not n_pictures:
        with pytest.raises(ConfigurationError, match="nothing to draw"):
            render(RenderCommand(model_path=checkpoint, task=task))


def test_agents_that_have_left_are_not_counted(small, monkeypatch):
    trainer = train(small())
    step = AliceAndBobEnv.step

    def leave(env, actions):
        *outcome, extras = step(env, actions)
        extras["agent_mask"][:, 1] = False  # the second agent is there in the first step only
        return *outcome, extras

    monkeypatch.setattr(AliceAndBobEnv, "step", leave)
    report = skill_report(trainer.agent, seed=0, num_envs=5)
    assert report.team_confusion.sum() == 5 * 8
    assert report.agent_confusion.sum() == 5 * (8 + 1)


def test_skill_reports_count_every_step_once(small):
    trainer = train(small())
    report = skill_report(trainer.agent, seed=0, num_envs=5)
    # nine steps per episode, of which the last shows the next episode's start
    assert report.team_confusion.sum() == 5 * 8
    assert report.agent_confusion.sum() == 5 * 8 * 2
    assert report.team_usage.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("fails", [False, True])
def test_a_skill_report_leaves_the_callers_streams_alone_and_closes_its_environments(small, monkeypatch, fails):
    trainer = train(small())
    made, closed = [], []

    def make(*args):  # as a PettingZoo module whose constructor draws
        env = make_env(*args)
        made.append((env, random.random(), np.random.random(), torch.rand(1).item()))
        env.close = lambda: closed.append(env)
        if fails:
            env.step = None
        return env

    monkeypatch.setattr("hmasd.pictures.skills.make_env", make)
    for callers in (1, 2):
        random.seed(callers)
        np.random.seed(callers)
        torch.manual_seed(callers)
        before = capture_rng()
        with pytest.raises(TypeError) if fails else nullcontext():
            skill_report(trainer.agent, seed=0, num_envs=2)
        after = capture_rng()
        assert before["python"]["words"].equal(after["python"]["words"])
        assert before["numpy"]["state"]["key"]["words"].equal(after["numpy"]["state"]["key"]["words"])
        assert before["numpy"]["state"]["pos"] == after["numpy"]["state"]["pos"]
        assert before["torch"].equal(after["torch"])
    assert closed == [env for env, *_ in made]
    assert made[0][1:] == made[1][1:], "constructors draw from the seed of the report"


def test_charts_of_skills_show_shares_in_the_colours_of_the_skills():
    counts = np.array([[3.0, 1.0], [0.0, 0.0]])
    report = SkillReport(np.array([0.25, 0.75]), np.array([1.0, 0.0]), counts, counts)
    team_usage, agent_usage, team_confusion, agent_confusion = skill_charts(report)
    [bars] = team_usage.series
    assert (bars.x, bars.texts, bars.colors) == (["Z 0", "Z 1"], ["25 %", "75 %"], [color_of(0), color_of(1)])
    assert agent_usage.series[0].x == ["z 0", "z 1"]
    assert team_confusion.values == agent_confusion.values == [[0.75, 0.25], [0.0, 0.0]]
    assert team_confusion.texts == [["75 %", "25 %"], ["0 %", "0 %"]]
