"""Files of parameters: found by path or by name, checked, and read where competitors are named."""

import json

import pytest

from apexrl.runs.errors import ConfigurationError
from litaagent_std.policy.parameters import Parameters
from litaagent_std.tournament.competitors import parameter_files
from litaagent_std.tournament.competitors.names import resolve
from litaagent_std.tournament.competitors.parameter_files import FORMAT, read_parameters


def test_bare_parameters_and_those_of_a_tuning_run_are_read(tmp_path):
    bare, tuned = tmp_path / "bare.json", tmp_path / "tuned.json"
    bare.write_text(Parameters(hold=0.5).to_json())
    tuned.write_text(json.dumps({"format": FORMAT, "parameters": {"hold": 0.5}, "command": "lita tune"}))
    assert Parameters.from_mapping(read_parameters(str(bare))) == Parameters(hold=0.5)
    assert read_parameters(str(tuned)) == {"hold": 0.5}
    tuned.write_text(json.dumps({"format": FORMAT, "parameters": {"hold": 0.5}, "digest": "0" * 64}))
    with pytest.raises(ConfigurationError, match="do not match its digest"):
        read_parameters(str(tuned))


def test_a_name_stands_for_a_file_of_the_package(tmp_path, monkeypatch):
    monkeypatch.setattr(parameter_files, "SHIPPED", tmp_path)
    (tmp_path / "best.json").write_text('{"hold": 0.25}')
    assert read_parameters("best") == {"hold": 0.25}
    with pytest.raises(ConfigurationError, match="by the name of one of the package: best"):
        read_parameters("worst")


def test_every_file_of_the_package_is_good():
    for path in parameter_files.SHIPPED.glob("*.json"):
        Parameters.from_mapping(read_parameters(path.stem))


@pytest.mark.parametrize("text", ['{"hold": 7}', '{"holt": 0.5}', "{", "[1]", '{"format": "litaagent.parameters"}'])
def test_what_holds_no_parameters_is_refused(text, tmp_path):
    path = tmp_path / "wrong.json"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match="cannot be used"):
        read_parameters(str(path))


def test_a_competitor_carries_the_content_and_the_name_of_the_file(tmp_path):
    path = tmp_path / "p.json"
    path.write_text('{"hold": 0.25}')
    word = f'lita:{{"parameters": "{path}", "l4": "greedy"}}'
    [found] = resolve([word], integer_offers=True)
    assert found.spec.params == {"parameters": {"hold": 0.25}, "l4": "greedy"}
    assert str(path) in found.name
