import subprocess
import sys

import numpy as np
import onnxruntime
import pytest
import torch
from gymnasium.spaces import Box, Discrete, MultiDiscrete
from torch import nn

from apexrl.algorithms.mappo import MAPPO, MAPPOConfig
from apexrl.export.numpy_policy import ACTIVATIONS, NumpyPolicy
from apexrl.export.policy import ExportError, deployed_policy, export_npz, export_onnx
from apexrl.models import (
    Actor,
    CNNDiscreteActor,
    DictActor,
    GRUActor,
    GRUDiscreteActor,
    MLPActor,
    MLPDiscreteActor,
    RunningObservationNormalizer,
)
from apexrl.runs.errors import ReadFailedError
from apexrl.spaces import PackedBox

OBS = Box(-np.inf, np.inf, (3,))


@pytest.fixture
def normalizer():
    torch.manual_seed(0)
    normalizer = RunningObservationNormalizer((3,), clip=2.0)
    normalizer.update(torch.randn(200, 3) * torch.tensor([10.0, 0.1, 1.0]) + 5)
    return normalizer


def shaken(actor):
    """Weights away from the initial ones, whose outputs are all nearly zero."""
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in actor.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return actor


class Onnx:
    """An exported policy, run by onnxruntime."""

    def __init__(self, path):
        self.session = onnxruntime.InferenceSession(str(path))
        self.names = [item.name for item in self.session.get_inputs()]

    def __call__(self, *inputs):
        given = {name: values.numpy() for name, values in zip(self.names, inputs, strict=True)}
        outputs = [torch.from_numpy(values) for values in self.session.run(None, given)]
        return outputs[0] if len(outputs) == 1 else outputs


@pytest.mark.parametrize("squash", [False, True])
def test_onnx_of_a_gaussian_with_its_normaliser(tmp_path, normalizer, squash):
    actor = shaken(MLPActor(OBS, Box(-2, 4, (2,)), squash=squash, state_dependent_std=True))
    export_onnx(actor, tmp_path / "policy.onnx", normalizer)
    policy = Onnx(tmp_path / "policy.onnx")
    obs = torch.randn(11, 3) * 10
    with torch.no_grad():
        expected = actor.distribution(normalizer(obs)).mode()
        torch.testing.assert_close(policy(obs), expected)
        assert not torch.allclose(policy(obs), actor.distribution(obs).mode())  # the normaliser is inside
    assert [path.name for path in tmp_path.iterdir()] == ["policy.onnx"]


def test_onnx_of_a_recurrent_policy_carries_its_state(tmp_path, normalizer):
    actor = shaken(GRUActor(OBS, Box(-1, 1, (2,)), rnn_num_layers=2, rnn_hidden_dim=8))
    export_onnx(actor, tmp_path / "policy.onnx", normalizer)
    policy = Onnx(tmp_path / "policy.onnx")
    assert policy.names == ["obs", "state", "episode_starts"]
    assert [item.name for item in policy.session.get_outputs()] == ["actions", "next_state"]
    length, batch = 12, 5
    obs, starts = torch.randn(length, batch, 3), torch.rand(length, batch) < 0.2
    with torch.no_grad():
        whole, _ = actor.distribution(normalizer(obs), actor.initial_state(batch), starts)
    state = actor.initial_state(batch)
    for t in range(length):
        actions, state = policy(obs[t], state, starts[t])
        torch.testing.assert_close(actions, whole.mode()[t], atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    ("actor_class", "options"),
    [(None, {}), (None, {"add_agent_ids": False}), (None, {"share_actor": False}), (GRUDiscreteActor, {})],
)
def test_onnx_of_several_agents(tmp_path, scripted_team, actor_class, options):
    agent = MAPPO(scripted_team(), MAPPOConfig(normalize_observations=True, **options), actor_class)
    actor = shaken(agent.policy.actor)
    export_onnx(actor, tmp_path / "team.onnx", agent.policy.observation_normalizer, with_action_mask=True)
    inputs = [torch.randn(5, 3, 2)]
    if actor.is_recurrent:
        inputs += [actor.initial_state(5), torch.ones(5, dtype=torch.bool)]
    mask = torch.ones(5, 3, 3, dtype=torch.bool)
    exported = Onnx(tmp_path / "team.onnx")(*inputs, mask)
    actions, _ = agent.predict(inputs[0])
    assert torch.equal(exported[0] if actor.is_recurrent else exported, actions)


def test_onnx_takes_action_masks(tmp_path):
    actor = shaken(GRUDiscreteActor(OBS, MultiDiscrete([2, 3])))
    export_onnx(actor, tmp_path / "policy.onnx", with_action_mask=True)
    mask = torch.tensor([[False, True, False, False, True]]).repeat(4, 1)
    state, starts = actor.initial_state(4), torch.ones(4, dtype=torch.bool)
    actions, _ = Onnx(tmp_path / "policy.onnx")(torch.randn(4, 3), state, starts, mask)
    assert actions.tolist() == [[1, 2]] * 4


@pytest.mark.parametrize("kind", ["bytes", "dict"])
def test_onnx_of_images(tmp_path, kind):
    if kind == "bytes":
        actor = shaken(CNNDiscreteActor(Box(0, 255, (36, 40, 3), np.uint8), Discrete(5)))
        obs = torch.randint(0, 256, (6, 36, 40, 3), dtype=torch.uint8)
    else:
        actor = shaken(DictActor(PackedBox({"camera": Box(0, 1, (8, 8, 3)), "speed": OBS}), Discrete(5)))
        obs = torch.rand(6, 195)
    export_onnx(actor, tmp_path / "policy.onnx")
    assert torch.equal(Onnx(tmp_path / "policy.onnx")(obs), actor.distribution(obs).mode())


def test_exporting_leaves_the_actor_alone(tmp_path):
    actor = MLPDiscreteActor(OBS, Discrete(3)).train()
    export_onnx(actor, tmp_path / "policy.onnx")
    assert actor.training


def test_a_policy_without_an_onnx_form_is_refused(tmp_path):
    class Branching(Actor):
        def __init__(self):
            super().__init__(OBS, Box(-1, 1, (1,)))
            self.last = nn.Linear(3, 1)

        def forward(self, obs):
            return self.last(obs) if obs.sum() > 0 else -self.last(obs)

    with pytest.raises(ExportError, match="Branching has no ONNX form: keep Python branches"):
        export_onnx(Branching(), tmp_path / "policy.onnx")


def test_a_missing_package_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("apexrl.export.policy.find_spec", lambda name: None if name == "onnxscript" else object())
    with pytest.raises(ExportError, match=r"needs onnxscript: pip install 'apexrl\[onnx\]'"):
        export_onnx(MLPDiscreteActor(OBS, Discrete(3)), tmp_path / "policy.onnx")


@pytest.mark.parametrize("activation", sorted(ACTIVATIONS))
@pytest.mark.parametrize("layer_norm", [False, True])
def test_npz_of_every_activation(tmp_path, normalizer, activation, layer_norm):
    actor = shaken(
        MLPActor(OBS, Box(-2, 4, (2,)), hidden_dims=[16, 8], activation=activation, layer_norm=layer_norm, squash=True)
    )
    export_npz(actor, tmp_path / "policy.npz", normalizer)
    policy = NumpyPolicy.load(tmp_path / "policy.npz")
    obs = torch.randn(2, 50, 3) * 8
    with torch.no_grad():
        expected = actor.distribution(normalizer(obs)).mode()
    np.testing.assert_allclose(policy(obs.numpy()), expected, atol=1e-5)


def test_npz_of_discrete_policies_with_masks(tmp_path):
    single = shaken(MLPDiscreteActor(Box(-1, 1, (2, 2)), Discrete(4)))
    double = shaken(MLPDiscreteActor(Box(-1, 1, (2, 2)), MultiDiscrete([2, 3])))
    obs = torch.randn(40, 2, 2)
    for actor, n in ((single, 4), (double, 5)):
        export_npz(actor, tmp_path / "policy.npz")
        policy = NumpyPolicy.load(tmp_path / "policy.npz")
        assert np.array_equal(policy(obs.numpy()), actor.distribution(obs).mode())
        mask = torch.rand(40, n) < 0.5
        mask[:, 0], mask[:, -1] = True, True
        assert np.array_equal(policy(obs.numpy(), mask.numpy()), actor.distribution(obs, mask).mode())
        with pytest.raises(ValueError, match="forbids every action"):
            policy(obs.numpy(), np.zeros((40, n), bool))


def test_npz_needs_no_torch(tmp_path):
    export_npz(MLPDiscreteActor(OBS, Discrete(3)), tmp_path / "policy.npz")
    code = (
        "import sys, numpy as np\n"
        "from apexrl.export.numpy_policy import NumpyPolicy\n"
        f"print(NumpyPolicy.load({str(tmp_path / 'policy.npz')!r})(np.ones((2, 3))).shape)\n"
        "assert 'torch' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "(2,)"


def test_what_has_no_npz_form_is_refused(tmp_path):
    box = Box(-1, 1, (1,))
    with pytest.raises(ExportError, match="Use export_onnx"):
        export_npz(GRUActor(OBS, box), tmp_path / "policy.npz")
    with pytest.raises(ExportError, match="state_dependent_std"):
        export_npz(MLPActor(OBS, box, state_dependent_std=True), tmp_path / "policy.npz")
    with pytest.raises(ExportError, match="PReLU has no numpy version"):
        export_npz(MLPActor(OBS, box, activation=nn.PReLU), tmp_path / "policy.npz")
    with pytest.raises(ExportError, match="needs a discrete policy"):
        deployed_policy(MLPActor(OBS, box), with_action_mask=True)


def test_other_files_are_refused(tmp_path):
    np.savez(tmp_path / "other.npz", format_version=np.array(99))
    with pytest.raises(ReadFailedError, match="format 99"):
        NumpyPolicy.load(tmp_path / "other.npz")
    export_npz(MLPActor(OBS, Box(-1, 1, (1,))), tmp_path / "policy.npz")
    with pytest.raises(ValueError, match="continuous policy"):
        NumpyPolicy.load(tmp_path / "policy.npz")(np.ones(3), np.ones(1, bool))
