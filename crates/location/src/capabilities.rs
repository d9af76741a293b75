//! What a store can do beyond reading and writing objects.

/// What a store can do. Of a [`Scheme`](crate::Scheme) these are the most that any store of it can;
/// an open store says what it does with its own settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// Objects may be held in the page cache of this machine, which can be inspected and dropped.
    pub page_cache: bool,
    /// Reads and writes can bypass the page cache (`O_DIRECT`).
    pub direct: bool,
    /// Objects can be mapped into memory.
    pub mapped: bool,
    /// Reads can go through io_uring.
    pub ring: bool,
    /// Many reads can be in flight from one thread.
    pub queue: bool,
    /// A folder can replace another in one step.
    pub folder_renames: bool,
    /// The protocol of its requests, if they leave this machine.
    pub network: Option<&'static str>,
}

impl Capabilities {
    /// Objects only: none of the capabilities above.
    pub const NONE: Capabilities = Capabilities {
        page_cache: false,
        direct: false,
        mapped: false,
        ring: false,
        queue: false,
        folder_renames: false,
        network: None,
    };
}
