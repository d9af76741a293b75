"""The result files are strict JSON with exactly DLIO's keys, and YAML that PyYAML loads."""

import re

import pytest
import yaml

from conftest import strict_json

SUMMARY = {
    "start", "end", "num_accelerators", "num_hosts", "hostname", "num_files_train",
    "num_files_eval", "num_samples_per_file", "host_cpu_count", "host_memory_GB",
    "host_processor_name", "host_cpuinfo", "host_meminfo", "data_size_per_host_GB",
    "potential_caching", "epochs", "metric",
}
PER_PHASE = {
    "{}_au_percentage", "{}_au_mean_percentage", "{}_au_meet_expectation",
    "{}_au_stdev_percentage", "{}_throughput_samples_per_second",
    "{}_throughput_mean_samples_per_second", "{}_throughput_stdev_samples_per_second",
    "{}_io_mean_MB_per_second", "{}_io_stdev_MB_per_second",
}
OUTPUT = {
    "host_memory_GB", "host_cpu_count", "host_processor_name", "potential_caching",
    "host_cpuinfo", "host_meminfo", "hostname",
}
OUTPUT_EPOCH = {"load", "proc", "compute", "throughput", "au", "host_meminfo", "end"}
TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}")
SECONDS = re.compile(r"\d+\.\d\d")


def run(feedline, evaluation, accelerators=1, epochs=2):
    """Generates and trains a small set; returns the folder of the results."""
    out = feedline.folder / "out"
    workload = feedline.workload(
        model={"name": "judged"},
        framework="pytorch",
        workflow={"generate_data": True, "train": True, "evaluation": evaluation},
        dataset={
            "data_folder": str(feedline.folder / "data"), "format": "npz",
            "num_files_train": 8, "num_files_eval": 4, "record_length_bytes": 1024,
        },
        reader={"data_loader": "pytorch", "batch_size": 2, "batch_size_eval": 1},
        train={"epochs": epochs, "computation_time": 0.001},
        evaluation={"eval_time": 0.001},
    )
    feedline("run", workload, "--accelerators", accelerators, "--out", out).ok()
    return out


@pytest.mark.parametrize("evaluation", [False, True])
def test_summary_has_dlios_keys(feedline, evaluation):
    summary = strict_json(run(feedline, evaluation) / "summary.json")
    assert set(summary) == SUMMARY | {"feedline"}
    assert isinstance(summary["feedline"], dict)
    phases = ["train", "eval"] if evaluation else ["train"]
    metric = summary["metric"]
    assert set(metric) == {key.format(phase) for phase in phases for key in PER_PHASE}
    for phase in phases:
        assert metric[f"{phase}_au_meet_expectation"] in ("success", "fail")
        assert len(metric[f"{phase}_au_percentage"]) == 2
        assert len(metric[f"{phase}_throughput_samples_per_second"]) == 2
        mean = sum(metric[f"{phase}_au_percentage"]) / 2
        assert metric[f"{phase}_au_mean_percentage"] == pytest.approx(mean)
    assert TIMESTAMP.fullmatch(summary["start"]) and TIMESTAMP.fullmatch(summary["end"])
    assert summary["num_accelerators"] == 1
    assert summary["num_hosts"] == 1
    assert summary["num_files_train"] == 8
    assert summary["num_files_eval"] == 4
    assert summary["num_samples_per_file"] == 1
    assert summary["epochs"] == 2
    assert [type(count) for count in summary["host_cpu_count"]] == [int]
    assert len(summary["host_memory_GB"]) == 1
    assert summary["potential_caching"] == [1]
    assert "MemTotal" in summary["host_meminfo"]
    assert "processor" not in summary["host_cpuinfo"]


@pytest.mark.parametrize("accelerators", [1, 2])
def test_every_rank_has_its_files(feedline, accelerators):
    out = run(feedline, evaluation=True, accelerators=accelerators)
    assert len(list(out.glob("*_output.json"))) == accelerators
    assert len(list(out.glob("*_per_epoch_stats.json"))) == accelerators
    for rank in range(accelerators):
        output = strict_json(out / f"{rank}_output.json")
        assert set(output) == OUTPUT | {"1", "2"}
        assert output["potential_caching"] in (0, 1)
        for epoch in ("1", "2"):
            assert set(output[epoch]) == OUTPUT_EPOCH
            for series in ("load", "proc", "compute", "throughput", "au"):
                assert set(output[epoch][series]) == {"block1", "eval"}
            for series in ("load", "proc", "compute"):
                assert len(output[epoch][series]["block1"]) == 8 // 2 // accelerators
                assert len(output[epoch][series]["eval"]) == 4 // accelerators
            for load, proc in zip(output[epoch]["load"]["block1"], output[epoch]["proc"]["block1"]):
                assert 0 <= load <= proc
            assert TIMESTAMP.fullmatch(output[epoch]["end"])

        stats = strict_json(out / f"{rank}_per_epoch_stats.json")
        assert set(stats) == {"1", "2"}
        for epoch in ("1", "2"):
            assert set(stats[epoch]) == {"start", "end", "duration", "block1", "eval"}
            for part in (stats[epoch], stats[epoch]["block1"], stats[epoch]["eval"]):
                assert TIMESTAMP.fullmatch(part["start"]) and TIMESTAMP.fullmatch(part["end"])
                assert part["start"] <= part["end"]
                assert SECONDS.fullmatch(part["duration"])


def test_hydra_files_are_yaml(feedline):
    out = run(feedline, evaluation=False, epochs=1)
    config, overrides, hydra = (
        yaml.safe_load((out / ".hydra" / f"{name}.yaml").read_text())
        for name in ("config", "overrides", "hydra")
    )
    assert set(config) == {"workload"}
    assert config["workload"]["dataset"]["num_files_train"] == 8
    assert isinstance(overrides, list)
    assert set(hydra) == {"hydra"}
    assert hydra["hydra"]["runtime"]["output_dir"] == str(out)


def test_generation_only_leaves_no_results(feedline):
    out = feedline.folder / "out"
    workload = feedline.workload(
        model={"name": "judged"},
        framework="pytorch",
        workflow={"generate_data": True, "train": False},
        dataset={"format": "npz", "num_files_train": 2, "record_length_bytes": 64},
    )
    feedline("run", workload, "--data", feedline.folder / "data", "--out", out).ok()
    assert (out / "dlio.log").is_file()
    assert (out / ".hydra" / "config.yaml").is_file()
    assert not list(out.glob("*.json"))


def test_the_json_flag_prints_one_object(feedline):
    workload = feedline.workload(
        model={"name": "judged"},
        framework="pytorch",
        workflow={"generate_data": True, "train": True},
        dataset={
            "data_folder": str(feedline.folder / "data"), "format": "npz",
            "num_files_train": 2, "record_length_bytes": 64,
        },
        reader={"data_loader": "pytorch", "batch_size": 1},
        train={"epochs": 1, "computation_time": 0},
    )
    ended = feedline("run", workload, "--json", "--out", feedline.folder / "out").ok()
    (feedline.folder / "stdout.json").write_text(ended.out)
    assert isinstance(strict_json(feedline.folder / "stdout.json"), dict)
