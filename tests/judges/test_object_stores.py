"""Object stores that were not written with Feedline, and other people's clients of them.

moto is an S3 server, boto3 and the client of s3torchconnector (which DLIO uses) are S3 clients, and
Python's own web server serves plain files.
"""

import http.server
import io
import json
import threading
import zipfile

import boto3
import numpy
import pytest
from conftest import strict_json
from moto.server import ThreadedMotoServer
from s3torchconnectorclient._mountpoint_s3_client import MountpointS3Client

BUCKET = "bucket"
KEYS = {"aws_access_key_id": "judge", "aws_secret_access_key": "not secret"}
DATASET = {
    "format": "npz",
    "num_files_train": 4,
    "num_files_eval": 2,
    "num_samples_per_file": 1,
    "record_length_bytes": 4096,
}


@pytest.fixture(name="endpoint", scope="module")
def fixture_endpoint():
    """The address of a server of S3."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture(name="s3")
def fixture_s3(endpoint):
    """boto3, on an empty bucket."""
    client = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1", **KEYS)
    client.create_bucket(Bucket=BUCKET)
    yield client
    for key in keys(client):
        client.delete_object(Bucket=BUCKET, Key=key)
    client.delete_bucket(Bucket=BUCKET)


@pytest.fixture(name="torch_client")
def fixture_torch_client(endpoint, monkeypatch):
    """The client that DLIO's S3 reader and writer are made of."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEYS["aws_access_key_id"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", KEYS["aws_secret_access_key"])
    return MountpointS3Client(
        region="us-east-1", user_agent_prefix="judge", endpoint=endpoint, force_path_style=True,
    )


def keys(client):
    """All keys of the bucket, in order."""
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET)
    return [entry["Key"] for page in pages for entry in page.get("Contents", [])]


def content(client, key):
    """The bytes of an object."""
    return client.get_object(Bucket=BUCKET, Key=key)["Body"].read()


def entries(manifest):
    """The files of a manifest, which stand in it in the order in which they were ready."""
    return sorted((entry["name"], entry["crc32"]) for entry in json.loads(manifest)["files"])


def workload(feedline, endpoint, **dataset):
    """A workload whose storage options are spelt as DLIO spells them."""
    return feedline.workload(
        model={"name": "judged"},
        framework="pytorch",
        workflow={"generate_data": False, "train": True},
        storage={
            "storage_type": "s3",
            "storage_root": BUCKET,
            "storage_options": {
                "access_key_id": KEYS["aws_access_key_id"],
                "secret_access_key": KEYS["aws_secret_access_key"],
                "endpoint_url": endpoint,
                "region": "us-east-1",
                "s3_force_path_style": "false",
                "s3_max_attempts": 5,
            },
        },
        dataset={**DATASET, **dataset},
        reader={"data_loader": "pytorch", "batch_size": 1, "read_threads": 2},
        train={"epochs": 2, "computation_time": 0.001},
    )


def test_a_generated_set_has_plain_keys_and_the_bytes_of_a_local_one(feedline, endpoint, s3):
    path = workload(feedline, endpoint, data_folder="sets/small")
    feedline("run", path, "--generate-only", "--out", "out-s3").ok()
    local = feedline.folder / "local"
    feedline("run", path, "--generate-only", "--out", "out-local", "--data", local,
             "--set", "storage.storage_type=local_fs", "--set", "storage.storage_root=.").ok()
    files = sorted(str(p.relative_to(local)) for p in local.rglob("*") if p.is_file())
    assert len(files) == 7 and "train/img_0_of_4.npz" in files
    assert keys(s3) == [f"sets/small/{name}" for name in files]
    for name in files[1:]:
        assert content(s3, f"sets/small/{name}") == (local / name).read_bytes(), name
    assert entries(content(s3, f"sets/small/{files[0]}")) == entries((local / files[0]).read_bytes())
    sample = numpy.load(io.BytesIO(content(s3, "sets/small/train/img_3_of_4.npz")))
    assert sample["x"].shape == (64, 64, 1) and sample["x"].dtype == numpy.uint8


def test_a_large_object_is_uploaded_in_parts(feedline, endpoint, s3, torch_client):
    path = workload(feedline, endpoint, data_folder="large", format="npy", num_files_train=1,
                    num_files_eval=0, record_length_bytes=21_000_000)
    feedline("run", path, "--generate-only", "--out", "out").ok()
    key = "large/train/img_0_of_1.npy"
    head = s3.head_object(Bucket=BUCKET, Key=key)
    assert head["ETag"].strip('"').endswith("-3")
    whole = content(s3, key)
    assert len(whole) == head["ContentLength"] > 20_000_000
    assert b"".join(torch_client.get_object(BUCKET, key)) == whole
    assert numpy.load(io.BytesIO(whole)).size + 128 == len(whole)
    assert not s3.list_multipart_uploads(Bucket=BUCKET).get("Uploads")


def counts(out):
    """Opens, bytes, requests and retries of the training readers."""
    storage = strict_json(out / "summary.json")["feedline"]["storage"]
    calls = storage["open"]["calls"], storage["read"]["bytes"]
    asked = [sum(op.get(name, 0) for op in storage.values()) for name in ("requests", "retries")]
    return (*calls, *asked)


def test_a_whole_file_format_costs_one_request_a_file(feedline, endpoint, s3):
    path = workload(feedline, endpoint, data_folder="sets/read")
    feedline("run", path, "--generate", "--out", "out").ok()
    size = len(content(s3, "sets/read/train/img_0_of_4.npz"))
    assert counts(feedline.folder / "out") == (8, 8 * size, 8, 0)


def test_what_dlio_wrote_with_uris_for_keys_is_read(feedline, endpoint, s3, torch_client):
    buffer = io.BytesIO()
    numpy.savez(buffer, x=numpy.zeros((64, 64, 1), numpy.uint8), y=numpy.zeros(1, numpy.int64))
    for number in range(4):
        # DLIO passes the whole URI where the client wants a key.
        stream = torch_client.put_object(BUCKET, f"s3://{BUCKET}/train/img_{number}_of_4.npz")
        stream.write(buffer.getvalue())
        stream.close()
    assert keys(s3)[0] == f"s3://{BUCKET}/train/img_0_of_4.npz"
    path = workload(feedline, endpoint, data_folder=f"s3://{BUCKET}", num_files_eval=0)
    ended = feedline("run", path, "--out", "plain")
    assert ended.code == 2 and f"s3://{BUCKET}/train: no such data folder" in ended.err
    feedline("run", path, "--out", "uris",
             "--set", "storage.storage_options.uri_keys=true").ok()
    opens, read, requests, retries = counts(feedline.folder / "uris")
    assert (opens, read, requests, retries) == (8, 8 * len(buffer.getvalue()), 8, 0)


def test_a_set_can_be_verified_where_it_is(feedline, endpoint, s3, monkeypatch):
    path = workload(feedline, endpoint, data_folder="sets/checked")
    feedline("run", path, "--generate-only", "--out", "out").ok()
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEYS["aws_access_key_id"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", KEYS["aws_secret_access_key"])
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    feedline("verify", f"s3://{BUCKET}/sets/checked").ok()
    bad = "sets/checked/train/img_2_of_4.npz"
    whole = content(s3, bad)
    s3.put_object(Bucket=BUCKET, Key=bad, Body=whole[:100] + b"?" + whole[101:])
    ended = feedline("verify", f"s3://{BUCKET}/sets/checked")
    assert ended.code == 1 and "train/img_2_of_4.npz: crc32 " in ended.out


def test_checkpoints_go_to_the_bucket(feedline, endpoint, s3):
    path = workload(feedline, endpoint, data_folder="sets/saved")
    feedline("run", path, "--generate", "--out", "out", "-n", "2", "--epochs", "1",
             "--set", "workflow.checkpoint=true", "--set", "model.model_size_bytes=9000000",
             "--set", "model.parallelism.zero_stage=1",
             "--set", f"checkpoint.checkpoint_folder=s3://{BUCKET}/ckpt").ok()
    saved = [key for key in keys(s3) if key.startswith("ckpt/")]
    folder = "ckpt/global_epoch1_step2"
    files = [f"{folder}/model_states-{rank}.pt" for rank in (0, 1)]
    assert saved == [f"{folder}/.feedline-checkpoint.json", *files]
    for file in files:
        archive = zipfile.ZipFile(io.BytesIO(content(s3, file)))
        assert archive.testzip() is None
        assert archive.getinfo("archive/data/0").file_size == 9_000_000


def test_a_missing_bucket_and_a_missing_set_are_named(feedline, endpoint, s3):
    path = workload(feedline, endpoint, data_folder="nothing")
    ended = feedline("run", path, "--out", "out")
    assert ended.code == 2 and f"s3://{BUCKET}/nothing" in ended.err, ended.err
    ended = feedline("run", path, "--data", "s3://no-such-bucket/x", "--out", "out")
    assert ended.code == 2 and "s3://no-such-bucket/x" in ended.err, ended.err
    assert "not secret" not in ended.err and keys(s3) == []


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves a folder and says nothing about it. Knows no ranges: whole files only."""

    def log_message(self, *_):
        pass


def test_plain_files_are_read_from_a_web_server(feedline):
    dataset = {**DATASET, "num_files_eval": 0}
    path = feedline.workload(
        model={"name": "judged"}, framework="pytorch",
        workflow={"generate_data": False, "train": True},
        dataset=dataset, reader={"data_loader": "pytorch", "batch_size": 1},
        train={"epochs": 1, "computation_time": 0.001},
    )
    data = feedline.folder / "data"
    feedline("run", path, "--generate-only", "--data", data, "--out", "made").ok()
    size = (data / "train" / "img_0_of_4.npz").stat().st_size
    handler = lambda *args: Quiet(*args, directory=str(data))  # noqa: E731
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        feedline("run", path, "--data", url, "--out", "out",
                 "--set", "dataset.skip_listing=true").ok()
        server.shutdown()
    assert counts(feedline.folder / "out") == (4, 4 * size, 4, 0)
