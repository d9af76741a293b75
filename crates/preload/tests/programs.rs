//! Programs that people use do the same with and without the library.

mod support;

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use support::{Folder, Process, compile, library, read, run, succeed};

/// Files and folders below one, by their paths: modes, and what is in them.
fn tree(folder: &Path, leave_out: &[&str]) -> BTreeMap<String, (u32, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(folder).unwrap().to_string_lossy().into_owned();
            if leave_out.iter().any(|left_out| name.starts_with(left_out)) {
                continue;
            }
            let facts = path.symlink_metadata().unwrap();
            let mut bytes = Vec::new();
            if facts.is_file() {
                bytes = std::fs::read(&path).unwrap();
            } else if facts.is_dir() {
                folders.push(path);
            }
            found.insert(name, (facts.permissions().mode(), bytes));
        }
    }
    found
}

struct Case<'a> {
    /// What bash runs, in a folder of its own.
    script: &'a str,
    /// Paths that differ from run to run, by how they begin.
    leave_out: &'a [&'a str],
    /// Debian packages that it needs.
    packages: &'a str,
}

impl Case<'_> {
    fn run(&self, folder: &Folder, is_traced: bool) -> Output {
        let work = folder.make("work");
        std::fs::set_permissions(&work, PermissionsExt::from_mode(0o777)).unwrap();
        let mut command = Command::new("bash");
        command.args(["-c", self.script]).current_dir(&work);
        command.env("HOME", &work).env("LC_ALL", "C.UTF-8");
        if is_traced {
            // Where other users can read it too.
            let copy = folder.join("libfeedline_preload.so");
            std::fs::copy(library(), &copy).unwrap();
            command.env("LD_PRELOAD", copy).env("FEEDLINE_TRACE", folder.join("trace"));
        }
        run(&mut command)
    }

    /// Runs it both ways and gives what was recorded.
    fn check(&self) -> Vec<Process> {
        let folder = Folder::new();
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o777)).unwrap();
        let trace = folder.make("trace");
        std::fs::set_permissions(&trace, PermissionsExt::from_mode(0o777)).unwrap();
        let segments = folder.make("trace/segments");
        std::fs::set_permissions(&segments, PermissionsExt::from_mode(0o777)).unwrap();
        let plain = self.run(&folder, false);
        assert_ne!(
            plain.status.code(),
            Some(127),
            "{}\ninstall it with: apt-get install -y {}",
            String::from_utf8_lossy(&plain.stderr),
            self.packages
        );
        std::fs::rename(folder.join("work"), folder.join("plain")).unwrap();
        let watched = self.run(&folder, true);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert_eq!(text(&plain.stdout), text(&watched.stdout));
        assert_eq!(text(&plain.stderr), text(&watched.stderr));
        assert_eq!(plain.status, watched.status);
        let before = tree(&folder.join("plain"), self.leave_out);
        let after = tree(&folder.join("work"), self.leave_out);
        assert_eq!(before.keys().collect::<Vec<_>>(), after.keys().collect::<Vec<_>>());
        for (name, facts) in &before {
            assert!(*facts == after[name], "{name} differs");
        }
        let processes = read(&trace);
        for process in &processes {
            assert_eq!((process.facts.dropped, process.holes), (0, 0), "{:?}", process.facts);
        }
        processes
    }

    /// The same for a script that must succeed, and write something.
    fn succeed(&self) -> Vec<Process> {
        let folder = Folder::new();
        let plain = self.run(&folder, false);
        let text = String::from_utf8_lossy(&plain.stderr).into_owned();
        assert!(plain.status.success(), "{text}\nneeds: apt-get install -y {}", self.packages);
        assert!(!plain.stdout.is_empty());
        self.check()
    }
}

/// Whether a program of this name was recorded.
fn has(processes: &[Process], program: &str) -> bool {
    let is_it = |path: &str| path.rsplit('/').next().is_some_and(|name| name.starts_with(program));
    processes.iter().any(|process| is_it(&process.facts.program))
}

#[test]
fn shell_pipelines() {
    let script = r#"
        printf '%s\n' c a b | sort | tee sorted | wc -l
        for i in 1 2 3; do (echo $i; exec >/dev/null; echo no); done
        tr a-z A-Z < sorted > upper; cat upper sorted | head -n 4 | tail -n 2
        exec 3>third; echo x >&3; exec 3>&-
        { echo out; echo err >&2; } 2>errors
        diff <(echo a) <(echo b)
        cat <<< "here" - < /dev/null
        false | true; echo "${PIPESTATUS[@]}"
        yes | head -n 1000 | cksum
        find . -type f | sort | xargs ls -1
        (sleep 60 & kill -9 $!; wait $!; echo $?) 2>/dev/null
        no-such-program; echo $?
        kill -TERM $$
    "#;
    let processes = Case { script, leave_out: &[], packages: "coreutils findutils" }.check();
    for program in ["bash", "sort", "tee", "head", "xargs"] {
        assert!(has(&processes, program), "{program}");
    }
}

#[test]
fn git() {
    let script = r#"
        export GIT_AUTHOR_DATE='2024-01-01T00:00:00Z' GIT_COMMITTER_DATE='2024-01-01T00:00:00Z'
        export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=A GIT_COMMITTER_EMAIL=a@b
        export GIT_CONFIG_NOSYSTEM=1 GIT_PAGER=cat
        set -e
        git init -q -b main r; cd r
        for i in $(seq 200); do echo "file $i" > f$i; done
        git add .; git commit -q -m first
        git mv f1 g1; echo more >> f2; git commit -q -a -m second
        git log --stat --format='%H %s'; git repack -q -a -d; git fsck --strict; git gc -q
        git clone -q . ../c; git -C ../c rev-parse HEAD; git status --short
    "#;
    // The index holds times and numbers of files.
    let leave_out =
        ["r/.git/index", "c/.git/index", "c/.git/logs", "r/.git/objects/info", "c/.git/objects"];
    let processes = Case { script, leave_out: &leave_out, packages: "git" }.succeed();
    assert!(has(&processes, "git"));
}

#[test]
fn tar() {
    let script = r#"
        set -e
        mkdir -p from/a/b; for i in $(seq 100); do seq $i > from/a/b/$i; done
        ln -s a/b/1 from/link; ln from/a/b/2 from/hard; truncate -s 1M from/sparse
        tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -S -cf t.tar from
        mkdir to; tar -xf t.tar -C to; diff -r from to/from; cmp from/sparse to/from/sparse
        tar -czf - from | tar -tzf - | sort | md5sum; cksum t.tar
    "#;
    let processes = Case { script, leave_out: &[], packages: "tar" }.succeed();
    assert!(has(&processes, "tar"));
}

#[test]
fn sqlite() {
    let script = r#"
        for mode in wal delete memory; do
        sqlite3 $mode.db "pragma journal_mode=$mode; create table t(i integer primary key, s text);
            with recursive n(i) as (select 1 union all select i+1 from n where i<5000)
            insert into t select i, hex(i*i) from n; create index x on t(s);
            begin; delete from t where i%3=0; commit; vacuum; pragma integrity_check;
            pragma mmap_size=1000000; select count(*), sum(i), max(s) from t;" || exit
        done
    "#;
    let processes = Case { script, leave_out: &[], packages: "sqlite3" }.succeed();
    let sqlite = processes.iter().filter(|process| process.facts.program.contains("sqlite3"));
    let databases = |process: &Process| {
        process.calls.iter().any(|call| call.path.ends_with(".db") && call.name().contains("write"))
    };
    assert_eq!(sqlite.filter(|process| databases(process)).count(), 3);
}

#[test]
fn python_with_processes_of_every_kind() {
    let script = r#"
cat > work.py <<'PY'
import multiprocessing as mp, os, subprocess, sys, tempfile, threading
def work(i):
    with tempfile.TemporaryFile() as f:
        f.write(b'x' * i); f.seek(0); return len(f.read())
if __name__ == '__main__':
    for kind in 'fork', 'spawn', 'forkserver':
        with mp.get_context(kind).Pool(3) as pool:
            print(kind, sum(pool.map(work, range(200))))
    print(subprocess.run(['cat'], input=b'in', capture_output=True))
    print(subprocess.run([sys.executable, '-c', 'raise SystemExit(3)']).returncode)
    threads = [threading.Thread(target=work, args=(i,)) for i in range(50)]
    [t.start() for t in threads]; [t.join() for t in threads]
    pid = os.fork()
    if pid == 0: os._exit(4)
    print(os.waitpid(pid, 0)[1])
    print(open('/no/such').read())
PY
PYTHONDONTWRITEBYTECODE=1 python3 work.py
"#;
    let leave_out = [".cache", ".python_history"];
    let processes = Case { script, leave_out: &leave_out, packages: "python3" }.check();
    let forked = processes.iter().filter(|process| process.facts.parent_started.is_some()).count();
    assert!(has(&processes, "python3") && forked >= 7, "{forked}");
}

#[test]
fn node() {
    let script = r#"
cat > work.js <<'JS'
const fs = require('fs'), { execFileSync } = require('child_process');
const { Worker, isMainThread } = require('worker_threads');
if (!isMainThread) { fs.writeFileSync('worker', 'w'.repeat(1000)); return; }
(async () => {
  await Promise.all([...Array(100).keys()].map(async i => {
    await fs.promises.writeFile('f' + i, 'x'.repeat(i));
    const s = await fs.promises.readFile('f' + i); if (s.length !== i) throw i;
  }));
  console.log(fs.readdirSync('.').filter(n => n[0] === 'f').length);
  await new Promise(r => fs.createReadStream('work.js').pipe(fs.createWriteStream('copy')).on('close', r));
  console.log(execFileSync('cat', ['copy']).length, fs.statSync('copy').size);
  await new Promise(r => new Worker(__filename).on('exit', r));
  console.log(fs.readFileSync('worker').length);
  try { fs.openSync('/no/such') } catch (e) { console.log(e.code) }
  process.exit(6);
})();
JS
node work.js"#;
    let processes = Case { script, leave_out: &[], packages: "nodejs" }.check();
    assert!(has(&processes, "node"));
}

#[test]
fn postgresql() {
    let script = r#"
        PATH=$PATH:$(echo /usr/lib/postgresql/*/bin | tr ' ' :)
        as() { if [[ $(id -u) == 0 ]]; then runuser -u postgres -- env PATH="$PATH" "$@"; else "$@"; fi; }
        as initdb -D $PWD/pg -A trust --locale=C.UTF-8 --no-sync | grep -v '^selecting' || exit 127
        printf '%s;\n' "create table t as select generate_series(1, 50000) as i" \
            "select count(*), sum(i) from t" "vacuum t" "checkpoint" "drop table t" |
            as postgres --single -c log_min_messages=panic -c log_checkpoints=off -D $PWD/pg postgres
    "#;
    let processes = Case { script, leave_out: &["pg"], packages: "postgresql" }.succeed();
    assert!(has(&processes, "initdb") && has(&processes, "postgres"));
}

#[test]
fn perl_and_cargo() {
    let script = r#"
        perl -e 'open F, ">", "f"; print F "x" x 100000; close F; open F, "f"; print -s F, "\n"; print length <F>, "\n"; system "echo child"; print `cat f | wc -c`; exec "false"'
        echo $?; cargo --version
    "#;
    let leave_out = [".cargo", ".rustup"];
    let processes = Case { script, leave_out: &leave_out, packages: "perl" }.check();
    assert!(has(&processes, "perl"));
}

#[test]
fn static_programs_are_left_alone() {
    let folder = Folder::new();
    let program = compile("survive.c", &folder, &["-static"]);
    let run = |command: &mut Command| succeed(command.arg("cancel").arg(folder.path()));
    let plain = run(&mut Command::new(&program));
    let trace = folder.join("trace");
    let watched = run(&mut support::traced(&program, &trace));
    assert_eq!((plain.stdout, plain.stderr), (watched.stdout, watched.stderr));
    assert!(!trace.exists());
}
