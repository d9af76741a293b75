//! Files that are not published yet: hidden under a name that tells whose they are.
//!
//! The name is `.NAME.partial-HOST-PID-NUMBER`. HOST is the machine's name and the number of the
//! process table (the PID namespace) that PID belongs to: containers on one machine may share its
//! name, and each counts its processes from 1.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::open_file::failed;
use crate::{Durability, Op, Result, os};

const MARK: &str = ".partial-";
const ASIDE: &str = ".replaced";
/// Longest name Linux file systems take.
const NAME_BYTES_MAX: usize = 255;

/// Whether that is the name of an unpublished file, in this or the former spelling without a host.
pub(crate) fn is_partial(name: &str) -> bool {
    (name.starts_with('.') && name.contains(MARK)) || aside_of(name).is_some()
}

/// Where a folder waits that is being replaced step by step.
fn aside(to: &Path) -> PathBuf {
    let name = to.file_name().unwrap_or_default().to_string_lossy();
    to.with_file_name(format!(".{name}{ASIDE}"))
}

/// The name of the folder that waits under `name`.
fn aside_of(name: &str) -> Option<&str> {
    name.strip_prefix('.')?.strip_suffix(ASIDE)
}

/// A name under which this process may prepare what shall be called `name`: no listing shows it, and
/// [`Store::remove_stale`](crate::Store::remove_stale) knows whose it was.
pub fn partial_name(name: &str) -> String {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let tail = format!("{MARK}{}-{}-{number}", this_host(), std::process::id());
    // The tail alone makes the name unique; the rest is for people.
    let room = name.floor_char_boundary(NAME_BYTES_MAX.saturating_sub(1 + tail.len()));
    format!(".{}{tail}", &name[..room])
}

/// Writes a local file through `fill`. It appears under its name only when it is complete.
pub fn write_file(
    path: &Path,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let partial = path.with_file_name(partial_name(&name));
    let written = File::create(&partial).and_then(|file| {
        let mut file = BufWriter::new(file);
        fill(&mut file)?;
        file.flush()?;
        fs::rename(&partial, path)
    });
    if written.is_err() {
        // Nothing can be done about one that stays; its name is hidden and says what it is.
        let _ = fs::remove_file(&partial);
    }
    written
}

/// Puts the folder `from` in the place of `to`; what was there is under `from` afterwards.
///
/// File systems that cannot exchange two names (NFS, some in user space) get there in three steps;
/// if the process is killed between them, [`remove_stale`] puts the old folder back.
pub(crate) fn replace_folder(from: &Path, to: &Path) -> io::Result<()> {
    match os::exchange(from, to) {
        Err(err) if err.kind() == io::ErrorKind::NotFound => fs::rename(from, to),
        Err(err) if matches!(err.raw_os_error(), Some(libc::EINVAL | libc::ENOSYS)) => {
            replace_in_steps(from, to)
        }
        exchanged => exchanged,
    }
}

fn replace_in_steps(from: &Path, to: &Path) -> io::Result<()> {
    let aside = aside(to);
    match fs::rename(to, &aside) {
        Err(err) if err.kind() == io::ErrorKind::NotFound => fs::rename(from, to),
        moved => moved.and_then(|()| fs::rename(from, to)).and_then(|()| fs::rename(&aside, from)),
    }
}

/// Puts back a folder that was set aside and whose place nothing has taken; removes it otherwise.
fn settle_aside(folder: &Path, name: &str, waiting: &Path) -> io::Result<()> {
    let place = folder.join(name);
    match place.try_exists()? {
        false => fs::rename(waiting, place),
        true => fs::remove_dir_all(waiting),
    }
}

/// Removes the unpublished files and folders of a folder whose process ran here and is gone; how
/// many.
pub fn remove_stale(folder: &Path) -> io::Result<u64> {
    let mut removed = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if let Some(name) = entry.file_name().to_str().and_then(aside_of) {
            settle_aside(folder, name, &entry.path())?;
            continue;
        }
        if !entry.file_name().to_str().is_some_and(is_stale) {
            continue;
        }
        let gone = match entry.file_type()?.is_dir() {
            true => fs::remove_dir_all(entry.path()),
            false => fs::remove_file(entry.path()),
        };
        match gone {
            Ok(()) => removed += 1,
            // Another process cleans up too.
            Err(err) if err.kind() == io::ErrorKind::NotFound => {}
            Err(err) => return Err(err),
        }
    }
    Ok(removed)
}

fn is_stale(name: &str) -> bool {
    owner(name).is_some_and(|(host, pid)| host == this_host() && !writes(pid))
}

/// Whether the process can still write: one that has ended and that was not waited for (a zombie)
/// is in the table of processes, and cannot.
fn writes(pid: u32) -> bool {
    let state = fs::read_to_string(format!("/proc/{pid}/stat"));
    // The name in front of the state is in brackets and may contain anything.
    let zombie = state.is_ok_and(|text| {
        text.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with(['Z', 'X']))
    });
    os::is_alive(pid) && !zombie
}

/// The host and the process that an unpublished file's name tells.
fn owner(name: &str) -> Option<(&str, u32)> {
    let (_, tail) = name.strip_prefix('.')?.rsplit_once(MARK)?;
    let (owner, number) = tail.rsplit_once('-')?;
    number.parse::<u64>().ok()?;
    // A host's name may have dashes itself.
    let (host, pid) = owner.rsplit_once('-')?;
    Some((host, pid.parse().ok()?))
}

/// This machine and process table, in characters that every file system takes.
fn this_host() -> &'static str {
    static HOST: OnceLock<String> = OnceLock::new();
    HOST.get_or_init(|| {
        let table = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
        clean_host(&feedline_recorder::host(), &table.to_string_lossy())
    })
}

fn clean_host(name: &str, table: &str) -> String {
    let keep = |c: char| if c.is_ascii_alphanumeric() || "-.".contains(c) { c } else { '-' };
    let digits = table.chars().filter(char::is_ascii_digit);
    name.chars().map(keep).chain(['.']).chain(digits).collect()
}

/// A file under its temporary name, which is removed unless it is published.
pub(crate) struct Partial {
    pub(crate) path: PathBuf,
    temporary: PathBuf,
    published: bool,
}

impl Partial {
    pub(crate) fn new(path: PathBuf) -> Partial {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let temporary = path.with_file_name(partial_name(&name));
        Partial { path, temporary, published: false }
    }

    pub(crate) fn temporary(&self) -> &Path {
        &self.temporary
    }

    pub(crate) fn publish(mut self, file: &File, durability: Durability) -> Result<()> {
        let mut publish = || {
            if durability == Durability::Fsync {
                file.sync_all()?;
            }
            fs::rename(&self.temporary, &self.path)?;
            self.published = true;
            match (durability, self.path.parent()) {
                (Durability::Fsync, Some(folder)) => File::open(folder)?.sync_all(),
                _ => Ok(()),
            }
        };
        publish().map_err(|source| failed(Op::Publish, &self.path, source))
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if self.published {
            return;
        }
        // If this fails, a hidden file stays that no listing shows; there is no caller to tell.
        let _ = fs::remove_file(&self.temporary);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_has_ended_writes_no_more_even_as_a_zombie() {
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        assert!(writes(child.id()));
        child.kill().unwrap();
        let tries = (0..10_000).take_while(|_| {
            std::thread::yield_now();
            writes(child.id())
        });
        assert!(tries.count() < 10_000, "a killed child still counts as writing");
        child.wait().unwrap();
    }

    #[test]
    fn a_folder_that_is_replaced_in_steps_is_never_lost() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let make = |name: &str, file: &str| {
            fs::create_dir(at(name)).unwrap();
            fs::write(at(name).join(file), file).unwrap();
        };
        make("ck", "old");
        make("draft", "new");
        replace_in_steps(&at("draft"), &at("ck")).unwrap();
        assert!(at("ck/new").exists() && at("draft/old").exists());
        // Killed after the first step: the old one is put back.
        fs::rename(at("ck"), aside(&at("ck"))).unwrap();
        assert!(is_partial(".ck.replaced"));
        assert_eq!(remove_stale(folder.path()).unwrap(), 0);
        assert!(at("ck/new").exists());
        // Killed after the second: the new one has its place, and the old one goes.
        make(".ck.replaced", "older");
        remove_stale(folder.path()).unwrap();
        assert!(at("ck/new").exists() && !at(".ck.replaced").exists());
    }

    #[test]
    fn a_name_tells_its_owner() {
        let cases = [
            (
                ".img.npz.partial-node-7.site.4026531836-4711-0",
                Some(("node-7.site.4026531836", 4711)),
            ),
            (".a.partial-b.partial-h.1-2-3", Some(("h.1", 2))),
            // Without a host: it is unknown where that process ran.
            (".img.npz.partial-99-0", None),
            (".img.npz.partial-h-x-0", None),
            ("img.npz.partial-h-1-0", None),
            (".partial", None),
        ];
        for (name, expected) in cases {
            assert_eq!(owner(name), expected, "{name}");
        }
    }

    #[test]
    fn a_host_is_spelt_in_plain_characters() {
        assert_eq!(clean_host("node-7.site", "pid:[42]"), "node-7.site.42");
        assert_eq!(clean_host("a/b c\u{e4}_", ""), "a-b-c--.");
    }

    #[test]
    fn a_partial_name_is_our_own_and_not_too_long() {
        for len in [1, 200, 255] {
            let partial = Partial::new(Path::new("/folder").join("\u{e4}".repeat(len)));
            let name = partial.temporary().file_name().unwrap().to_str().unwrap();
            assert!(is_partial(name) && name.len() <= NAME_BYTES_MAX, "{name}");
            assert_eq!(owner(name), Some((this_host(), std::process::id())));
            assert!(!is_stale(name), "we are alive");
        }
    }
}
