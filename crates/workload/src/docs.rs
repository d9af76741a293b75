//! The reference page of the workload keys, made from the schema.

use crate::schema::{Effect, Key, keys};

/// The reference page as Markdown.
pub fn keys_markdown() -> String {
    let mut out = String::from(
        "# Workload keys\n\n\
         Every key that a workload file may hold, below `workload:`. Made from the schema; do not \
         edit.\n",
    );
    let mut section = None;
    for key in keys() {
        let name = section_of(key);
        if section != Some(name) {
            section = Some(name);
            out.push_str(&format!(
                "\n## `{name}`\n\n| Key | Value | Default | Meaning |\n|---|---|---|---|\n"
            ));
        }
        out.push_str(&row(key));
    }
    out.push_str(
        "\n## Times\n\n\
         A time is a number of seconds or a mapping. The absolute value of each draw is waited \
         for.\n\n\
         | Mapping | Draw |\n|---|---|\n\
         | `{mean}` | always the same |\n\
         | `{mean, stdev}` or `{type: normal, mean, stdev}` | normal |\n\
         | `{type: uniform, min, max}` | uniform |\n\
         | `{type: gamma, shape, scale}` | gamma |\n\
         | `{type: exponential, scale}` | exponential |\n\
         | `{type: poisson, lam}` | Poisson, whole seconds |\n",
    );
    out
}

/// The section a key stands in; the old name of a section stands with the new one.
fn section_of(key: &Key) -> &'static str {
    let home = match key.effect {
        Effect::Alias(target) if !key.path.contains('.') => target,
        _ => key.path,
    };
    home.split('.').next().unwrap_or(home)
}

fn row(key: &Key) -> String {
    let meaning = match key.effect {
        Effect::Used => key.help.to_owned(),
        Effect::NoEffect(reason) => format!("{} No effect: {reason}.", key.help),
        Effect::Alias(target) => format!("Read as `{target}`. {}", key.help),
    };
    let kind = match key.effect {
        Effect::Alias(_) => String::new(),
        _ => key.kind.describe(),
    };
    let default = match key.default {
        "" => String::new(),
        text => format!("`{text}`"),
    };
    format!("| `{}` | {kind} | {default} | {meaning} |\n", key.path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_has_one_row_under_its_section() {
        let page = keys_markdown();
        for key in keys() {
            assert_eq!(page.matches(&format!("\n| `{}` |", key.path)).count(), 1, "{}", key.path);
        }
        let headings = page.lines().filter(|line| line.starts_with("## ")).collect::<Vec<_>>();
        assert_eq!(
            headings,
            [
                "## `framework`",
                "## `workflow`",
                "## `model`",
                "## `storage`",
                "## `dataset`",
                "## `reader`",
                "## `train`",
                "## `evaluation`",
                "## `checkpoint`",
                "## `output`",
                "## `metric`",
                "## `profiling`",
                "## Times",
            ]
        );
    }

    #[test]
    fn a_row_says_what_the_key_takes_and_does() {
        let page = keys_markdown();
        for row in [
            "| `reader.file_shuffle` | `off`, `seed`, `random` | `'off'` | Order of the files. |",
            "| `model.model_size` |  |  | Read as `model.model_size_bytes`. Spelling of DLIO's \
             documents, which DLIO itself ignores. |",
            "| `reader.file_access` | text | `multi` | How files are shared between ranks. No \
             effect: DLIO reads it and never uses it. |",
        ] {
            assert!(page.lines().any(|line| line == row), "{row}");
        }
    }
}
