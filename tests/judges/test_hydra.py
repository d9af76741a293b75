"""Hydra's own compose API judges the configuration Feedline composes from the same arguments."""

from datetime import datetime

import pytest
import yaml
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from omegaconf import OmegaConf

# Makes any preset a job of a moment: one tiny file, nothing trained.
TINY = [
    "++workload.workflow.generate_data=True",
    "++workload.workflow.train=False",
    "++workload.workflow.checkpoint=False",
    "++workload.workflow.evaluation=False",
    "++workload.dataset.format=npz",
    "++workload.dataset.num_files_train=1",
    "++workload.dataset.num_files_eval=0",
    "++workload.dataset.num_samples_per_file=1",
    "++workload.dataset.record_length_bytes=64",
    "++workload.dataset.record_length_bytes_stdev=0",
    "++workload.dataset.data_folder=data",
]

# Each a list of overrides for the preset named first. Keys below `note` mean nothing to either
# program, which is what makes them good for trying every kind of value.
COMPOSED = [
    ("unet3d_h100",),
    ("default",),
    ("resnet50_a100",),
    ("bert_v100",),
    ("megatron_deepspeed_LLNL",),
    ("unet3d_h100", "++workload.reader.batch_size=3"),
    ("unet3d_h100", "workload.train.epochs=2"),
    ("unet3d_h100", "+workload.reader.prefetch_size=4"),
    ("unet3d_h100", "~workload.metric"),
    ("unet3d_h100", "~workload.metric.au"),
    ("unet3d_h100", "~workload.train.epochs=5"),
    (
        "unet3d_h100",
        "++workload.train.computation_time.type=uniform",
        "++workload.train.computation_time.min=0.1",
        "++workload.train.computation_time.max=0.2",
    ),
    ("unet3d_h100", "++workload.train.epochs=3", "++workload.train.epochs=4"),
    ("unet3d_h100", "++workload.dataset.record_dims=[4, 8]"),
    ("unet3d_h100", "++workload.dataset.record_dims=[]", "+workload.note.deep=[[1,2],[x,null]]"),
    ("unet3d_h100", "++workload.storage.storage_options={}"),
    ("unet3d_h100", "+workload.note.map={a:1,b:{c:[true,off]},d:1.5}"),
    ("unet3d_h100", "+workload.note.empty="),
    ("unet3d_h100", "+workload.note.quoted='a b'", '+workload.note.double="x=y, z"'),
    ("unet3d_h100", "+workload.note.escaped='it\\'s'", '+workload.note.back="a\\"b"'),
    ("unet3d_h100", "+workload.note.number='5'", "+workload.note.truth='true'"),
    (
        "unet3d_h100",
        "++workload.train.computation_time=1e-3",
        "+workload.note.big=1.5E+3",
        "+workload.note.point=.5",
        "+workload.note.trailing=2.",
        "+workload.note.negative=-0.25",
    ),
    (
        "unet3d_h100",
        "+workload.note.a=true",
        "+workload.note.b=True",
        "+workload.note.c=FALSE",
        "+workload.note.d=null",
        "+workload.note.e=NULL",
    ),
    (
        "unet3d_h100",
        "++workload.reader.file_shuffle=off",
        "+workload.note.on=on",
        "+workload.note.yes=yes",
        "+workload.note.no=no",
        "+workload.note.none=None",
        "+workload.note.tilde='~'",
    ),
    (
        "unet3d_h100",
        "+workload.note.minus=-1",
        "+workload.note.plus=+1",
        "+workload.note.underscore=1_000",
        "+workload.note.zeros=007",
        "+workload.note.hex=0x10",
    ),
    (
        "unet3d_h100",
        "+workload.note.path=/scratch/me/run-1/a.b",
        "+workload.note.url=s3://bucket/key",
        "+workload.note.version=1.2.3",
        "+workload.note.date=2026-01-02",
        "+workload.note.time=12:30:45",
        "+workload.note.blank=two words",
        "+workload.note.symbols=a-b_c.d%e@f?g|h*i",
    ),
    ("unet3d_h100", "++workload.dataset.file_prefix=${workload.model.name}"),
    ("unet3d_h100", "+workload.note.list=[1,two,3.0,'four 4',null,true]"),
    ("unet3d_h100", "++workload.model.name=other", "++workload.model.type=null"),
    ("unet3d_h100", "+workload.note.endless=inf", "+workload.note.below=-inf"),
    ("default", "~workload.profiling", "+workload.profiling.profiler=none"),
    ("resnet50_h100", "workload.dataset.record_length_bytes=81", "workload.metric.au=0.5"),
]

# Arguments that Hydra refuses; Feedline must refuse them too, and name the offender.
REFUSED = [
    ("workload.reader.no_such_key=1", "no_such_key"),
    ("+workload.train.epochs=2", "epochs"),
    ("~workload.no_such_section", "no_such_section"),
    ("~workload.train.epochs=77", "epochs"),
    ("+workload.note.list=[1,2", "note.list"),
    ("+workload.note.map={a:1", "note.map"),
    ("workload=no_such_workload", "no_such_workload"),
]


def config_dir(folder, presets, names):
    """A Hydra configuration folder with DLIO's primary file and these presets."""
    (folder / "workload").mkdir(parents=True)
    (folder / "config.yaml").write_text("defaults:\n  - _self_\n  - workload: default\n")
    for name in names:
        (folder / "workload" / f"{name}.yaml").write_text(presets(name))
    return folder


def composed_by_hydra(folder, overrides):
    """What Hydra composes."""
    GlobalHydra.instance().clear()
    with initialize_config_dir(version_base=None, config_dir=str(folder)):
        return compose(config_name="config", overrides=overrides)


def plain(config):
    """The unresolved tree of a configuration, in Python's own types."""
    return OmegaConf.to_container(config, resolve=False)


def typed(value):
    """The value with its types spelled out, since Python takes 1, 1.0 and True for equal."""
    if isinstance(value, dict):
        return {key: typed(item) for key, item in value.items()}
    if isinstance(value, list):
        return [typed(item) for item in value]
    return type(value).__name__, value


@pytest.mark.parametrize("case", COMPOSED, ids=" ".join)
def test_same_tree_as_hydra(feedline, presets, case):
    name, *own = case
    folder = config_dir(feedline.folder / "conf", presets, {name, "default"})
    # The case comes last: what it says must win over what makes the job small.
    overrides = [f"workload={name}", *TINY, *own]
    out = feedline.folder / "out"
    feedline.dlio(*overrides, f"hydra.run.dir={out}").ok()
    config = out / ".hydra" / "config.yaml"
    expected = composed_by_hydra(folder, overrides)
    assert typed(plain(OmegaConf.load(config))) == typed(plain(expected))
    # Scripts cut values out of these files with text tools, so order and quoting count too.
    assert config.read_text() == OmegaConf.to_yaml(expected)
    assert yaml.safe_load((out / ".hydra" / "overrides.yaml").read_text()) == overrides


@pytest.mark.parametrize("override,names", REFUSED, ids=[override for override, _ in REFUSED])
def test_what_hydra_refuses_is_refused(feedline, presets, override, names):
    folder = config_dir(feedline.folder / "conf", presets, {"unet3d_h100", "default"})
    overrides = ["workload=unet3d_h100", *TINY, override]
    if override.startswith("workload="):
        overrides = [*TINY, override]
    with pytest.raises(Exception):
        composed_by_hydra(folder, overrides)
    ended = feedline.dlio(*overrides, f"hydra.run.dir={feedline.folder / 'out'}")
    assert ended.code != 0
    assert names in ended.err
    assert not (feedline.folder / "data").exists(), "data was written for a refused job"


# What YAML 1.1 and OmegaConf make of plain scalars differs from what the eye sees.
ODD_FILE = """\
model: {name: odd, type: cnn}
framework: pytorch
workflow: {generate_data: yes, train: off}
dataset:
  data_folder: data
  format: npz
  num_files_train: 1
  record_length_bytes: 64
note:
  octal: 010
  hex: 0x1F
  binary: 0b101
  underscore: 1_000
  exponent: 1e-3
  exponent_point: 1.0e+3
  infinite: .inf
  truth: [yes, No, ON, off, y, n, True, false]
  nothing: [~, null, Null, '', ]
  date: 2026-01-02
  sexagesimal: 1:30
  colon: "a: b"
  hash: 'a # b'
  folded: >
    one
    two
  literal: |
    one
    two
  anchor: &a {x: 1}
  alias: *a
  merged: {<<: *a, y: 2}
  reference: ${workload.model.name}
  "quoted key": 1
  version: 1.2.3
"""


def test_yaml_is_read_as_omegaconf_reads_it(feedline, presets):
    folder = config_dir(feedline.folder / "conf", presets, {"default"})
    (folder / "workload" / "odd.yaml").write_text(ODD_FILE)
    out = feedline.folder / "out"
    feedline.dlio(
        f"--config-dir={folder}", "workload=odd", f"++hydra.run.dir={out}"
    ).ok()
    loaded = OmegaConf.load(out / ".hydra" / "config.yaml")
    assert typed(plain(loaded)) == typed(plain(composed_by_hydra(folder, ["workload=odd"])))


def test_duplicate_keys_are_refused(feedline, presets):
    folder = config_dir(feedline.folder / "conf", presets, {"default"})
    (folder / "workload" / "twice.yaml").write_text(
        ODD_FILE.replace("framework: pytorch\n", "framework: pytorch\nframework: pytorch\n")
    )
    with pytest.raises(yaml.YAMLError):
        composed_by_hydra(folder, ["workload=twice"])
    ended = feedline.dlio(f"--config-dir={folder}", "workload=twice")
    assert ended.code != 0
    assert "framework" in ended.err


def test_hydra_settings(feedline):
    out = feedline.folder / "out"
    feedline.dlio(
        "workload=unet3d_h100", *TINY, f"++hydra.run.dir={out}",
        "++hydra.output_subdir=dlio_config",
    ).ok()
    assert not (out / ".hydra").exists()
    overrides = yaml.safe_load((out / "dlio_config" / "overrides.yaml").read_text())
    assert overrides == ["workload=unet3d_h100", *TINY], "hydra.* is not a task override"
    hydra = yaml.safe_load((out / "dlio_config" / "hydra.yaml").read_text())["hydra"]
    assert hydra["runtime"]["output_dir"] == str(out)
    assert hydra["runtime"]["choices"]["workload"] == "unet3d_h100"
    assert hydra["overrides"]["task"] == overrides
    assert hydra["run"]["dir"] == str(out)


def test_default_run_directory(feedline):
    feedline.dlio("workload=unet3d_h100", *TINY).ok()
    (out,) = (feedline.folder / "hydra_log" / "unet3d").iterdir()
    assert (out / ".hydra" / "config.yaml").is_file()
    datetime.strptime(out.name, "%Y-%m-%d-%H-%M-%S")


def test_cfg_job_prints_the_tree(feedline, presets):
    folder = config_dir(feedline.folder / "conf", presets, {"unet3d_h100", "default"})
    overrides = ["workload=unet3d_h100", "++workload.train.epochs=9"]
    ended = feedline.dlio(*overrides, "--cfg", "job").ok()
    printed = OmegaConf.create(ended.out)
    assert typed(plain(printed)) == typed(plain(composed_by_hydra(folder, overrides)))
