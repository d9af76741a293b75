//! `feedline sql`: starts `feedline-sql`, as git starts its sub-commands.

use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;

use crate::args::SqlArgs;
use crate::failure;

/// The program that knows SQL.
const PROGRAM: &str = "feedline-sql";

/// Becomes `feedline-sql`.
pub(crate) fn main(args: &SqlArgs) -> anyhow::Result<u8> {
    let Some(program) = find() else {
        return Err(failure::hinted(
            format!("{PROGRAM} is neither next to this program nor in PATH"),
            "build it separately, because DataFusion is large: make sql",
        ));
    };
    let error = Command::new(&program).args(&args.words).exec();
    Err(anyhow::Error::new(error).context(format!("cannot start {}", program.display())))
}

fn find() -> Option<PathBuf> {
    let own = std::env::current_exe().ok();
    let beside = own.as_deref().and_then(|path| path.parent()).map(|folder| folder.join(PROGRAM));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let in_path = std::env::split_paths(&path).map(|folder| folder.join(PROGRAM));
    beside.into_iter().chain(in_path).find(|path| path.is_file())
}
