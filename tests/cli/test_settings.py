"""Settings: where they come from, which source wins, and what is said about a wrong one."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from docs.chart import LEFT_OUT, MODE
from docs.settings_page import settings_page
from tenure.cli.settings.config import Configured, SettingsError, configured, provider_of
from tenure.cli.settings.table import TABLE, Setting, clashing, option_settings
from tenure.model.settings import Settings
from tenure.ports.provider import Option
from tenure.providers.registry import DEFAULT, find

IDLE = "batch-idle-duration"


def a_file(folder: Path, text: str) -> Path:
    path = folder / "settings.yaml"
    path.write_text(text)
    return path


def problems(
    flags: dict[str, str | None] | None = None,
    environment: dict[str, str] | None = None,
    file: Path | None = None,
) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        configured(flags or {}, environment or {}, file)
    return [str(problem) for problem in caught.value.problems]


def test_a_flag_wins_over_the_environment_and_that_over_the_file(tmp_path: Path) -> None:
    path = a_file(tmp_path, "batchIdleDuration: 4s\nbatchMaxDuration: 40s\nlogLevel: debug\n")
    environment = {"BATCH_IDLE_DURATION": "3s", "BATCH_MAX_DURATION": "30s"}
    settings = configured({IDLE: "2s"}, environment, path).settings
    assert settings.batch_idle == timedelta(seconds=2)
    assert settings.batch_max == timedelta(seconds=30)
    assert settings.log_level == "debug"
    assert settings.drain_min == Settings().drain_min


def test_what_differs_from_the_defaults_can_be_told_and_nothing_else() -> None:
    found = configured({IDLE: "1s", "disable-leader-election": "true"}, {"LOG_LEVEL": "DEBUG"})
    assert found.chosen == {"disable-leader-election": "true", "log-level": "debug"}
    assert not found.settings.leader_election
    assert configured({}, {}) == Configured(
        settings=Settings(cluster_name="", lease_namespace="", provider=DEFAULT)
    )


def test_an_empty_variable_is_one_that_is_not_there() -> None:
    assert configured({}, {"BATCH_IDLE_DURATION": " ", "METRICS_PORT": ""}).chosen == {}


def test_every_field_of_the_settings_can_be_set_and_every_name_is_unique() -> None:
    assert {s.field for s in TABLE if s.field} == {*Settings.__struct_fields__} - {
        "provider_options",
        "spot_to_spot_consolidation",  # By its feature gate.
    }
    for names in (
        [flag for s in TABLE for flag in (s.flag, *s.also)],
        [s.environment for s in TABLE],
        [s.key for s in TABLE],
    ):
        assert len(names) == len(set(names))


@pytest.mark.parametrize("setting", TABLE, ids=lambda setting: setting.flag)
def test_the_example_in_a_complaint_is_a_value_that_is_taken(setting: object) -> None:
    (found,) = (s for s in TABLE if s is setting)
    found.form.value(found.form.example, "here")
    if not found.found_out:
        assert found.form.value(found.default_words.replace("none", ""), "here") == found.default


WRONG = {
    "a duration in days": (
        IDLE,
        "1d",
        "got '1d', expected a duration of at least 1ms. Use 24h.",
    ),
    "a duration without unit": (IDLE, "1", "expected a duration of at least 1ms."),
    "no duration at all": (IDLE, "0s", "expected a duration of at least 1ms. For example 1s."),
    "a port that is none": ("metrics-port", "65536", "expected a whole number from 0 to 65535"),
    "a service's address for a port": (
        "metrics-port",
        "tcp://10.0.0.1:8080",
        "expected a whole number from 0 to 65535. For example 8080.",
    ),
    "a rate that is no number": ("kube-client-qps", "nan", "expected a number from 0.1 to"),
    "a switch that is neither on nor off": (
        "take-over",
        "yes",
        "got 'yes', expected true or false",
    ),
    "a level that is none": (
        "log-level",
        "chatty",
        "expected debug, info, warning or error. For example debug.",
    ),
    "a gate without a value": ("feature-gates", "NodeRepair", "expected pairs of a name and true"),
    "a gate that is neither on nor off": (
        "feature-gates",
        "ReservedCapacity=true,NodeRepair=off",
        "'NodeRepair=off' is none. For example NodeRepair=true,SpotToSpotConsolidation=false.",
    ),
    "a namespace that cannot be": (
        "leader-election-namespace",
        "Kube_System",
        "expected a name of lower-case letters, digits and -, at most 63 characters",
    ),
    "a lease of a broken second": (
        "lease-duration",
        "15.5s",
        "expected a duration in whole seconds of at least 7s",
    ),
}


@pytest.mark.parametrize(("flag", "value", "sentence"), WRONG.values(), ids=WRONG.keys())
def test_a_wrong_value_is_refused_with_its_source_and_an_example(
    flag: str, value: str, sentence: str
) -> None:
    (said,) = problems({flag: value})
    assert said.startswith(f"--{flag}: got ")
    assert sentence in said


def test_several_mistakes_of_several_sources_are_said_at_once(tmp_path: Path) -> None:
    path = a_file(tmp_path, "logLevel: [debug]\nbatchIdel: 1s\nmetricsPort: true\n")
    said = problems({IDLE: "soon"}, {"HEALTH_PROBE_PORT": "x"}, path)
    assert [sentence.split(": got")[0] for sentence in said] == [
        f"{path}: logLevel",
        str(path),
        f"--{IDLE}",
        f"{path}: metricsPort",
        "environment HEALTH_PROBE_PORT",
    ]
    assert 'expected the key of a setting. Did you mean "batchIdleDuration"?' in said[1]


CONTRADICTIONS = {
    "Karpenter's Lease beside Karpenter": (
        {"beside-karpenter": "true", "leader-election-name": "karpenter-leader-election"},
        "--leader-election-name: got 'karpenter-leader-election', expected another Lease",
    ),
    "a release of Karpenter without the mode": (
        {"karpenter-version": "1.15"},
        "--karpenter-version: got '1.15', expected --beside-karpenter, without which",
    ),
    "a release without the mode": ({"release": "true"}, "--release: got 'true', expected"),
    "a pause that is longer than the longest": (
        {IDLE: "11s"},
        "--batch-idle-duration: got '11s', expected at most --batch-max-duration, which is 10s",
    ),
    "a deadline too close to the end of the lease": (
        {"lease-renew-deadline": "12s"},
        "expected at least 5s less than --lease-duration, which is 15s",
    ),
    "a lease too short for the default deadline": (
        {"lease-duration": "12s"},
        "--lease-renew-deadline (its default): got '10s', expected at least 5s less than",
    ),
    "a deadline after which Karpenter may be at work": (
        {"lease-renew-deadline": "20s", "lease-duration": "30s"},
        "expected at most 10s for a Lease that Karpenter may want",
    ),
    "a renewal that is tried too seldom": (
        {"lease-retry-period": "6s"},
        "expected at most half of --lease-renew-deadline, which is 10s",
    ),
    "one port for two": (
        {"metrics-port": "8081"},
        "--health-probe-port (its default): got '8081', expected another port than --metrics-port",
    ),
}


@pytest.mark.parametrize(("flags", "sentence"), CONTRADICTIONS.values(), ids=CONTRADICTIONS.keys())
def test_settings_that_do_not_go_together_are_refused(
    flags: dict[str, str | None], sentence: str
) -> None:
    assert any(sentence in said for said in problems(flags))


def test_any_free_port_may_be_asked_for_twice() -> None:
    configured({"metrics-port": "0", "health-probe-port": "0"}, {})


BAD_FILES = {
    "a list": ("- a\n- b\n", "expected a mapping of settings. For example batchIdleDuration: 1s"),
    "no YAML": ("a: b: c\n", "expected YAML"),
    "a key of another spelling": ("batch-idle-duration: 1s\n", 'Did you mean "batchIdleDuration"?'),
}


@pytest.mark.parametrize(("text", "sentence"), BAD_FILES.values(), ids=BAD_FILES.keys())
def test_a_file_that_cannot_be_used_is_refused_by_name(
    text: str, sentence: str, tmp_path: Path
) -> None:
    path = a_file(tmp_path, text)
    (said,) = problems(file=path)
    assert said.startswith(str(path))
    assert sentence in said


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    (said,) = problems(file=tmp_path / "nowhere.yaml")
    assert said.startswith("--config: got ")
    assert "expected a file that can be read (No such file or directory)" in said


def test_an_empty_file_and_empty_values_are_the_defaults(tmp_path: Path) -> None:
    assert configured({}, {}, a_file(tmp_path, "")).chosen == {}
    assert configured({}, {}, a_file(tmp_path, "logLevel:\n")).chosen == {}


def test_gates_of_karpenter_are_taken_and_those_that_do_nothing_are_named(tmp_path: Path) -> None:
    gates = "NodeOverlay=true, ReservedCapacity=true,SpotToSpotConsolidation=false,NodeRepairs=true"
    notes = configured({}, {"FEATURE_GATES": gates}).notes
    assert notes == (
        "feature gate NodeOverlay is on and does nothing yet",
        "feature gate NodeRepairs is not known here and does nothing; did you mean NodeRepair?",
    )
    path = a_file(tmp_path, "featureGates:\n  NodeOverlay: true\n")
    assert configured({}, {}, path).notes == notes[:1]


@pytest.mark.parametrize("text", ["true", "false"])
def test_the_gate_of_spot_to_spot_consolidation_is_a_setting(text: str) -> None:
    found = configured({}, {"FEATURE_GATES": f"SpotToSpotConsolidation={text}"})
    assert found.settings.spot_to_spot_consolidation == (text == "true")
    assert found.notes == ()
    assert not configured({}, {}).settings.spot_to_spot_consolidation


def test_the_gate_switches_node_repair_off_and_the_start_up_log_says_by_what() -> None:
    found = configured({}, {"FEATURE_GATES": "NodeRepair=false,ReservedCapacity=true"})
    assert not found.settings.node_repair
    assert found.chosen["node-repair"] == "false"
    (note,) = found.notes
    assert note == (
        "node repair is off: feature gate NodeRepair=false (environment FEATURE_GATES); unhealthy "
        "nodes are reported and not repaired, time-outs of new nodes still run; "
        "--node-repair=true switches it on"
    )


@pytest.mark.parametrize(
    ("text", "on"),
    [(text, True) for text in ("1", "t", "T", "TRUE", "true", "True")]
    + [(text, False) for text in ("0", "f", "F", "FALSE", "false", "False")],
)
def test_a_gate_is_read_as_go_reads_it(text: str, on: bool) -> None:
    assert configured({}, {"FEATURE_GATES": f"NodeRepair={text}"}).settings.node_repair is on


def test_the_gate_may_say_what_is_so_anyway() -> None:
    found = configured({"feature-gates": "NodeRepair=true"}, {})
    assert found.settings.node_repair
    assert found.notes == ()


SAID_ITSELF = {
    "a flag": ({"node-repair": "true"}, {}, ""),
    "the environment": ({}, {"TENURE_NODE_REPAIR": "true"}, ""),
    "the file": ({}, {}, "nodeRepair: true\n"),
}


@pytest.mark.parametrize(
    ("flags", "environment", "file"), SAID_ITSELF.values(), ids=SAID_ITSELF.keys()
)
def test_the_setting_itself_wins_over_the_gate_wherever_it_is_given(
    flags: dict[str, str | None], environment: dict[str, str], file: str, tmp_path: Path
) -> None:
    environment = {"FEATURE_GATES": "NodeRepair=false", **environment}
    found = configured(flags, environment, a_file(tmp_path, file))
    assert found.settings.node_repair
    assert found.notes == ()


def test_node_repair_that_the_setting_switches_off_is_said_at_the_start_too() -> None:
    (note,) = configured({"node-repair": "false"}, {"FEATURE_GATES": "NodeRepair=true"}).notes
    assert note.startswith("node repair is off: --node-repair=false; unhealthy nodes are reported")


def test_settings_that_only_karpenter_has_are_noted_when_they_would_matter() -> None:
    environment = {"IGNORE_DRA_REQUESTS": "false", "ENABLE_PROFILING": "false", "HOME": "/"}
    assert configured({}, environment).notes == (
        "environment IGNORE_DRA_REQUESTS=false is a setting of Karpenter's that does nothing here",
    )


@pytest.mark.parametrize("written", ["Ignore", "ignore"])
def test_karpenters_preference_policy_counts(written: str) -> None:
    assert configured({}, {}).settings.preference_policy == "Respect"
    found = configured({}, {"PREFERENCE_POLICY": written})
    assert found.settings.preference_policy == "Ignore"
    assert found.notes == ()


@pytest.mark.parametrize("written", ["BestEffort", "besteffort"])
def test_karpenters_min_values_policy_counts(written: str) -> None:
    assert configured({}, {}).settings.min_values_policy == "Strict"
    found = configured({}, {"MIN_VALUES_POLICY": written})
    assert found.settings.min_values_policy == "BestEffort"
    assert found.notes == ()


class WithOptions:
    """The kwok provider under another name, with other options."""

    def __init__(self, name: str, *options: str) -> None:
        self.name = name
        self.options = tuple(
            Option(
                name=one, reason="Why.", metavar="X", expected="an x", example="x", default="none"
            )
            for one in options
        )

    def __getattr__(self, name: str) -> Any:
        return getattr(find(DEFAULT), name)


def test_an_option_that_two_providers_have_is_one_setting() -> None:
    one, other = WithOptions("one", "region", "zone"), WithOptions("other", "region")
    found = {setting.flag: setting.providers for setting in option_settings((one, other))}
    assert found == {"region": ("one", "other"), "zone": ("one",)}


@pytest.mark.parametrize("name", ["log-level", "lease-name"])
def test_no_option_takes_the_place_of_a_setting_of_tenure(name: str) -> None:
    bold = WithOptions("bold", "region", name)
    assert [setting.flag for setting in option_settings((bold,))] == ["region"]
    assert clashing(bold) == (name,)


def test_an_option_that_was_given_is_handed_over_as_it_was_written() -> None:
    environment = {"INSTANCE_TYPES_FILE": "types.json"}
    assert configured({}, environment).settings.provider_options == {
        "instance-types-file": "types.json"
    }
    assert configured({}, {}).settings.provider_options == {}


@pytest.mark.parametrize("setting", TABLE, ids=lambda setting: setting.flag)
def test_every_name_of_a_setting_follows_from_its_flag_and_the_page_has_it(
    setting: Setting,
) -> None:
    snake = setting.flag.replace("-", "_")
    assert setting.environment in (snake.upper(), f"TENURE_{snake.upper()}")
    assert setting.key.lower() == snake.replace("_", "")
    (row,) = (line for line in settings_page().splitlines() if f"| `--{setting.flag}`<br>" in line)
    names = row.split(" | ")[0]
    assert f"`{setting.environment}`" in names
    assert f"`{setting.key}`" in names
    assert ("not in the chart" in names) == (setting.key in LEFT_OUT - {MODE})
    if setting.field and not setting.flag.startswith("disable-"):
        in_scenario = setting.field.replace("_", "-")
        assert (f"in a scenario `{in_scenario}`" in names) == (in_scenario != setting.flag)


def test_the_page_shows_one_setting_in_each_way_to_give_it() -> None:
    for way in (
        "--batch-idle-duration=2s",
        "BATCH_IDLE_DURATION=2s",
        "batchIdleDuration: 2s",
        "--set settings.batchIdleDuration=2s",
        "settings: {batch-idle: 2s}",
    ):
        assert way in settings_page().partition("\n## ")[0]


def test_beside_karpenter_there_is_a_lease_and_no_provider_and_no_webhook() -> None:
    settings = configured({"beside-karpenter": "true"}, {}).settings
    assert settings.lease_name == "tenure-beside-karpenter"
    assert provider_of(settings).node_classes == ()
    other = configured({"beside-karpenter": "true", "leader-election-name": "ours"}, {}).settings
    assert other.lease_name == "ours"
    assert configured({}, {}).settings.lease_name == "karpenter-leader-election"


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("karpenter-version", "latest"),
        ("karpenter-version", "1"),
        ("karpenter-feature-gates", "NodeRepair"),
    ],
)
def test_what_cannot_be_said_of_karpenter(flag: str, value: str) -> None:
    (said,) = problems({"beside-karpenter": "true", flag: value})
    assert said.startswith(f"--{flag}: got ")
