//! Programs that forbid themselves what recording needs, and programs that become daemons.

mod support;

use std::process::Command;

use feedline_recorder::{DropReason, Ending};
use support::{Folder, compile, read, succeed, traced};

fn prepare() -> Folder {
    let folder = Folder::new();
    compile("sandbox.c", &folder, &[]);
    folder
}

fn log(folder: &Folder) -> String {
    std::fs::read_to_string(folder.join("log")).unwrap()
}

#[test]
fn programs_that_lock_themselves_in_are_not_killed_for_it() {
    for how in ["filter", "raw", "strict", "counter"] {
        let folder = prepare();
        succeed(Command::new(folder.join("sandbox")).arg(how).arg(folder.path()));
        let plain = log(&folder);
        succeed(traced(folder.join("sandbox"), &folder.join("trace")).arg(how).arg(folder.path()));
        assert_eq!(log(&folder), plain, "{how}");
        let processes = read(&folder.join("trace"));
        let [process] = &processes[..] else { panic!("{how}: {} processes", processes.len()) };
        assert_eq!(process.facts.trouble, DropReason::Sandbox, "{how}");
        let writes: Vec<_> = process.named("write").iter().map(|call| call.record.size).collect();
        assert_eq!(writes, [7], "{how}: what came before is there");
    }
}

#[test]
fn daemons_are_processes_of_their_own() {
    let folder = prepare();
    succeed(traced(folder.join("sandbox"), &folder.join("trace")).arg("daemon").arg(folder.path()));
    let is_done = || log(&folder).len() == 7 + 6 * 10_000;
    for _ in 0..10_000 {
        if is_done() {
            break;
        }
        std::thread::yield_now();
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    assert!(is_done());
    let mut processes = read(&folder.join("trace"));
    processes.sort_by_key(|process| process.facts.started);
    let [parent, daemon] = &processes[..] else { panic!("{} processes", processes.len()) };
    assert_eq!(parent.facts.ending, Ending::Exit);
    assert_eq!(daemon.facts.parent_started, Some(parent.facts.started));
    assert_eq!((parent.named("write").len(), daemon.named("write").len()), (1, 10_000));
    let path = folder.join("log");
    assert!(daemon.named("write").iter().all(|call| call.path == path.to_str().unwrap()));
}
