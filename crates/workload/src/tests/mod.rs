//! Tests of the whole way from text to checked workload.

mod checks;
mod presets;
mod quirks;
mod saving;
mod schema;
mod types;

use crate::{Composed, Override, Resolved, Result, Source, Workload, compose, resolve};

/// Composes a file `w.yaml` with overrides.
fn composed(text: &str, overrides: &[&str]) -> Result<Composed> {
    let overrides: Result<Vec<_>, _> = overrides.iter().map(|text| Override::parse(text)).collect();
    compose(Source { name: "w", origin: "w.yaml", text }, &overrides?, &|_| "now".to_owned())
}

/// Resolves a file `w.yaml` without overrides.
fn resolved(text: &str) -> Result<Resolved> {
    resolve(&composed(text, &[])?)
}

/// The workload of a valid file.
#[track_caller]
fn workload(text: &str) -> Workload {
    match resolved(text) {
        Ok(resolved) => resolved.workload,
        Err(err) => panic!("{err}"),
    }
}

/// The remarks on a valid file.
#[track_caller]
fn warnings(text: &str) -> Vec<String> {
    match resolved(text) {
        Ok(resolved) => resolved.warnings.iter().map(ToString::to_string).collect(),
        Err(err) => panic!("{err}"),
    }
}

/// Asserts that a file is refused with this message.
#[track_caller]
fn refused(text: &str, message: &str) {
    match resolved(text) {
        Ok(_) => panic!("accepted, expected: {message}"),
        Err(err) => assert_eq!(err.to_string(), message),
    }
}
