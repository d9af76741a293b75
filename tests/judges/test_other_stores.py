"""Object stores beside S3: Azure's, Google's, and web servers that keep folders.

Azurite is Microsoft's emulator of Azure and checks shared keys; azure-storage-blob is Microsoft's
client. WsgiDAV is a WebDAV server. There is no emulator of the protocol that Google shares with S3
(the XML API): `Google` below looks at every request as Google's documents say and lets moto, an S3
server, do the storing. That is not Google's server.
"""

import base64
import contextlib
import datetime
import http.client
import http.server
import io
import json
import os
import re
import subprocess
import threading

import numpy
import pytest
from azure.storage.blob import BlobServiceClient, ContainerSasPermissions, generate_container_sas
from cheroot import wsgi
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from moto.server import ThreadedMotoServer
from test_object_stores import DATASET, Quiet, counts, entries
from wsgidav.wsgidav_app import WsgiDAVApp

ACCOUNT = "judge"
KEY = base64.b64encode(b"not secret, and longer than a hash").decode()
OTHER_KEY = base64.b64encode(b"another one").decode()
CONTAINER = "container"
# The newest protocol that this Azurite knows; the client would ask for a newer one.
AZURE_API = "2025-11-05"


def workload(feedline, options, **dataset):
    """A workload with these storage options."""
    return feedline.workload(
        model={"name": "judged"},
        framework="pytorch",
        workflow={"generate_data": False, "train": True},
        storage={"storage_options": options} if options else {},
        dataset={**DATASET, **dataset},
        reader={"data_loader": "pytorch", "batch_size": 1, "read_threads": 2},
        train={"epochs": 2, "computation_time": 0.001},
    )


def local_set(feedline):
    """The files of the small set as they are made on a local disk, by name."""
    folder = feedline.folder / "local"
    path = workload(feedline, {})
    feedline("run", path, "--generate-only", "--out", "out-local", "--data", folder).ok()
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def check_same(found, expected):
    """Two sets have the same files; manifests may have them in another order."""
    assert list(found) == list(expected) and len(expected) == 7
    manifest = "feedline.manifest.json"
    assert entries(found.pop(manifest)) == entries(expected.pop(manifest))
    assert found == expected


def refused(ended):
    """The error of a run that ended with one."""
    assert ended.code == 2, ended
    assert KEY not in ended.err and OTHER_KEY not in ended.err
    return next(line for line in ended.err.splitlines() if line.startswith("error: "))


@pytest.fixture(name="azurite", scope="module")
def fixture_azurite(tmp_path_factory):
    """The endpoint of the account at an emulator of Azure."""
    program = os.environ.get("AZURITE", "")
    if not os.access(program, os.X_OK):
        pytest.fail(f"no Azurite at AZURITE={program!r}; install and run everything: make test")
    with subprocess.Popen(
        [program, "--blobPort", "0", "--inMemoryPersistence", "--disableTelemetry", "--silent"],
        env={**os.environ, "AZURITE_ACCOUNTS": f"{ACCOUNT}:{KEY}"},
        cwd=tmp_path_factory.mktemp("azurite"), stdout=subprocess.PIPE, text=True,
    ) as server:
        said = (re.search(r"successfully listens on (\S+)", line) for line in server.stdout)
        yield f"{next(filter(None, said))[1]}/{ACCOUNT}"
        server.terminate()
        # It says goodbye, and would take it ill if nobody listened.
        server.communicate()


@pytest.fixture(name="azure")
def fixture_azure(azurite):
    """Microsoft's client, on an empty container."""
    service = BlobServiceClient(azurite, credential=KEY, api_version=AZURE_API)
    container = service.create_container(CONTAINER)
    yield container
    container.delete_container()


def azure_options(endpoint, **others):
    """Storage options for the emulator."""
    keys = {"access_key_id": ACCOUNT, "secret_access_key": KEY}
    return {**keys, "endpoint_url": endpoint, **others}


def blobs(container, below):
    """The blobs below a folder, by name."""
    names = [blob.name for blob in container.list_blobs(name_starts_with=f"{below}/")]
    return {name[len(below) + 1:]: container.download_blob(name).readall() for name in names}


def test_azure_has_the_bytes_of_a_local_set_and_they_are_read(feedline, azurite, azure):
    path = workload(feedline, azure_options(azurite), data_folder=f"az://{CONTAINER}/sets/small")
    feedline("run", path, "--generate", "--out", "out").ok()
    found = blobs(azure, "sets/small")
    size = len(found["train/img_0_of_4.npz"])
    check_same(found, local_set(feedline))
    assert counts(feedline.folder / "out") == (8, 8 * size, 8, 0)


def test_azure_takes_a_large_object_in_blocks(feedline, azurite, azure):
    path = workload(feedline, azure_options(azurite), data_folder=f"az://{CONTAINER}/large",
                    format="npy", num_files_train=1, num_files_eval=0,
                    record_length_bytes=21_000_000)
    feedline("run", path, "--generate", "--out", "out").ok()
    blob = azure.get_blob_client("large/train/img_0_of_1.npy")
    whole = blob.download_blob().readall()
    committed, uncommitted = blob.get_block_list("all")
    part = 8 << 20
    assert [block.size for block in committed] == [part, part, len(whole) - 2 * part]
    assert uncommitted == [] and numpy.load(io.BytesIO(whole)).size + 128 == len(whole)
    assert counts(feedline.folder / "out") == (2, 2 * len(whole), 2, 0)


def test_azure_is_read_in_ranges(feedline, azurite, azure):
    path = workload(feedline, azure_options(azurite), data_folder=f"az://{CONTAINER}/ranges",
                    format="hdf5", record_length_bytes=3_000_000)
    feedline("run", path, "--generate", "--out", "out").ok()
    assert len(blobs(azure, "ranges/train")) == 4
    # One request opens a file and brings its first MiB, another one brings the rest of the sample.
    opens, _, requests, retries = counts(feedline.folder / "out")
    assert (opens, requests, retries) == (8, 16, 0)


@pytest.mark.parametrize("way", ["key", "sas", "emulator"])
def test_azure_is_found_through_the_environment(feedline, azurite, azure, monkeypatch, way):
    place = f"az://{CONTAINER}/checked"
    path = workload(feedline, azure_options(azurite), data_folder=place)
    feedline("run", path, "--generate-only", "--out", "out").ok()
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", ACCOUNT)
    if way == "emulator":
        monkeypatch.setenv("AZURE_STORAGE_USE_EMULATOR", "true")
        monkeypatch.setenv("AZURITE_BLOB_STORAGE_URL", azurite.rsplit("/", 1)[0])
    else:
        monkeypatch.setenv("AZURE_STORAGE_ENDPOINT", azurite)
    if way == "sas":
        until = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)
        token = generate_container_sas(
            ACCOUNT, CONTAINER, account_key=KEY, expiry=until,
            permission=ContainerSasPermissions(read=True, list=True),
        )
        monkeypatch.setenv("AZURE_STORAGE_SAS_TOKEN", token)
    else:
        monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", KEY)
    assert feedline("verify", place).ok().out == "6 files, 27,564 bytes: all good\n"
    bad = azure.get_blob_client("checked/train/img_2_of_4.npz")
    whole = bad.download_blob().readall()
    bad.upload_blob(whole[:100] + b"?" + whole[101:], overwrite=True)
    ended = feedline("verify", place)
    assert ended.code == 1 and "train/img_2_of_4.npz: crc32 " in ended.out


def test_endpoint_and_key_of_the_workload_outrank_those_of_the_environment(
    feedline, azurite, azure, monkeypatch
):
    monkeypatch.setenv("AZURE_STORAGE_USE_EMULATOR", "true")
    monkeypatch.setenv("AZURITE_BLOB_STORAGE_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "other")
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", OTHER_KEY)
    monkeypatch.setenv("AZURE_STORAGE_TOKEN", "unknown")
    path = workload(feedline, azure_options(azurite), data_folder=f"az://{CONTAINER}/ranked")
    feedline("run", path, "--generate-only", "--out", "out").ok()
    assert len(blobs(azure, "ranked")) == 7


def test_azure_loses_a_set_that_is_not_kept(feedline, azurite, azure):
    path = workload(feedline, azure_options(azurite), data_folder=f"az://{CONTAINER}/brief",
                    keep_files=False)
    feedline("run", path, "--generate", "--out", "out").ok()
    assert counts(feedline.folder / "out")[0] == 8 and list(azure.list_blobs()) == []


def test_checkpoints_go_to_the_container(feedline, azurite, azure):
    path = workload(feedline, azure_options(azurite), data_folder=f"az://{CONTAINER}/saved")
    feedline("run", path, "--generate", "--out", "out", "-n", "2", "--epochs", "1",
             "--set", "workflow.checkpoint=true", "--set", "model.model_size_bytes=9000000",
             "--set", "model.parallelism.zero_stage=1",
             "--set", f"checkpoint.checkpoint_folder=az://{CONTAINER}/ckpt").ok()
    saved = {name: len(content) for name, content in blobs(azure, "ckpt").items()}
    names = [f"global_epoch1_step2/model_states-{rank}.pt" for rank in (0, 1)]
    # As torch.save writes them, and what makes them a checkpoint.
    assert saved.pop("global_epoch1_step2/.feedline-checkpoint.json") < 1000
    assert saved == dict.fromkeys(names, 9_001_577)


def test_what_azure_refuses_is_said(feedline, azurite, azure):
    place = f"az://{CONTAINER}/x"

    def error(data, **others):
        path = workload(feedline, azure_options(azurite, **others))
        return refused(feedline("run", path, "--data", data, "--out", "out"))

    assert error(place) == f"error: {place}/train: no such data folder"
    assert error(place, secret_access_key=OTHER_KEY) == (
        f"error: cannot stat {place}/train: access denied (403 AuthorizationFailure)"
    )
    assert error(place, secret_access_key="hush!") == (
        f"error: account key of {place}: expected Base64"
    )
    assert error("az://nowhere/x") == (
        "error: cannot stat az://nowhere/x/train: the bucket does not exist (404 ContainerNotFound)"
    )
    path = workload(feedline, {"endpoint_url": azurite})
    assert refused(feedline("run", path, "--data", place, "--out", "out")) == (
        f"error: account of {place}: expected AZURE_STORAGE_ACCOUNT_NAME, or an access key and its "
        "secret"
    )
    assert list(azure.list_blobs()) == []


class Google:
    """Google's XML API: who asks is checked here, what is stored is moto's."""

    email = "judge@project.iam.gserviceaccount.com"
    # moto refuses to replace what exists for somebody without a name.
    moto_user = "AWS4-HMAC-SHA256 Credential=judge/20260101/us-east-1/s3/aws4_request, " \
        "SignedHeaders=host, Signature=0"

    def __init__(self, moto):
        self.moto = moto
        self.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.seen = []

    def account(self, key=None):
        """The text of a service account's file."""
        pem = (key or self.key).private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        return json.dumps({
            "type": "service_account", "private_key": pem.decode(), "private_key_id": "first",
            "client_email": self.email, "token_uri": "http://127.0.0.1:1/token",
        })

    def is_known(self, authorization):
        """Whether it is a token as https://google.aip.dev/auth/4111 wants it, signed by the key."""
        scheme, _, token = (authorization or "").partition(" ")
        head, claims, signature = (
            base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)) for part in token.split(".")
        )
        try:
            self.key.public_key().verify(
                signature, token.rpartition(".")[0].encode(), padding.PKCS1v15(), hashes.SHA256()
            )
        except InvalidSignature:
            return False
        head, claims = json.loads(head), json.loads(claims)
        lasts = claims.pop("exp") - claims.pop("iat")
        scope = "https://www.googleapis.com/auth/cloud-platform"
        return (scheme, lasts) == ("Bearer", 3600) and (
            head == {"typ": "JWT", "alg": "RS256", "kid": "first"}
            and claims == {"iss": self.email, "sub": self.email, "scope": scope}
        )

    def ask(self, method, target, body=b"", headers=None):
        """moto's answer."""
        connection = http.client.HTTPConnection(*self.moto)
        headers = {**(headers or {}), "Authorization": self.moto_user}
        connection.request(method, target, body, headers)
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()

    def handler(self):
        """What the server calls for every request."""
        google = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def answer(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                path, _, query = self.path.partition("?")
                names = [part.partition("=")[0] for part in query.split("&") if part]
                google.seen.append(" ".join([self.command, path, *sorted(names)]))
                if not google.is_known(self.headers["Authorization"]):
                    refusal = b"<Error><Code>AuthenticationRequired</Code></Error>"
                    return self.reply(401, {}, refusal)
                # Pages of two, so that a small set takes several.
                target = self.path if "list-type" not in names else f"{self.path}&max-keys=2"
                kept = ("Range", "If-Match", "Content-Type")
                headers = {name: self.headers[name] for name in kept if name in self.headers}
                return self.reply(*google.ask(self.command, target, body, headers))

            def reply(self, status, headers, body):
                own = {"connection", "date", "server", "transfer-encoding"}
                headers = {name: value for name, value in headers.items() if name.lower() not in own}
                headers.setdefault("Content-Length", str(len(body)))
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = answer

        return Handler


@pytest.fixture(name="google")
def fixture_google(monkeypatch, tmp_path):
    """Google's protocol, with the bucket `bucket`; the environment has the server and an account."""
    moto = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    moto.start()
    google = Google(moto.get_host_and_port())
    # All servers of moto in a process share what they store.
    assert google.ask("POST", "/moto-api/reset")[0] == 200
    assert google.ask("PUT", "/bucket")[0] == 200
    account = tmp_path / "account.json"
    account.write_text(google.account())
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(account))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), google.handler()) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("GOOGLE_BASE_URL", f"http://127.0.0.1:{server.server_port}")
        yield google
        server.shutdown()
    google.ask("POST", "/moto-api/reset")
    moto.stop()


def google_object(google, key):
    """The bytes of an object."""
    status, _, content = google.ask("GET", f"/bucket/{key}")
    assert status == 200, key
    return content


def test_google_has_the_bytes_of_a_local_set_and_they_are_read(feedline, google):
    place = "gs://bucket/sets/small"
    path = workload(feedline, {}, data_folder=place)
    feedline("run", path, "--generate-only", "--out", "made").ok()
    expected = local_set(feedline)
    check_same({name: google_object(google, f"sets/small/{name}") for name in expected}, expected)
    assert feedline("verify", place).ok().out == "6 files, 27,564 bytes: all good\n"

    google.seen.clear()
    feedline("run", path, "--out", "out").ok()
    size = len(google_object(google, "sets/small/train/img_0_of_4.npz"))
    assert counts(feedline.folder / "out") == (8, 8 * size, 8, 0)
    # Every character but letters and digits is escaped.
    name = "GET /bucket/sets%2Fsmall%2Ftrain%2Fimg%5F{}%5Fof%5F4%2Enpz"
    assert sorted(x for x in google.seen if "%2Ftrain%2F" in x and x.startswith("GET")) == [
        name.format(number) for number in (0, 0, 1, 1, 2, 2, 3, 3)
    ]
    listing = "GET /bucket delimiter list-type prefix"
    further = "GET /bucket continuation-token delimiter list-type prefix"
    # Four training files are two pages, two for evaluation one.
    assert [x for x in google.seen if "list-type" in x and "delimiter" in x].count(further) == 1
    assert listing in google.seen


def test_google_loses_a_set_that_is_not_kept(feedline, google):
    path = workload(feedline, {}, data_folder="gs://bucket/brief", keep_files=False)
    feedline("run", path, "--generate", "--out", "out").ok()
    assert counts(feedline.folder / "out")[0] == 8
    name = "DELETE /bucket/brief%2Ftrain%2Fimg%5F{}%5Fof%5F4%2Enpz"
    removed = [x for x in google.seen if x.startswith("DELETE") and "img" in x and "train" in x]
    assert removed == [name.format(number) for number in range(4)]
    assert b"<KeyCount>0</KeyCount>" in google.ask("GET", "/bucket?list-type=2")[2]


def test_google_takes_a_large_object_in_parts(feedline, google, monkeypatch):
    options = {"endpoint_url": os.environ["GOOGLE_BASE_URL"]}
    # What the workload says goes before it.
    monkeypatch.setenv("GOOGLE_BASE_URL", "http://127.0.0.1:1")
    path = workload(feedline, options, data_folder="gs://bucket/large", format="npy",
                    num_files_train=1, num_files_eval=0, record_length_bytes=21_000_000)
    feedline("run", path, "--generate-only", "--out", "out").ok()
    name = "/bucket/large%2Ftrain%2Fimg%5F0%5Fof%5F1%2Enpy"
    # The first part is held back to the end.
    assert sorted(x for x in google.seen if name in x and not x.startswith("HEAD")) == [
        f"POST {name} uploadId", f"POST {name} uploads", *[f"PUT {name} partNumber uploadId"] * 3,
    ]
    whole = google_object(google, "large/train/img_0_of_1.npy")
    assert numpy.load(io.BytesIO(whole)).size + 128 == len(whole) == 20_994_852


def test_what_google_refuses_is_said(feedline, google, monkeypatch):
    path = workload(feedline, {})
    error = lambda data: refused(feedline("run", path, "--data", data, "--out", "out"))  # noqa: E731
    assert error("gs://bucket/x") == "error: gs://bucket/x/train: no such data folder"
    assert error("gs://nowhere/x").startswith(
        "error: cannot stat gs://nowhere/x/train: the bucket does not exist (404 NoSuchBucket: "
    )
    other = feedline.folder / "other.json"
    stranger = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    other.write_text(google.account(stranger))
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(other))
    assert error("gs://bucket/x") == (
        "error: cannot stat gs://bucket/x/train: the server does not know these credentials (401)"
    )


@contextlib.contextmanager
def serve_webdav(folder, around=lambda app: app):
    """The URL of a WebDAV server of a folder, with `around` between it and its clients."""
    folder.mkdir()
    app = WsgiDAVApp({
        "provider_mapping": {"/": str(folder)}, "simple_dc": {"user_mapping": {"*": True}},
        "verbose": 0,
    })
    server = wsgi.Server(("127.0.0.1", 0), around(app))
    server.prepare()
    threading.Thread(target=server.serve, daemon=True).start()
    yield f"http://127.0.0.1:{server.bind_addr[1]}"
    server.stop()


@pytest.fixture(name="webdav")
def fixture_webdav(tmp_path):
    """A WebDAV server: its URL and its folder."""
    folder = tmp_path / "served"
    with serve_webdav(folder) as url:
        yield url, folder


def test_webdav_keeps_folders_and_lists_them(feedline, webdav):
    url, folder = webdav
    path = workload(feedline, {}, data_folder=f"{url}/new/a%20set")
    feedline("run", path, "--generate", "--out", "out", "-n", "2").ok()
    own = folder / "new" / "a set"
    files = [path for path in sorted(own.rglob("*")) if path.is_file()]
    found = {str(path.relative_to(own)): path.read_bytes() for path in files}
    size = len(found["train/img_0_of_4.npz"])
    check_same(found, local_set(feedline))
    assert counts(feedline.folder / "out") == (8, 8 * size, 8, 0)
    verified = feedline("verify", f"{url}/new/a%20set").ok()
    assert verified.out == "6 files, 27,564 bytes: all good\n"


def test_a_folder_that_another_upload_has_just_made_is_no_error(feedline):
    folder = feedline.folder / "served"
    refused_folders = []

    def others_are_faster(app):
        def answer(environ, start):
            if environ["REQUEST_METHOD"] == "MKCOL":
                wanted = folder / environ["PATH_INFO"].strip("/")
                if wanted.parent.is_dir():
                    wanted.mkdir()
                    refused_folders.append(environ["PATH_INFO"])
            return app(environ, start)
        return answer

    with serve_webdav(folder, others_are_faster) as url:
        path = workload(feedline, {}, data_folder=f"{url}/a/b", num_files_train=1, num_files_eval=0)
        feedline("run", path, "--generate-only", "--out", "out").ok()
    assert refused_folders == ["/a", "/a/b", "/a/b/train"]
    assert (folder / "a/b/train/img_0_of_1.npz").stat().st_size == 4594


def test_webdav_loses_a_set_that_is_not_kept_and_nothing_else(feedline, webdav):
    url, folder = webdav
    (folder / "brief" / "train").mkdir(parents=True)
    (folder / "brief" / "train" / "mine.txt").write_text("mine")
    path = workload(feedline, {}, data_folder=f"{url}/brief", keep_files=False)
    feedline("run", path, "--generate", "--out", "out").ok()
    left = [str(path.relative_to(folder)) for path in sorted(folder.rglob("*"))]
    assert left == ["brief", "brief/train", "brief/train/mine.txt"]


def test_what_webdav_cannot_do_is_said(feedline, webdav):
    url, folder = webdav
    path = workload(feedline, {}, num_files_train=1, num_files_eval=0, format="npy",
                    record_length_bytes=70_000_000)
    ended = feedline("run", path, "--data", f"{url}/x", "--generate-only", "--out", "out")
    assert f"{url}/x/train/img_0_of_1.npy is too long: expected up to 67108864 bytes" in refused(ended)
    assert not list(folder.rglob("*.npy"))
    ended = feedline("run", path, "--data", f"{url}/none", "--out", "out")
    assert refused(ended) == f"error: {url}/none/train: no such data folder"
    ended = feedline("run", path, "--data", url.replace("//", "//me:hush@"), "--out", "out")
    shown = url.replace("//", "//...@")
    assert refused(ended) == (
        f'error: "{shown}" is not the URL of a remote store: expected no user and no password, which are not '
        "sent there"
    )


def test_a_plain_web_server_is_only_read_and_that_is_said(feedline):
    handler = lambda *args: Quiet(*args, directory=str(feedline.folder))  # noqa: E731
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        path = workload(feedline, {"s3_max_attempts": 1})
        listed = feedline("run", path, "--data", url, "--out", "listed")
        made = feedline("run", path, "--data", url, "--generate-only", "--out", "made")
        server.shutdown()
    assert refused(listed) == f"error: cannot stat {url}/train: the server cannot do that (501)"
    assert "the server cannot do that (501)" in refused(made)
    hint = "hint: a web server without WebDAV can only be read, with --set dataset.skip_listing=true"
    assert [ended.err.splitlines()[-1] for ended in (listed, made)] == [hint, hint]
