"""Objects over HTTP: Feedline's store beside a bare socket and beside other people's S3 clients."""

import json
import os
import statistics
import subprocess
from pathlib import Path

from table import Goal, Row
from usage import CommandFailed

# A sample of ImageNet's size, a large shard, one between them.
SIZES_MIB = (0.125, 8, 64)
THREADS = (1, 2, 4)
SECONDS = 2
KEYS = {"AWS_ACCESS_KEY_ID": "feedline", "AWS_SECRET_ACCESS_KEY": "only-for-tests",
        "AWS_REGION": "us-east-1"}


def run(argv, env=None):
    """The standard output of a command that ended well."""
    done = subprocess.run([str(word) for word in argv], capture_output=True, text=True,
                          check=False, env={**os.environ, **(env or {})})
    if done.returncode != 0:
        raise CommandFailed(f"{argv[0]} ended with {done.returncode}: {done.stderr.strip()[-300:]}")
    return done.stdout


class ObjectSections:
    """Needs the example `get` and the S3 server, and for the peers `bench/peers.sh`."""

    def __init__(self, bench):
        self.bench = bench
        self.rounds = bench.options.rounds
        self.get = bench.examples / "get"
        self.server = bench.options.target / "release" / "feedline-s3-server"
        self.peers = bench.options.peers / "s3" / "bin" / "python"

    def beside_socket(self, mib):
        """Equal threads, one server, same objects."""
        self.bench.require(self.get, "make bench")
        rounds = [
            [json.loads(line) for line in run([self.get, mib, SECONDS]).splitlines()]
            for _ in range(self.rounds)
        ]
        for threads in THREADS:
            cases = [
                {case["client"]: case for case in round_ if case["threads"] == threads}
                for round_ in rounds
            ]
            what = f"GET of {mib:g} MiB, {threads} threads"
            self.add(f"{what}, rate", "GiB/s", cases, "gib_per_s", Goal(">=", 0.9))
            self.add(f"{what}, CPU time", "CPU-s/GiB", cases, "cpu_s_per_gib", Goal("<=", 1 / 0.9))

    def add(self, what, unit, cases, key, goal):
        """Signed requests against a socket that asks without a signature, and against one that sends
        a ready one, so that the server has the same to do for both."""
        ours = [case["remote, signed"][key] for case in cases]
        for client, name in (("bare", "bare socket"), ("bare, signed", "bare socket, signed")):
            bare = [case[client][key] for case in cases]
            ratio = statistics.median(own / peer for own, peer in zip(ours, bare))
            self.bench.add(Row(what, unit, statistics.median(ours), name,
                               statistics.median(bare), ratio, goal, rounds={"rounds": cases}))

    def beside_clients(self):
        """Clients in Python, on a server of the same kind."""
        self.bench.require(self.peers, "bench/peers.sh " + str(self.bench.options.peers))
        self.bench.require(self.server, "make bench")
        with subprocess.Popen([self.server, "--bucket", "bucket"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True) as server:
            url = json.loads(server.stdout.readline())["server"]
            env = {**KEYS, "AWS_ENDPOINT_URL": url}
            script = Path(__file__).with_name("s3_clients.py")
            for client in ("s3torchconnector", "s3dlio"):
                self.client(client, [self.peers, script, client, url, 8 << 20, 2, SECONDS], env)
            server.stdin.close()

    def client(self, name, argv, env):
        """Two threads, 8 MiB."""
        ours, theirs = [], []
        for _ in range(self.rounds):
            cases = [json.loads(line) for line in run([self.get, 8, SECONDS]).splitlines()]
            ours.append(next(case for case in cases
                             if case["threads"] == 2 and case["client"] == "remote, signed"))
            theirs.append(json.loads(run(argv, env).splitlines()[-1]))
        for key, unit in (("gib_per_s", "GiB/s"), ("cpu_s_per_gib", "CPU-s/GiB")):
            own, peer = [case[key] for case in ours], [case[key] for case in theirs]
            ratio = statistics.median(a / b for a, b in zip(own, peer))
            self.bench.add(Row(f"GET of 8 MiB, 2 threads, {unit}", unit, statistics.median(own),
                               name, statistics.median(peer), ratio,
                               rounds={"feedline": ours, name: theirs}))


def sections(bench):
    """Names and functions."""
    objects = ObjectSections(bench)
    for mib in SIZES_MIB:
        yield f"j: objects of {mib:g} MiB beside a bare socket", (
            lambda mib=mib: objects.beside_socket(mib))
    yield "j: objects beside other clients", objects.beside_clients
