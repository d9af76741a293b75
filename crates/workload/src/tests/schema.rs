//! The table of keys against the code that reads them.

use super::{composed, resolved, workload};
use crate::{Effect, Framework, Kind, Map, Node, Override, Workload, find_key, keys, resolve};

/// A tree with one key set.
fn with_key(path: &str, node: Node) -> Result<crate::Resolved, crate::WorkloadError> {
    let mut out = composed("{}\n", &[]).expect("an empty workload is valid");
    let text = format!("++workload.{path}=x");
    let mut item = Override::parse(&text).expect("a path of the table is a key");
    item.action = crate::Action::ForceAdd(node);
    item.apply(&mut out.tree)?;
    resolve(&out)
}

#[test]
fn every_used_key_is_read() {
    for key in keys().iter().filter(|key| key.effect == Effect::Used) {
        // No key takes a list that holds a mapping.
        let nonsense = Node::from(vec![Node::from(Map::new())]);
        let err = with_key(key.path, nonsense).expect_err(key.path).to_string();
        assert!(err.contains(&format!("`{}` expects", key.path)), "{}: {err}", key.path);
    }
}

#[test]
fn every_default_is_that_of_the_section() {
    for key in keys().iter().filter(|key| key.effect == Effect::Used && !key.default.is_empty()) {
        let yaml = format!("{{v: {}}}\n", key.default);
        let value = crate::parse_yaml("t", &yaml).expect("a default is YAML");
        let value = value.get("v").expect("the key is there").clone();
        let mut out = with_key(key.path, value).expect(key.path).workload;
        // Given options and a given KSM section are not the defaults of their parents.
        out.storage.storage_options = Map::new();
        if key.path.starts_with("checkpoint.ksm.") {
            assert_eq!(out.checkpoint.ksm, Some(crate::Ksm::default()), "{}", key.path);
            out.checkpoint.ksm = None;
        }
        assert_eq!(out, Workload::default(), "{}", key.path);
    }
}

#[test]
fn every_choice_is_accepted_and_no_other() {
    for key in keys().iter().filter(|key| key.effect == Effect::Used) {
        let Kind::Choice(words) = key.kind else { continue };
        for word in words() {
            assert!(with_key(key.path, Node::from(word)).is_ok(), "{} = {word}", key.path);
        }
        assert!(with_key(key.path, Node::from("nonsense")).is_err(), "{}", key.path);
    }
}

#[test]
fn aliases_lead_to_keys_and_paths_are_unique() {
    let mut seen = Vec::new();
    for key in keys() {
        assert!(!seen.contains(&key.path), "{} appears twice", key.path);
        seen.push(key.path);
        assert!(key.help.ends_with('.'), "{}", key.path);
        if let Effect::Alias(target) = key.effect {
            assert!(target == "reader" || find_key(target).is_some(), "{}", key.path);
        }
    }
}

#[test]
fn no_key_of_the_table_is_unknown() {
    for key in keys() {
        let out = with_key(key.path, Node::new(crate::Value::Null)).expect(key.path);
        for warning in out.warnings {
            assert!(!warning.to_string().contains("unknown"), "{}: {warning}", key.path);
        }
    }
}

#[test]
fn a_written_config_reads_back_the_same() {
    let yaml = "framework: pytorch\ndataset: {format: npz, record_length_bytes: 114660.07}\n\
                reader: {file_shuffle: off}\n";
    let out = composed(
        yaml,
        &[
            "++workload.train.computation_time.type=poisson",
            "++workload.train.computation_time.lam=3",
        ],
    )
    .expect("it is valid");
    let first = resolve(&out).expect("it is valid");
    let second = resolved(&out.config_yaml()).expect("what is written can be read");
    assert_eq!(first.workload, second.workload);
    assert_eq!(workload(yaml).framework, Framework::Pytorch);
}
