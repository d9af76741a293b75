//! Names of error numbers, as Linux has them.

/// Numbers and names of what calls on files, processes and sockets return.
const NAMES: [(u16, &str); 42] = [
    (1, "EPERM"),
    (2, "ENOENT"),
    (3, "ESRCH"),
    (4, "EINTR"),
    (5, "EIO"),
    (6, "ENXIO"),
    (7, "E2BIG"),
    (8, "ENOEXEC"),
    (9, "EBADF"),
    (10, "ECHILD"),
    (11, "EAGAIN"),
    (12, "ENOMEM"),
    (13, "EACCES"),
    (14, "EFAULT"),
    (16, "EBUSY"),
    (17, "EEXIST"),
    (18, "EXDEV"),
    (19, "ENODEV"),
    (20, "ENOTDIR"),
    (21, "EISDIR"),
    (22, "EINVAL"),
    (23, "ENFILE"),
    (24, "EMFILE"),
    (25, "ENOTTY"),
    (26, "ETXTBSY"),
    (27, "EFBIG"),
    (28, "ENOSPC"),
    (29, "ESPIPE"),
    (30, "EROFS"),
    (31, "EMLINK"),
    (32, "EPIPE"),
    (36, "ENAMETOOLONG"),
    (38, "ENOSYS"),
    (39, "ENOTEMPTY"),
    (40, "ELOOP"),
    (61, "ENODATA"),
    (75, "EOVERFLOW"),
    (95, "EOPNOTSUPP"),
    (104, "ECONNRESET"),
    (110, "ETIMEDOUT"),
    (116, "ESTALE"),
    (122, "EDQUOT"),
];

/// The number of errors of which no number is known.
pub(crate) const UNKNOWN_ERROR: u16 = 255;

/// The name of an error number; the number itself if it has none here.
pub(crate) fn name(errno: u16) -> String {
    if errno == UNKNOWN_ERROR {
        return "unknown".to_owned();
    }
    let known = NAMES.iter().find(|(number, _)| *number == errno);
    known.map_or_else(|| format!("errno {errno}"), |(_, name)| (*name).to_owned())
}
