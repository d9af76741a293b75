//! The processes of a trace.

/// How a process ended, as far as the trace knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum End {
    /// It was running when the trace ended, or the trace does not say.
    #[default]
    Unknown,
    /// By itself, with this status.
    Exited(i32),
    /// It became another program, which has a row of its own.
    Became,
    /// It is gone and never said so: killed by a signal.
    Killed,
}

/// A process: one program in one process. A process that becomes another program by `exec` has two rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// Name of the machine.
    pub host: String,
    /// Process id, as the kernel reported it.
    pub pid: u32,
    /// The number of its parent.
    pub parent_pid: Option<u32>,
    /// Row of the process that forked it or became it, if that is in the trace.
    pub parent: Option<u32>,
    /// Its rank in the job.
    pub rank: Option<u32>,
    /// Path of the executable.
    pub program: String,
    /// The command line, argument by argument.
    pub arguments: Vec<String>,
    /// The current folder at the start.
    pub folder: String,
    /// A name that the program or its framework gave it.
    pub name: Option<String>,
    /// When it began, in nanoseconds since 1970.
    pub start_ns: i64,
    /// When it ended, in nanoseconds since 1970; `None` while it runs or if unknown.
    pub end_ns: Option<i64>,
    /// Whether it exited, was replaced or was killed.
    pub end: End,
    /// Events that were lost.
    pub dropped: u64,
    /// Why, if any were; for a process that was not traced, why not.
    pub trouble: Option<String>,
    /// Calls that the user's filters left out.
    pub filtered: u64,
    /// Calls that sampling left out.
    pub skipped: u64,
    /// Whether it was traced. A statically linked program is known only by its parent's call.
    pub is_traced: bool,
}

impl Process {
    /// What people call it: rank, program, host and number.
    pub(crate) fn title(&self) -> String {
        let program = self.name.clone().unwrap_or_else(|| {
            let words = self.arguments.iter().map(|word| word.rsplit('/').next().unwrap_or(word));
            let command = words.take(3).collect::<Vec<_>>().join(" ");
            if command.is_empty() { self.program.clone() } else { command }
        });
        let rank = self.rank.map(|rank| format!("rank {rank}"));
        let place = format!("[{} {}]", self.host, self.pid);
        let parts = [rank, Some(program).filter(|text| !text.is_empty()), Some(place)];
        parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }
}
