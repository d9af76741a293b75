//! What events share: every name, file and process once.

use std::collections::HashMap;

use crate::process::Process;

/// Names, files and processes of a trace, each known by its row.
#[derive(Clone, Debug, Default)]
pub struct Tables {
    names: Strings,
    files: Strings,
    /// The processes; rows are never removed.
    pub processes: Vec<Process>,
}

#[derive(Clone, Debug, Default)]
struct Strings {
    rows: Vec<String>,
    numbers: HashMap<String, u32>,
}

impl Strings {
    fn row(&mut self, text: &str) -> u32 {
        if let Some(row) = self.numbers.get(text) {
            return *row;
        }
        let row = u32::try_from(self.rows.len()).unwrap_or(u32::MAX);
        self.rows.push(text.to_owned());
        self.numbers.insert(text.to_owned(), row);
        row
    }
}

impl Strings {
    fn rename(&mut self, row: u32, text: &str) -> bool {
        let Some(known) = self.rows.get_mut(row as usize) else { return false };
        match self.numbers.get(text) {
            Some(other) => *other == row,
            None => {
                self.numbers.remove(known);
                text.clone_into(known);
                self.numbers.insert(text.to_owned(), row);
                true
            }
        }
    }
}

impl Tables {
    /// The row of a name; a new one if it was not seen before.
    pub fn name_row(&mut self, name: &str) -> u32 {
        self.names.row(name)
    }

    /// The row of a file; a new one if it was not seen before.
    pub fn file_row(&mut self, path: &str) -> u32 {
        self.files.row(path)
    }

    /// Gives a file that has a row a name, or another one. False, and nothing is changed, if another row has
    /// that name.
    pub fn name_file(&mut self, row: u32, path: &str) -> bool {
        self.files.rename(row, path)
    }

    /// The name of a row.
    pub fn name(&self, row: u32) -> &str {
        self.names.rows.get(row as usize).map_or("", String::as_str)
    }

    /// The path of a row.
    pub fn file(&self, row: u32) -> &str {
        self.files.rows.get(row as usize).map_or("", String::as_str)
    }

    /// All names, in the order of their rows.
    pub fn names(&self) -> &[String] {
        &self.names.rows
    }

    /// All files, in the order of their rows.
    pub fn files(&self) -> &[String] {
        &self.files.rows
    }

    /// The row of a new process.
    pub fn add_process(&mut self, process: Process) -> u32 {
        self.processes.push(process);
        u32::try_from(self.processes.len() - 1).unwrap_or(u32::MAX)
    }
}
