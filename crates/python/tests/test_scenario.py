"""Scenarios from texts, files and dicts; overrides; errors with their places."""

from __future__ import annotations

import math

import pytest
from conftest import TEXT

import millpond


def test_text_file_and_results_folder_make_the_same_scenario(scenario, tmp_path):
    file = tmp_path / "small.toml"
    file.write_text(TEXT)
    run = scenario.run(variant="cubic", into=tmp_path / "run")
    resolved = scenario.resolved("cubic")
    assert millpond.Scenario(file).resolved("cubic") == resolved
    assert millpond.Scenario(run.folder).resolved() == resolved
    assert scenario.variants == ["dctcp", "cubic"] and scenario.name == "small"


def test_a_dict_is_a_scenario_and_none_is_left_out(pair):
    flows = {"kind": "permutation", "size": "1MB", "name": None}
    scenario = millpond.Scenario({**pair, "traffic": [flows], "seed": None})
    text = (
        'name = "pair"\nuntil = "flows-complete"\nduration = "1s"\n'
        "[topology]\nkind = 'single-switch'\nhosts = 2\n"
        "host-link = { rate = '10Gbps', delay = '1us' }\n"
        "[[traffic]]\nkind = 'permutation'\nsize = '1MB'\n"
    )
    assert scenario.resolved() == millpond.Scenario(text).resolved()


def test_overrides_are_read_as_the_command_reads_them(scenario):
    changed = scenario.with_({"topology.leaves": 3, "traffic.web.load": 0.25}, duration="1ms")
    resolved = changed.resolved("dctcp")
    assert "leaves = 3" in resolved and "load = 0.25" in resolved
    assert "leaves = 2" in scenario.resolved("dctcp")


def test_an_error_has_file_line_key_and_nearest_name(tmp_path):
    file = tmp_path / "slip.toml"
    file.write_text(TEXT.replace("hosts-per-leaf", "hosts-per-leave"))
    with pytest.raises(millpond.ScenarioError) as caught:
        millpond.Scenario(file)
    error = caught.value
    assert (error.file, error.line, error.key) == (str(file), 9, "hosts-per-leave")
    assert error.nearest == "hosts-per-leaf" and isinstance(error, millpond.Error)
    assert "did you mean `hosts-per-leaf`?" in str(error)


def test_a_dict_with_a_wrong_key_is_an_error_with_the_nearest_key(pair):
    with pytest.raises(millpond.ScenarioError) as caught:
        millpond.Scenario({**pair, "durration": "1ms"}, name="mine")
    assert (caught.value.file, caught.value.key) == ("mine", "durration")
    assert caught.value.nearest == "duration"


def test_a_wrong_override_names_the_argument(scenario):
    with pytest.raises(millpond.ScenarioError) as caught:
        scenario.with_({"topology.leafs": 3}).run()
    assert caught.value.file == "with_" and caught.value.nearest == "leaves"


@pytest.mark.parametrize("number", [math.nan, math.inf, -1.0])
def test_numbers_that_are_none_are_errors_of_their_key(scenario, number):
    with pytest.raises(millpond.ScenarioError) as caught:
        scenario.with_({"traffic.web.load": number}).run()
    assert "load" in caught.value.key


def test_values_without_a_form_in_toml_are_type_errors(pair):
    with pytest.raises(TypeError, match="object"):
        millpond.Scenario({**pair, "seed": object()})


def test_a_missing_file_is_a_scenario_error(tmp_path):
    with pytest.raises(millpond.ScenarioError):
        millpond.Scenario(tmp_path / "no-such.toml")


def test_idle_keys_are_warnings(scenario):
    with pytest.warns(millpond.ScenarioWarning):
        scenario.with_({"capture.tcp-timestamps": True}).run(variant="dctcp")
