//! Where results go: stdout, or a file that gets its name when it is complete.

use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use crate::error::SqlError;

/// A place to write to, which knows why that stopped.
#[derive(Debug)]
pub(crate) struct Outlet {
    sink: Sink,
    error: Option<io::Error>,
}

#[derive(Debug)]
enum Sink {
    Stdout(BufWriter<io::Stdout>),
    File { file: BufWriter<File>, part: PathBuf, path: PathBuf },
}

impl Outlet {
    pub(crate) fn stdout() -> Self {
        Self { sink: Sink::Stdout(BufWriter::new(io::stdout())), error: None }
    }

    /// A file beside the one that it is to become.
    pub(crate) fn file(path: &Path) -> Result<Self, SqlError> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let part = path.with_file_name(format!(".{name}.{}", std::process::id()));
        let error = |source| SqlError::Write { path: path.to_owned(), source };
        let file = BufWriter::new(File::create(&part).map_err(error)?);
        Ok(Self { sink: Sink::File { file, part, path: path.to_owned() }, error: None })
    }

    /// Whether the reader went away: it has all that it wanted.
    pub(crate) fn is_deserted(&self) -> bool {
        self.error.as_ref().is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
    }

    /// Why nothing more could be written, if so.
    pub(crate) fn trouble(&mut self) -> Option<SqlError> {
        let path = self.path();
        self.error.take().map(|source| SqlError::Write { path, source })
    }

    /// Everything was written.
    pub(crate) fn finish(mut self) -> Result<(), SqlError> {
        if self.flush().is_err() && self.is_deserted() {
            return Ok(());
        }
        if let Some(error) = self.trouble() {
            return Err(error);
        }
        if let Sink::File { part, path, .. } = &self.sink {
            fs::rename(part, path)
                .map_err(|source| SqlError::Write { path: path.clone(), source })?;
        }
        Ok(())
    }

    fn path(&self) -> PathBuf {
        match &self.sink {
            Sink::Stdout(_) => "standard output".into(),
            Sink::File { path, .. } => path.clone(),
        }
    }

    fn note<T>(&mut self, result: io::Result<T>) -> io::Result<T> {
        result.map_err(|error| {
            let kind = error.kind();
            self.error.get_or_insert(error);
            kind.into()
        })
    }
}

impl Write for Outlet {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let result = match &mut self.sink {
            Sink::Stdout(sink) => sink.write(bytes),
            Sink::File { file, .. } => file.write(bytes),
        };
        self.note(result)
    }

    fn flush(&mut self) -> io::Result<()> {
        let result = match &mut self.sink {
            Sink::Stdout(sink) => sink.flush(),
            Sink::File { file, .. } => file.flush(),
        };
        self.note(result)
    }
}

impl Drop for Outlet {
    /// What was not finished leaves nothing behind; what was is gone from here already.
    fn drop(&mut self) {
        if let Sink::File { part, .. } = &self.sink {
            let _ = fs::remove_file(part);
        }
    }
}
