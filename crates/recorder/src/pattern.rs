//! Which paths a pattern of the user's means.

/// Whether any of several patterns, separated by colons, matches a path.
pub fn matches_any(patterns: &[u8], path: &[u8]) -> bool {
    patterns.split(|b| *b == b':').any(|pattern| !pattern.is_empty() && matches(pattern, path))
}

/// Whether a path matches a pattern. `*` and `?` stop at a slash, `**` does not; a pattern that
/// names a folder matches everything in it. Takes no memory; tries again from the last star only.
fn matches(pattern: &[u8], path: &[u8]) -> bool {
    let pattern = pattern.strip_suffix(b"/").unwrap_or(pattern);
    let (mut p, mut t) = (0, 0);
    // Where to go on after a mismatch: after the last star, one byte later. One for `*`, one for `**`.
    let (mut star, mut stars) = (None, None);
    loop {
        match (pattern.get(p), path.get(t)) {
            (None, None | Some(b'/')) => return true,
            (Some(b'*'), _) if pattern.get(p + 1) == Some(&b'*') => {
                p += 2;
                // `a/**/b` matches `a/b` too, but not `a/xb`.
                let of_folders =
                    pattern.get(p) == Some(&b'/') && (t == 0 || path.get(t - 1) == Some(&b'/'));
                p += usize::from(of_folders);
                stars = Some((p, t, of_folders));
                star = None;
                continue;
            }
            (Some(b'*'), _) => {
                p += 1;
                star = Some((p, t));
                continue;
            }
            (Some(b'?'), Some(byte)) if *byte != b'/' => {
                p += 1;
                t += 1;
                continue;
            }
            (Some(a), Some(b)) if a == b => {
                p += 1;
                t += 1;
                continue;
            }
            _ => {}
        }
        match (star, stars) {
            (Some((back, at)), _) if at < path.len() && path[at] != b'/' => {
                (p, t) = (back, at + 1);
                star = Some((p, t));
            }
            (_, Some((back, at, of_folders))) => {
                let rest = path.get(at..).unwrap_or_default();
                let step = if of_folders { rest.iter().position(|b| *b == b'/') } else { Some(0) };
                let Some(step) = step.filter(|step| *step < rest.len()) else { return false };
                (p, t) = (back, at + step + 1);
                stars = Some((p, t, of_folders));
                star = None;
            }
            _ => return false,
        }
    }
}

/// Takes `.`, `..` and double slashes out of an absolute path, in place; its new length. Links are not
/// followed.
pub fn tidy(path: &mut [u8]) -> usize {
    let (mut from, mut to) = (0, 0);
    while from < path.len() {
        while path.get(from) == Some(&b'/') {
            from += 1;
        }
        let end =
            path[from..].iter().position(|byte| *byte == b'/').map_or(path.len(), |at| from + at);
        match &path[from..end] {
            b"" | b"." => {}
            b".." => to = path[..to].iter().rposition(|byte| *byte == b'/').unwrap_or(0),
            name => {
                let length = name.len();
                path[to] = b'/';
                path.copy_within(from..end, to + 1);
                to += 1 + length;
            }
        }
        from = end;
    }
    if to == 0 && !path.is_empty() {
        path[0] = b'/';
        to = 1;
    }
    to
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stop_at_slashes_and_folders_stand_for_what_is_in_them() {
        for (pattern, path, expected) in [
            ("/data", "/data", true),
            ("/data", "/data/a", true),
            ("/data/", "/data/a/b", true),
            ("/data", "/database", false),
            ("/data", "/other/data", false),
            ("/data/*.npz", "/data/a.npz", true),
            ("/data/*.npz", "/data/sub/a.npz", false),
            ("/data/*.npz", "/data/a.npzx", false),
            ("/data/*", "/data/sub/a.npz", true),
            ("/data/*/a.npz", "/data/sub/a.npz", true),
            ("/data/*/a.npz", "/data/sub/deep/a.npz", false),
            ("/data/**/a.npz", "/data/sub/deep/a.npz", true),
            ("/data/**/a.npz", "/data/a.npz", true),
            ("/data/**/a.npz", "/data/ba.npz", false),
            ("**/*.h5", "/x/y/z.h5", true),
            ("**.h5", "/x/y/z.h5", true),
            ("**/*.h5", "/x/y/z.h5x", false),
            ("/d?ta", "/data/a", true),
            ("/d?ta", "/d/ta", false),
            ("/a*b*c", "/aXbYc", true),
            ("/a*b*c", "/abcbc", true),
            ("/a*b*c", "/aXc", false),
            ("/a*aab", "/aaaab", true),
            ("/*", "/", true),
            ("/**", "/a/b", true),
            ("*", "/a/b", true),
            ("", "/a", false),
            ("::/a:", "/a/b", true),
            ("/b:/a", "/a", true),
            ("/b:/c", "/a", false),
        ] {
            let found = matches_any(pattern.as_bytes(), path.as_bytes());
            assert_eq!(found, expected, "{pattern} on {path}");
        }
    }

    #[test]
    fn many_stars_take_no_longer_than_their_product() {
        let path = [&b"/"[..], &[b'a'; 4000]].concat();
        assert!(!matches_any(&[&b"/"[..], &b"*a".repeat(500), b"b"].concat(), &path));
        assert!(!matches_any(&[&b"/"[..], &b"**a".repeat(500), b"b"].concat(), &path));
    }

    #[test]
    fn tidy_paths_have_names_only() {
        for (path, expected) in [
            ("/a/b", "/a/b"),
            ("/a//b/", "/a/b"),
            ("/a/./b/.", "/a/b"),
            ("/a/../b", "/b"),
            ("/a/b/../../c", "/c"),
            ("/..", "/"),
            ("/../../x", "/x"),
            ("/", "/"),
            ("//", "/"),
            ("/a/..", "/"),
            ("/.a/..b/...", "/.a/..b/..."),
            ("", ""),
        ] {
            let mut bytes = path.as_bytes().to_vec();
            let length = tidy(&mut bytes);
            assert_eq!(std::str::from_utf8(&bytes[..length]), Ok(expected), "{path}");
        }
    }
}
