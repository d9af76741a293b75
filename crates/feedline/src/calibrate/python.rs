//! A Python that answers: one JSON object per line there, one back.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::Context as _;
use feedline_bench::Python;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::failure;

/// What it runs.
const SCRIPT: &str = include_str!("measure.py");
/// Programs that are tried when none is named.
const USUAL: [&str; 2] = ["python3", "python"];
const NEEDED: &str = "install numpy and torch (pip install numpy torch), or name a Python that has \
                      them with --python PATH";

/// A running Python.
pub(super) struct Interpreter {
    child: Child,
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    program: String,
    complaints: PathBuf,
}

/// What a Python has.
#[derive(Debug, Deserialize)]
pub(super) struct Versions {
    version: String,
    executable: String,
    pub(super) packages: BTreeMap<String, String>,
    missing: BTreeMap<String, String>,
}

impl From<Versions> for Python {
    fn from(versions: Versions) -> Self {
        let Versions { version, executable, packages, .. } = versions;
        Self { executable, version, packages }
    }
}

/// What was measured.
#[derive(Debug)]
pub(super) struct Answer(Value);

impl Answer {
    pub(super) fn number(&self, key: &str) -> anyhow::Result<f64> {
        let number = self.0.get(key).and_then(Value::as_f64);
        number.with_context(|| format!("the script did not answer with `{key}`"))
    }

    pub(super) fn text(&self, key: &str) -> anyhow::Result<String> {
        let text = self.0.get(key).and_then(Value::as_str).map(str::to_owned);
        text.with_context(|| format!("the script did not answer with `{key}`"))
    }
}

impl Interpreter {
    /// Starts `named`, or the usual one; its files go to `folder`.
    pub(super) fn start(named: Option<&Path>, folder: &Path) -> anyhow::Result<Self> {
        let script = folder.join("measure.py");
        let complaints = folder.join("stderr");
        let prepared = std::fs::write(&script, SCRIPT).and_then(|()| File::create(&complaints));
        let stderr = prepared.with_context(|| format!("cannot use {}", folder.display()))?;
        let programs = match named {
            Some(path) => vec![path.to_owned()],
            None => USUAL.map(PathBuf::from).to_vec(),
        };
        for program in &programs {
            let started = Command::new(program)
                .args(["-W", "ignore"])
                .arg(&script)
                .env("TF_CPP_MIN_LOG_LEVEL", "3")
                .env("PYTHONDONTWRITEBYTECODE", "1")
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(stderr.try_clone().context("cannot capture the output of Python")?)
                .spawn();
            if let Ok(mut child) = started {
                let (requests, answers) = (child.stdin.take(), child.stdout.take());
                let answers = BufReader::new(answers.expect("it was asked for"));
                let program = program.display().to_string();
                return Ok(Self { child, requests, answers, program, complaints });
            }
        }
        let names: Vec<_> = programs.iter().map(|path| path.display().to_string()).collect();
        Err(failure::hinted(format!("cannot start Python as {}", names.join(" or ")), NEEDED))
    }

    /// What it has; an error if that is not enough for anything.
    pub(super) fn versions(&mut self) -> anyhow::Result<Versions> {
        let answer = self.ask(&json!({"measure": "versions"}))?;
        let answer = answer.map_err(|why| anyhow::anyhow!("{}: {why}", self.program))?;
        let found: Versions = serde_json::from_value(answer.0).context("the script's answer")?;
        match found.missing.get("numpy") {
            Some(why) => Err(failure::hinted(format!("{}: no numpy: {why}", self.program), NEEDED)),
            None => Ok(found),
        }
    }

    /// An answer, or what the script says went wrong; an error if it is gone.
    pub(super) fn ask(&mut self, request: &Value) -> anyhow::Result<Result<Answer, String>> {
        let requests = self.requests.as_mut().expect("it is open until the end");
        let mut line = String::new();
        let heard = writeln!(requests, "{request}")
            .and_then(|()| requests.flush())
            .and_then(|()| self.answers.read_line(&mut line));
        if heard.unwrap_or(0) == 0 {
            let said = std::fs::read_to_string(&self.complaints).unwrap_or_default();
            let last = said.trim().lines().last().unwrap_or("it said nothing").to_owned();
            return Err(failure::hinted(
                format!("{} ended during a measurement: {last}", self.program),
                NEEDED,
            ));
        }
        let answer: Value = serde_json::from_str(&line).context("the script's answer")?;
        match answer.get("error").and_then(Value::as_str) {
            Some(why) => Ok(Err(why.to_owned())),
            None => Ok(Ok(Answer(answer))),
        }
    }
}

impl Drop for Interpreter {
    fn drop(&mut self) {
        // The end of its requests is the end of the script.
        self.requests = None;
        let _ = self.child.wait();
    }
}
