//! The traced program: a child with its own standard streams, to which signals are passed on.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal};
use signal_hook::consts;

use crate::error::TracerError;

/// Signals that end or steer programs. The program gets them; this process stays until it is gone.
const PASSED_ON: [(i32, Signal); 6] = [
    (consts::SIGINT, Signal::INT),
    (consts::SIGTERM, Signal::TERM),
    (consts::SIGHUP, Signal::HUP),
    (consts::SIGQUIT, Signal::QUIT),
    (consts::SIGUSR1, Signal::USR1),
    (consts::SIGUSR2, Signal::USR2),
];

#[derive(Debug)]
pub(crate) struct Program {
    child: Child,
    signals: Vec<(Signal, Arc<AtomicBool>)>,
}

impl Program {
    pub(crate) fn start(
        name: &OsStr,
        arguments: &[OsString],
        variables: &[(&str, OsString)],
    ) -> Result<Self, TracerError> {
        let ignored = ignored_signals();
        let signals = PASSED_ON
            .into_iter()
            // What is ignored here (nohup) is ignored in the program too, and stays so.
            .filter(|(number, _)| ignored & (1 << (number - 1)) == 0)
            .map(|(number, signal)| {
                let flag = Arc::new(AtomicBool::new(false));
                signal_hook::flag::register(number, Arc::clone(&flag))?;
                Ok((signal, flag))
            })
            .collect::<io::Result<_>>()
            .map_err(TracerError::Signals)?;
        let child = Command::new(name)
            .args(arguments)
            .envs(variables.iter().map(|(key, value)| (key, value)))
            .spawn()
            .map_err(|source| TracerError::Start { program: name.into(), source })?;
        Ok(Self { child, signals })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits for its end, but no longer than `most`, which is less than a second.
    pub(crate) fn wait(&mut self, most: Duration) -> io::Result<Option<ExitStatus>> {
        self.pass_signals_on();
        let pid = Pid::from_child(&self.child);
        if let Ok(handle) = rustix::process::pidfd_open(pid, PidfdFlags::empty()) {
            let mut handles = [PollFd::new(&handle, PollFlags::IN)];
            let most = Timespec { tv_sec: 0, tv_nsec: most.subsec_nanos().into() };
            // A signal ends the wait early, which is just as good.
            let _ = poll(&mut handles, Some(&most));
        } else {
            std::thread::sleep(most);
        }
        self.child.try_wait()
    }

    /// Whether a signal has come that ends programs.
    pub(crate) fn is_interrupted(&self) -> bool {
        let ends = [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT];
        let mut signals = self.signals.iter().filter(|(signal, _)| ends.contains(signal));
        signals.any(|(_, flag)| flag.load(Ordering::Relaxed))
    }

    /// The terminal sends its own signals to the whole group, so the program already has those.
    fn pass_signals_on(&self) {
        let is_sent_by_terminal = |signal: Signal| {
            (signal == Signal::INT || signal == Signal::QUIT) && is_in_foreground()
        };
        for (signal, flag) in &self.signals {
            if flag.swap(false, Ordering::Relaxed) && !is_sent_by_terminal(*signal) {
                // An error means that the program has just ended.
                let _ = rustix::process::kill_process(Pid::from_child(&self.child), *signal);
            }
        }
    }
}

/// Whether the terminal's foreground group is that of this process and its children.
fn is_in_foreground() -> bool {
    fs::File::open("/dev/tty").is_ok_and(|terminal| {
        rustix::termios::tcgetpgrp(terminal).is_ok_and(|group| group == rustix::process::getpgrp())
    })
}

/// A bit for each signal that this process ignores.
fn ignored_signals() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// The file of a program, searched for in `PATH` as the system does.
pub(crate) fn file_of(program: &OsStr) -> PathBuf {
    let named = Path::new(program);
    if named.components().count() > 1 {
        return named.to_owned();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places = std::env::split_paths(&path).map(|folder| folder.join(named));
    places.find(|place| place.is_file()).unwrap_or_else(|| named.to_owned())
}
