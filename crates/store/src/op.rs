//! Kinds of storage operations, as counters and errors name them.

/// A kind of storage operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Op {
    /// Opening an object for reading.
    Open,
    /// Asking for a size.
    Stat,
    /// Reading bytes of an open object.
    Read,
    /// Starting an upload, which stays invisible until [`Op::Publish`].
    Create,
    /// Writing bytes of an upload.
    Write,
    /// Making an upload visible under its key.
    Publish,
    /// Listing the entries of a folder.
    List,
    /// Making a folder and its missing parents.
    MakeFolder,
    /// Removing an object or an empty folder.
    Remove,
    /// Querying free space or the page cache, or evicting from it.
    Inspect,
}

impl Op {
    /// All kinds, in the order of the variants.
    pub const ALL: [Op; 10] = [
        Op::Open,
        Op::Stat,
        Op::Read,
        Op::Create,
        Op::Write,
        Op::Publish,
        Op::List,
        Op::MakeFolder,
        Op::Remove,
        Op::Inspect,
    ];

    /// Its name in results.
    pub fn name(self) -> &'static str {
        match self {
            Op::Open => "open",
            Op::Stat => "stat",
            Op::Read => "read",
            Op::Create => "create",
            Op::Write => "write",
            Op::Publish => "publish",
            Op::List => "list",
            Op::MakeFolder => "make folder",
            Op::Remove => "remove",
            Op::Inspect => "inspect",
        }
    }
}

impl std::fmt::Display for Op {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
