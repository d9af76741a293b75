//! Which processes of this machine are there, as `/proc` says it.

use std::fs;
use std::sync::OnceLock;

/// The name of this machine.
pub(crate) fn host() -> &'static str {
    static HOST: OnceLock<String> = OnceLock::new();
    HOST.get_or_init(feedline_recorder::host)
}

/// The kernel's name of this boot of the machine.
pub(crate) fn boot() -> &'static str {
    static BOOT: OnceLock<String> = OnceLock::new();
    BOOT.get_or_init(|| read("/proc/sys/kernel/random/boot_id"))
}

/// The kernel's name of the namespace in which processes have their numbers here.
pub(crate) fn namespace() -> &'static str {
    static NAMESPACE: OnceLock<String> = OnceLock::new();
    NAMESPACE.get_or_init(|| namespace_of("self").unwrap_or_default())
}

fn namespace_of(process: &str) -> Option<String> {
    let link = fs::read_link(format!("/proc/{process}/ns/pid")).ok()?;
    Some(link.to_string_lossy().into_owned())
}

/// The number here of a process that has a number of another namespace, if it can be seen from here.
pub(crate) fn number_here(pid: u32, namespace: &str) -> Option<u32> {
    if namespace.is_empty() || namespace == self::namespace() {
        return Some(pid);
    }
    fs::read_dir("/proc").ok()?.flatten().find_map(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        let number = name.parse().ok()?;
        let status = fs::read_to_string(format!("/proc/{name}/status")).ok()?;
        let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
        let is_it = numbers.split_ascii_whitespace().next_back()?.parse() == Ok(pid)
            && namespace_of(&name).as_deref() == Some(namespace);
        is_it.then_some(number)
    })
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().trim_end().to_owned()
}

/// When the process that has this number began, in hundredths of a second since the machine did. `None`
/// if there is none, or only what is left of it for its parent to ask after.
pub(crate) fn began(pid: u32) -> Option<u64> {
    match fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(text) => began_of(&text),
        // Without /proc everything is taken to be alive until the end.
        Err(_) if !fs::exists("/proc/self/stat").unwrap_or(false) => Some(0),
        Err(_) => None,
    }
}

/// Whether a process has this number.
pub(crate) fn exists(pid: u32) -> bool {
    began(pid).is_some()
}

/// The program's name, in parentheses, may hold anything; fields are counted after it.
fn began_of(stat: &str) -> Option<u64> {
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    let (state, threads, began) = (fields.first()?, fields.get(17)?, fields.get(19)?);
    // The first thread of a process may have ended before the others.
    let is_gone = matches!(*state, "X" | "x") || (*state == "Z" && *threads == "1");
    if is_gone { None } else { began.parse().ok() }
}

/// Hundredths of a second since the machine began to run.
pub(crate) fn uptime() -> Option<u64> {
    let text = fs::read_to_string("/proc/uptime").ok()?;
    let (seconds, rest) = text.split_once('.')?;
    let hundredths = rest.get(..2)?;
    Some(seconds.parse::<u64>().ok()? * 100 + hundredths.parse::<u64>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_says_about_a_process() {
        let line = |state: &str, threads: u32| {
            format!("7 (a) b) {state} 1 7 7 0 -1 0 1 2 3 4 5 6 7 8 20 0 {threads} 0 4242 9 9")
        };
        assert_eq!(began_of(&line("S", 1)), Some(4242));
        assert_eq!(began_of(&line("Z", 1)), None);
        assert_eq!(began_of(&line("Z", 2)), Some(4242));
        assert_eq!(began_of(&line("X", 1)), None);
        assert_eq!(began_of("7 (cut"), None);
    }

    #[test]
    fn this_process_is_there() {
        let began = began(std::process::id()).unwrap();
        assert!(began <= uptime().unwrap());
        assert!(!exists(0));
    }
}
