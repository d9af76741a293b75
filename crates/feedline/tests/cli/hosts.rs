//! Several hosts on one machine, for runs of Open MPI across them.
//!
//! A host is a set of namespaces (network, host name, mounts, IPC) in one user namespace, on a bridge
//! that leads nowhere else; root is not needed. `mpirun` runs on the first host and starts its daemons
//! on the others through a script that enters their namespaces where ssh would log in. Every host has
//! a `/dev/shm` of its own, which also holds what Open MPI puts down, so ranks of different hosts share
//! no memory and can only talk over TCP. All other files are shared, until a test mounts over them
//! ([`Hosts::on`]).
//!
//! Nothing has a name outside of the namespaces, so any number of these can be up at a time. They are
//! kept by processes that read from a pipe which the test holds: when it ends, in whatever way, the
//! pipe closes and everything on the hosts is killed.
//!
//! Needs `iproute2`, `util-linux` and `openmpi-bin`.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, Stdio};

/// Makes the bridge and the hosts, and kills what runs on them when stdin closes.
///
/// Each host prints its name and the process that keeps it, and closes stdout: the end of the output
/// says that all are up, or that one did not make it.
const CLUSTER: &str = r#"
set -e
exec 3<&0
ip link add wire type bridge
ip link set wire up
number=0
for name in "$@"; do
    number=$((number + 1))
    unshare --net --uts --mount --ipc sh -ec "$HOST" host "$name" "$number" $$ <&3 &
done
exec >/dev/null
cat

# What is in the user namespace and not in this network is on a host.
users=$(readlink /proc/self/ns/user | tr '[]' '??')
wire=$(readlink /proc/self/ns/net)
on_hosts() {
    for user in $(find /proc/[0-9]*/ns/user -lname "$users" 2>/dev/null); do
        net=$(readlink "${user%user}net") || continue
        [ "$net" = "$wire" ] || echo "$user" | cut -d/ -f3
    done
}
while left=$(on_hosts) && [ -n "$left" ]; do
    kill -KILL $left 2>/dev/null || true
done
"#;

/// One host: its name, its number, and the process in whose network the bridge is.
const HOST: &str = r#"
hostname "$1"
mount -t tmpfs none /dev/shm
printf '%s' "$ENTER" >/dev/shm/enter
chmod +x /dev/shm/enter
ip link set lo up
ip link add eth0 type veth peer name "port$2" netns "$3"
nsenter --net --target "$3" ip link set "port$2" master wire up
ip address add "10.213.7.$2/24" dev eth0
ip link set eth0 up
echo "$1" $$
exec cat >/dev/null
"#;

/// Stands in for ssh: `enter ,alpha=PID,beta=PID HOST COMMAND…`. As with ssh, the environment of the
/// caller does not come along.
const ENTER: &str = r#"#!/bin/sh
pid=${1#*,"$2"=}
shift 2
exec nsenter --net --uts --mount --ipc --target "${pid%%,*}" \
    env --ignore-environment PATH="$PATH" sh -c "$*"
"#;

/// Enters a host from outside of all of them: `PID PROGRAM ARGUMENT…`. The folder is looked up anew
/// inside, where something may be mounted over it. Only `exec`: the process stays the child that the
/// test started, so that signals reach the program.
const ON: &str = r#"
pid=$1
shift
exec nsenter --user --preserve-credentials --net --uts --mount --ipc --target "$pid" \
    env --chdir="$PWD" "$@"
"#;

pub(crate) struct Hosts {
    cluster: Child,
    /// Name, and the process that keeps the host's namespaces.
    hosts: Vec<(String, u32)>,
}

impl Hosts {
    /// Starts one host a name.
    #[track_caller]
    pub(crate) fn new(names: &[&str]) -> Self {
        let mut cluster = Command::new("unshare")
            .args(["--user", "--map-root-user", "--net", "--mount", "sh", "-c", CLUSTER, "cluster"])
            .args(names)
            .envs([("HOST", HOST), ("ENTER", ENTER)])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Ctrl-C in a terminal must end the test, not those who clean up after it.
            .process_group(0)
            .spawn()
            .expect("unshare, of util-linux");
        let mut up = String::new();
        let mut stdout = cluster.stdout.take().expect("a pipe was asked for");
        stdout.read_to_string(&mut up).expect("names and numbers");
        let pid = |name: &str| {
            let (_, pid) =
                up.lines().filter_map(|line| line.split_once(' ')).find(|up| up.0 == name)?;
            pid.parse().ok()
        };
        let hosts = names.iter().filter_map(|name| Some(((*name).to_owned(), pid(name)?)));
        let hosts = Self { hosts: hosts.collect(), cluster };
        assert_eq!(hosts.hosts.len(), names.len(), "hosts that came up: {up:?}");
        hosts
    }

    /// `mpirun` on the first host, over `slots` (`["alpha:2", "beta:2"]`), up to and without the
    /// program. Processes fill one host after the other; after `--map-by node` they go round.
    pub(crate) fn mpirun(&self, slots: &[&str]) -> Command {
        let agent: String = self.hosts.iter().map(|(name, pid)| format!(",{name}={pid}")).collect();
        let mut command = self.on(&self.hosts[0].0, "mpirun");
        command.args(MPIRUN).args(["--host", &slots.join(",")]);
        command.args(["--mca", "plm_rsh_agent", &format!("/dev/shm/enter {agent}")]);
        command
    }

    /// A program on one host, as root of it: it may mount file systems that no other host sees.
    pub(crate) fn on(&self, name: &str, program: &str) -> Command {
        let host = self.hosts.iter().find(|(host, _)| host == name);
        let (_, pid) = host.unwrap_or_else(|| panic!("no host is called {name}"));
        let mut command = Command::new("sh");
        command.args(["-c", ON, "on", &pid.to_string(), program]);
        command
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        drop(self.cluster.stdin.take());
        let _ = self.cluster.wait();
    }
}

/// Only TCP between hosts and memory within one, whatever else the machine has. Nothing is bound to
/// a core, and who waits for a message lets others run: tests start more processes than there are cores.
const MPIRUN: [&str; 16] = [
    "--allow-run-as-root",
    "--oversubscribe",
    "--bind-to",
    "none",
    "--mca",
    "pml",
    "ob1",
    "--mca",
    "btl",
    "self,vader,tcp",
    "--mca",
    "mpi_yield_when_idle",
    "1",
    "--mca",
    "orte_tmpdir_base",
    "/dev/shm",
];

/// The machine as it is, as one host.
pub(crate) mod single {
    use super::{Command, MPIRUN};

    /// Only `/dev/shm` is a new one, so that nothing stays in it or beside it if `mpirun` is killed,
    /// as it is when the thread that started it ends before it. Its ranks end when they miss it.
    const ALONE: &str = r#"
mount -t tmpfs none /dev/shm || exit
exec setpriv --pdeathsig KILL mpirun "$@"
"#;

    /// `mpirun` of `processes`, up to and without the program.
    pub(crate) fn mpirun(processes: usize) -> Command {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-c", ALONE, "mpirun"]);
        command.args(MPIRUN).args(["-n", &processes.to_string()]);
        command
    }
}

/// Runs a shell line on every rank; what they print, by rank, behind rank, host and ranks there.
#[track_caller]
fn printed(command: &mut Command, line: &str) -> Vec<String> {
    let head = "$OMPI_COMM_WORLD_RANK $(hostname) $OMPI_COMM_WORLD_LOCAL_SIZE";
    let line = format!("echo {head} $({line})");
    let output = command.args(["sh", "-c", &line]).output().expect("the command starts");
    let text = |bytes| String::from_utf8(bytes).expect("output in UTF-8");
    assert_eq!((output.status.code(), &*text(output.stderr)), (Some(0), ""));
    let mut lines: Vec<_> = text(output.stdout).lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

#[test]
fn ranks_fill_one_host_after_the_other_or_go_round() {
    let hosts = Hosts::new(&["alpha", "beta"]);
    let filled = printed(&mut hosts.mpirun(&["alpha:2", "beta:1"]), "");
    assert_eq!(filled, ["0 alpha 2", "1 alpha 2", "2 beta 1"]);
    let round = printed(hosts.mpirun(&["alpha:2", "beta:2"]).args(["--map-by", "node"]), "");
    assert_eq!(round, ["0 alpha 2", "1 beta 2", "2 alpha 2", "3 beta 2"]);
}

#[test]
fn a_host_has_its_own_memory_mounts_and_environment() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::create_dir(folder.path().join("data")).expect("a folder in it");
    std::fs::write(folder.path().join("data/sample"), "").expect("a file in that");
    let hosts = Hosts::new(&["alpha", "beta"]);
    let status = |command: &mut Command| command.current_dir(folder.path()).status();
    let made = status(hosts.on("alpha", "touch").arg("/dev/shm/here")).expect("touch");
    let mounted = status(hosts.on("beta", "mount").args(["-t", "tmpfs", "none", "data"]));
    assert!(made.success() && mounted.expect("mount").success());
    let mut mpirun = hosts.mpirun(&["alpha", "beta"]);
    mpirun.current_dir(folder.path()).env("MARK", "mark");
    let lines = printed(&mut mpirun, "ls data; ls /dev/shm | grep here; echo ${MARK-none}");
    assert_eq!(lines, ["0 alpha 1 sample here mark", "1 beta 1 none"]);
}

#[test]
fn nothing_outlives_the_hosts() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    let hosts = Hosts::new(&["alpha", "beta"]);
    let mut mpirun = hosts.mpirun(&["alpha", "beta"]);
    mpirun.current_dir(folder.path()).args(["sh", "-c", "exec >pipe; hostname; exec sleep 1000"]);
    let mut mpirun = mpirun.spawn().expect("the command starts");
    // The pipe ends when the last process that can write to it has ended.
    let mut lines = BufReader::new(File::open(&pipe).expect("the pipe")).lines();
    let mut up: Vec<_> = lines.by_ref().take(2).map(|line| line.expect("a name")).collect();
    up.sort();
    assert_eq!(up, ["alpha", "beta"]);
    drop(hosts);
    assert_eq!(lines.count(), 0);
    assert_eq!(mpirun.wait().expect("it was started").signal(), Some(9));
}

#[test]
fn one_machine_is_one_host() {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").expect("a name");
    let expected: Vec<_> = (0..3).map(|rank| format!("{rank} {} 3", name.trim())).collect();
    assert_eq!(printed(&mut single::mpirun(3), ""), expected);
}
