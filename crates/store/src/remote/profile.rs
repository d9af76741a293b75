//! Profiles of `~/.aws/credentials` and `~/.aws/config`, which `object_store` does not read.
//!
//! Taken from them: keys, region and endpoint. Profiles that lead to credentials by other ways (single
//! sign-on, other roles, programs to start) are refused by name rather than passed over.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What a profile says.
#[derive(Clone, PartialEq, Eq, Default)]
pub(crate) struct Profile {
    pub(crate) access_key_id: Option<String>,
    pub(crate) secret_access_key: Option<String>,
    pub(crate) session_token: Option<String>,
    pub(crate) region: Option<String>,
    pub(crate) endpoint_url: Option<String>,
}

/// Why there is no profile. Names files and keys, never values.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ProfileError {
    #[error("{}: {why}", file.display())]
    Unreadable { file: PathBuf, why: String },
    #[error("there is no profile {name:?}")]
    Missing { name: String },
    #[error("profile {name:?} has {key}, expected aws_access_key_id")]
    OtherWay { name: String, key: &'static str },
    #[error("expected aws_access_key_id and aws_secret_access_key together in profile {name:?}")]
    HalfAKey { name: String },
}

/// Keys that lead to credentials in ways not followed here.
const OTHER_WAYS: [&str; 5] =
    ["sso_session", "sso_start_url", "role_arn", "credential_process", "source_profile"];

/// Reads the profile that the environment names, as `env` gives it.
pub(crate) fn load(env: &dyn Fn(&str) -> Option<String>) -> Result<Profile, ProfileError> {
    let named = env("AWS_PROFILE").filter(|name| !name.is_empty());
    let home = env("HOME").map(PathBuf::from);
    let file = |variable, name| {
        env(variable).map(PathBuf::from).or_else(|| Some(home.as_ref()?.join(".aws").join(name)))
    };
    let credentials = read(file("AWS_SHARED_CREDENTIALS_FILE", "credentials"))?;
    let config = read(file("AWS_CONFIG_FILE", "config"))?;
    choose(named.as_deref(), &parse(&credentials), &parse(&config))
}

type Sections = BTreeMap<String, BTreeMap<String, String>>;

fn choose(
    named: Option<&str>,
    credentials: &Sections,
    config: &Sections,
) -> Result<Profile, ProfileError> {
    let name = named.unwrap_or("default");
    // In `config`, all profiles but `default` are called `profile NAME`.
    let long = format!("profile {name}");
    let in_config = config.get(&long).or_else(|| config.get(name));
    let sections = [credentials.get(name), in_config];
    if named.is_some() && sections.iter().all(Option::is_none) {
        return Err(ProfileError::Missing { name: name.to_owned() });
    }
    let get = |key| sections.iter().flatten().find_map(|section| section.get(key)).cloned();
    let profile = Profile {
        access_key_id: get("aws_access_key_id"),
        secret_access_key: get("aws_secret_access_key"),
        session_token: get("aws_session_token"),
        region: get("region"),
        endpoint_url: get("endpoint_url"),
    };
    if profile.access_key_id.is_some() != profile.secret_access_key.is_some() {
        return Err(ProfileError::HalfAKey { name: name.to_owned() });
    }
    let other = OTHER_WAYS.into_iter().find(|key| get(key).is_some());
    match other {
        Some(key) if profile.access_key_id.is_none() => {
            Err(ProfileError::OtherWay { name: name.to_owned(), key })
        }
        _ => Ok(profile),
    }
}

fn read(file: Option<PathBuf>) -> Result<String, ProfileError> {
    let Some(file) = file else { return Ok(String::new()) };
    match std::fs::read_to_string(&file) {
        Ok(text) => Ok(text),
        Err(error) if is_absent(&error, &file) => Ok(String::new()),
        Err(error) => Err(ProfileError::Unreadable { file, why: error.to_string() }),
    }
}

/// Most users have none of these files; a home without access for us has none either.
fn is_absent(error: &std::io::Error, file: &Path) -> bool {
    use std::io::ErrorKind::{NotADirectory, NotFound};
    matches!(error.kind(), NotFound | NotADirectory) || file.parent().is_none_or(|p| !p.exists())
}

/// Sections of an INI file. Indented lines belong to the key above (settings of one service) and are
/// left out, as is what cannot be understood: settings of other tools do not matter here.
fn parse(text: &str) -> Sections {
    let mut sections = Sections::new();
    let mut current: Option<String> = None;
    for line in text.lines() {
        if line.starts_with([' ', '\t', '#', ';']) || line.trim().is_empty() {
            continue;
        }
        if let Some(rest) = line.trim_end().strip_prefix('[') {
            let name = rest.split(']').next().unwrap_or_default();
            let name = name.split_whitespace().collect::<Vec<_>>().join(" ");
            sections.entry(name.clone()).or_default();
            current = Some(name);
        } else if let (Some(section), Some((key, value))) = (&current, line.split_once('=')) {
            let value = value.split_once(" #").map_or(value, |(value, _)| value).trim();
            if !value.is_empty() {
                let section = sections.entry(section.clone()).or_default();
                section.insert(key.trim().to_ascii_lowercase(), value.to_owned());
            }
        }
    }
    sections
}

#[cfg(test)]
mod tests {
    use super::*;

    const CREDENTIALS: &str = "\
# mine
[default]
aws_access_key_id = AK1
aws_secret_access_key=s/e=c+1

[ci]
AWS_ACCESS_KEY_ID = AK2
aws_secret_access_key = sec2   # of the robot
aws_session_token = tok2
[half]
aws_access_key_id = AK3
";
    const CONFIG: &str = "\
stray = 1
[default]
region = eu-west-1
s3 =
    endpoint_url = http://not-this
[profile ci]
region = us-east-2
endpoint_url = http://minio:9000
[profile sso]
sso_session = corp
region = eu-north-1
[sso-session corp]
";

    fn chosen(named: Option<&str>) -> Result<Profile, ProfileError> {
        choose(named, &parse(CREDENTIALS), &parse(CONFIG))
    }

    fn some(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    #[test]
    fn a_profile_is_put_together_from_both_files() {
        let expected = Profile {
            access_key_id: some("AK1"),
            secret_access_key: some("s/e=c+1"),
            region: some("eu-west-1"),
            ..Profile::default()
        };
        assert!(chosen(None).unwrap() == expected);
        let expected = Profile {
            access_key_id: some("AK2"),
            secret_access_key: some("sec2"),
            session_token: some("tok2"),
            region: some("us-east-2"),
            endpoint_url: some("http://minio:9000"),
        };
        assert!(chosen(Some("ci")).unwrap() == expected);
    }

    #[test]
    fn what_cannot_be_used_is_said() {
        let said = |named| chosen(named).err().unwrap().to_string();
        assert_eq!(said(Some("none")), "there is no profile \"none\"");
        assert_eq!(
            said(Some("sso")),
            "profile \"sso\" has sso_session, expected aws_access_key_id"
        );
        assert_eq!(
            said(Some("half")),
            "expected aws_access_key_id and aws_secret_access_key together in profile \"half\""
        );
        assert!(choose(None, &parse(""), &parse("")).unwrap() == Profile::default());
    }

    #[test]
    fn files_are_found_as_the_environment_says() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("home/.aws");
        std::fs::create_dir_all(&home).unwrap();
        std::fs::write(home.join("credentials"), CREDENTIALS).unwrap();
        std::fs::write(home.join("config"), CONFIG).unwrap();
        std::fs::write(folder.path().join("other"), "[ci]\nregion = here\n").unwrap();
        let env = |name: &str| match name {
            "HOME" => Some(folder.path().join("home").display().to_string()),
            _ => None,
        };
        assert_eq!(load(&env).unwrap().region.as_deref(), Some("eu-west-1"));
        let other = folder.path().join("other").display().to_string();
        let env = |name: &str| match name {
            "AWS_PROFILE" => some("ci"),
            "AWS_SHARED_CREDENTIALS_FILE" => Some(other.clone()),
            _ => None,
        };
        assert_eq!(load(&env).unwrap().region.as_deref(), Some("here"));
        let env = |name: &str| (name == "HOME").then(|| "/none".to_owned());
        assert!(load(&env).unwrap() == Profile::default());
    }

    #[test]
    fn an_unreadable_file_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().display().to_string();
        let env = |name: &str| (name == "AWS_CONFIG_FILE").then(|| path.clone());
        let error = load(&env).err().unwrap();
        assert!(matches!(error, ProfileError::Unreadable { .. }), "{error}");
    }
}
