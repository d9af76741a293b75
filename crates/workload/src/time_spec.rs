//! Reads a time: a number, or a distribution with its parameters.
//!
//! A missing parameter or an unknown type is an error here, before any byte is written, rather than an
//! exception or a silent zero in the middle of a run.

use crate::error::{Result, WorkloadError};
use crate::node::{Map, Node, Value};
use crate::read::{Sections, number, one_of};
use crate::schema::TIME_KEYS;
use crate::sections::time::TimeSpec;
use crate::warning::{Warning, WarningKind};

/// The types that a distribution may name.
const TYPES: &[&str] = &["normal", "uniform", "gamma", "exponential", "poisson"];

impl Sections {
    /// Reads a time and the key `PATH_stdev` with its standard deviation.
    pub(crate) fn time(
        &self,
        path: &str,
        slot: &mut TimeSpec,
        warnings: &mut Vec<Warning>,
    ) -> Result<()> {
        let stdev_path = format!("{path}_stdev");
        let mut stdev = 0.0;
        self.number(&stdev_path, &mut stdev)?;
        let given = self.get(path);
        let spec = match given {
            None => Spec { time: TimeSpec::default(), takes_stdev: true, has_mean: false },
            Some(node) => self.time_node(path, node)?,
        };
        *slot = spec.time;
        let Some(stdev_node) = self.get(&stdev_path).filter(|_| stdev > 0.0) else {
            return Ok(());
        };
        match spec.time {
            TimeSpec::Constant { mean } | TimeSpec::Normal { mean, .. } if spec.takes_stdev => {
                if !spec.has_mean {
                    return Err(WorkloadError::TimeParameter {
                        place: self.place(stdev_node),
                        key: path.to_owned(),
                        kind: "normal".to_owned(),
                        parameter: "mean",
                    });
                }
                *slot = TimeSpec::Normal { mean, stdev };
            }
            _ => {
                let reason = "the distribution has no standard deviation";
                let kind = WarningKind::NoEffect { key: stdev_path, reason };
                warnings.push(Warning::at(self.place(stdev_node), kind));
            }
        }
        Ok(())
    }

    fn time_node(&self, path: &str, node: &Node) -> Result<Spec> {
        match &node.value {
            Value::Map(map) => self.distribution(path, node, map),
            Value::Int(_) | Value::Float(_) => {
                let mut mean = 0.0;
                self.number(path, &mut mean)?;
                Ok(Spec { time: TimeSpec::Constant { mean }, takes_stdev: true, has_mean: true })
            }
            _ => Err(self.wrong(path, node, "a number of seconds or a distribution")),
        }
    }

    fn distribution(&self, path: &str, node: &Node, map: &Map) -> Result<Spec> {
        let get = |name: &'static str| self.parameter(path, map, name);
        let kind = match map.get("type").filter(|node| node.value != Value::Null) {
            Some(kind) => kind
                .as_str()
                .filter(|word| TYPES.contains(word))
                .ok_or_else(|| self.wrong(&format!("{path}.type"), kind, &one_of(TYPES)))?,
            None if get("stdev")?.is_some() => "normal",
            None => match get("mean")? {
                Some(mean) => {
                    let time = TimeSpec::Constant { mean };
                    return Ok(Spec { time, takes_stdev: true, has_mean: true });
                }
                // An empty mapping means no time; one with other parameters lacks its type.
                None if !TIME_KEYS.iter().any(|key| map.contains_key(key)) => {
                    let time = TimeSpec::default();
                    return Ok(Spec { time, takes_stdev: true, has_mean: false });
                }
                None => return Err(self.missing(path, node, "constant", "mean")),
            },
        };
        let need =
            |name: &'static str| get(name)?.ok_or_else(|| self.missing(path, node, kind, name));
        let time = match kind {
            "normal" => TimeSpec::Normal { mean: need("mean")?, stdev: need("stdev")? },
            "uniform" => {
                let (min, max) = (need("min")?, need("max")?);
                if max < min {
                    let found = map.get("max").unwrap_or(node);
                    return Err(self.wrong(&format!("{path}.max"), found, "a number >= `min`"));
                }
                TimeSpec::Uniform { min, max }
            }
            "gamma" => TimeSpec::Gamma { shape: need("shape")?, scale: need("scale")? },
            "exponential" => TimeSpec::Exponential { scale: need("scale")? },
            _ => TimeSpec::Poisson { lam: need("lam")? },
        };
        Ok(Spec { time, takes_stdev: kind == "normal", has_mean: kind == "normal" })
    }

    /// One parameter of a distribution.
    fn parameter(&self, path: &str, map: &Map, name: &str) -> Result<Option<f64>> {
        let Some(node) = map.get(name).filter(|node| node.value != Value::Null) else {
            return Ok(None);
        };
        let value = number(node).filter(|value| *value >= 0.0);
        match value {
            Some(value) => Ok(Some(value)),
            None => Err(self.wrong(&format!("{path}.{name}"), node, "a number >= 0")),
        }
    }

    fn missing(
        &self,
        path: &str,
        node: &Node,
        kind: &str,
        parameter: &'static str,
    ) -> WorkloadError {
        WorkloadError::TimeParameter {
            place: self.place(node),
            key: path.to_owned(),
            kind: kind.to_owned(),
            parameter,
        }
    }
}

/// A time, and whether a separate standard deviation can go with it.
struct Spec {
    time: TimeSpec,
    takes_stdev: bool,
    has_mean: bool,
}
