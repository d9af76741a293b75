//! Processes: being born, becoming another program, waiting, ending.
//!
//! A call that does not come back is recorded before it is made, and corrected if it comes back after
//! all. What a child does in its parent's memory (after `vfork`) is not recorded but for becoming
//! another program: then the record holds its number.

use core::ffi::{c_char, c_int, c_uint, c_void};

use feedline_recorder::{CallRecord, Ending, Op, TextKind, UNNAMED, now, recorder};
use libc::{FILE, pid_t};

use crate::hook::{
    Subject, closing, descriptor, errno, error_number, hooks, is_looked_at, missing, opened,
    set_errno,
};
use crate::names::{self, SKIP};
use crate::real::Real;
use crate::{fds, filter, scratch, vfork};

type Row = *const *const c_char;

hooks! {
    fn posix_spawn(pid: *mut pid_t, program: *const c_char, actions: *const c_void, attributes: *const c_void, arguments: Row, environment: Row) -> c_int
        = PosixSpawn, Subject::Nothing, |record, result| {
            spawned(record, pid, result);
            if names::is_readable(program, record.errno) {
                record.file = named(libc::AT_FDCWD, program);
            }
        };
    fn posix_spawnp(pid: *mut pid_t, program: *const c_char, actions: *const c_void, attributes: *const c_void, arguments: Row, environment: Row) -> c_int
        = PosixSpawnp, Subject::Nothing, |record, result| {
            record.file = searched(program);
            spawned(record, pid, result);
        };
    fn wait(status: *mut c_int) -> pid_t = Wait, Subject::Nothing, |record, pid| waited(record, -1, pid, status);
    fn waitpid(which: pid_t, status: *mut c_int, options: c_int) -> pid_t
        = Waitpid, Subject::Nothing, |record, pid| waited(record, which, pid, status);
    fn wait3(status: *mut c_int, options: c_int, usage: *mut c_void) -> pid_t
        = Wait3, Subject::Nothing, |record, pid| waited(record, -1, pid, status);
    fn wait4(which: pid_t, status: *mut c_int, options: c_int, usage: *mut c_void) -> pid_t
        = Wait4, Subject::Nothing, |record, pid| waited(record, which, pid, status);
    fn waitid(kind: c_uint, which: c_uint, into: *mut c_void, options: c_int) -> c_int
        = Waitid, Subject::Nothing, |record, _| record.arg = u64::from(which);
    fn system(command: *const c_char) -> c_int
        = System, Subject::Nothing, |record, _| record.file = object(command);
    fn popen(command: *const c_char, mode: *const c_char) -> *mut FILE
        = Popen, Subject::Nothing, |record, made| {
            let file = descriptor(made);
            record.result = i64::from(file);
            if file >= 0 {
                fds::clear(file);
            }
            record.file = object(command);
            opened(record, file);
        };
    fn pclose(file: *mut FILE) -> c_int = Pclose, closing(descriptor(file)), |_, _| ();
}

/// The result of a spawn is its error.
fn spawned(record: &mut CallRecord, pid: *const pid_t, result: c_int) {
    record.errno = error_number(result);
    record.result = -1;
    if result == 0 && !pid.is_null() {
        // SAFETY: the C library has just written it.
        record.result = i64::from(unsafe { *pid });
    }
}

fn waited(record: &mut CallRecord, which: pid_t, pid: pid_t, status: *const c_int) {
    record.arg = i64::from(which).cast_unsigned();
    if pid > 0 && !status.is_null() {
        // SAFETY: the kernel has just written it.
        record.offset = i64::from(unsafe { *status });
    }
}

/// The number of a program's name that may have to be searched for.
fn searched(program: *const c_char) -> u32 {
    if program.is_null() {
        return UNNAMED;
    }
    // SAFETY: the C library has read it to its NUL.
    let name = unsafe { core::ffi::CStr::from_ptr(program) }.to_bytes();
    if name.contains(&b'/') { named(libc::AT_FDCWD, program) } else { object(program) }
}

/// The number of a program's path, which the kernel can read; what filters say about files is not meant
/// for programs.
fn named(folder: c_int, program: *const c_char) -> u32 {
    // SAFETY: the callers have found that out.
    match unsafe { names::at(folder, program) } {
        SKIP => UNNAMED,
        number => number,
    }
}

/// The number of a text that is no path.
fn object(text: *const c_char) -> u32 {
    if text.is_null() {
        return UNNAMED;
    }
    // SAFETY: the C library has read it to its NUL.
    names::number(TextKind::Object, UNNAMED, unsafe { core::ffi::CStr::from_ptr(text) }.to_bytes())
}

macro_rules! reals {
    ($($name:ident = $text:literal;)+) => {
        $(static $name: Real = Real::new($text);)+
        /// Looks up what has no plain hook.
        pub(crate) fn resolve_others() {
            for real in [$(&$name),+] {
                real.resolve();
            }
        }
    };
}

reals! {
    FORK = c"fork";
    FORK_BARE = c"_Fork";
    VFORK = c"vfork";
    CLONE = c"clone";
    EXECVE = c"execve";
    EXECV = c"execv";
    EXECVP = c"execvp";
    EXECVPE = c"execvpe";
    FEXECVE = c"fexecve";
    EXECVEAT = c"execveat";
    EXIT_NOW = c"_exit";
    EXIT_ISO = c"_Exit";
    EXIT_QUICK = c"quick_exit";
}

/// A pointer to a function as a function.
macro_rules! function {
    ($real:expr, $type:ty) => {
        // SAFETY: the C library's function of this name has this type.
        unsafe { core::mem::transmute::<*mut c_void, $type>($real.get()) }
    };
}

fn forked(op: Op, real: &Real) -> pid_t {
    if real.get().is_null() {
        return missing();
    }
    let function = function!(real, unsafe extern "C-unwind" fn() -> pid_t);
    if !filter::is_on() || vfork::is_child() {
        // SAFETY: takes no arguments.
        return unsafe { function() };
    }
    let start = now();
    // SAFETY: takes no arguments.
    let pid = unsafe { function() };
    let end = now();
    let error = errno();
    if pid == 0 {
        scratch::free_all();
        recorder().notice_fork();
    } else if is_looked_at(op) {
        let errno = if pid < 0 { error_number(error) } else { 0 };
        recorder().commit(
            op,
            &CallRecord { start, end, result: i64::from(pid), errno, ..CallRecord::default() },
        );
    }
    set_errno(error);
    pid
}

/// As in the C library.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn fork() -> pid_t {
    forked(Op::Fork, &FORK)
}

/// As in the C library.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn _Fork() -> pid_t {
    forked(Op::ForkBare, &FORK_BARE)
}

/// What comes before a `vfork`: a record without an end, since the function's frame must be gone when
/// it returns twice. Gives the function to jump to.
#[cfg(target_arch = "x86_64")]
extern "C-unwind" fn before_vfork() -> *mut c_void {
    if filter::is_on() && !vfork::is_child() {
        let start = now();
        recorder().commit(Op::Vfork, &CallRecord { start, end: start, ..CallRecord::default() });
        vfork::begin();
    }
    VFORK.get()
}

/// As in the C library.
#[cfg(target_arch = "x86_64")]
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub(crate) unsafe extern "C-unwind" fn vfork() {
    core::arch::naked_asm!(
        "sub rsp, 8",
        "call {before}",
        "add rsp, 8",
        "jmp rax",
        before = sym before_vfork,
    )
}

/// As in the C library; the last three arguments are passed on whether they mean something or not.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn clone(
    start_at: *mut c_void,
    stack: *mut c_void,
    flags: c_int,
    argument: *mut c_void,
    parent_id: *mut c_void,
    local: *mut c_void,
    child_id: *mut c_void,
) -> c_int {
    type Function = unsafe extern "C-unwind" fn(
        *mut c_void,
        *mut c_void,
        c_int,
        *mut c_void,
        *mut c_void,
        *mut c_void,
        *mut c_void,
    ) -> c_int;
    let function = function!(CLONE, Function);
    // SAFETY: the program's own arguments, unchanged.
    let call = || unsafe { function(start_at, stack, flags, argument, parent_id, local, child_id) };
    if !is_looked_at(Op::Clone) || vfork::is_child() {
        return call();
    }
    let shares = libc::CLONE_VM | libc::CLONE_VFORK;
    let start = now();
    if flags & shares == shares {
        vfork::begin();
    }
    let pid = call();
    let record = CallRecord {
        start,
        end: now(),
        result: i64::from(pid),
        arg: u64::from(flags.cast_unsigned()),
        ..CallRecord::default()
    };
    let error = errno();
    let errno = if pid < 0 { error_number(error) } else { 0 };
    recorder().commit(Op::Clone, &CallRecord { errno, ..record });
    set_errno(error);
    pid
}

/// Becomes another program: recorded first, corrected if it does not work.
fn replace(op: Op, file: impl FnOnce() -> u32, call: impl FnOnce() -> c_int) -> c_int {
    if !filter::is_on() {
        return call();
    }
    let before = errno();
    let is_child = vfork::is_child();
    let start = now();
    // SAFETY: takes no arguments.
    let pid = if is_child { unsafe { libc::syscall(libc::SYS_getpid) } } else { 0 };
    let record = CallRecord {
        start,
        end: start,
        file: file(),
        arg: pid.cast_unsigned(),
        ..CallRecord::default()
    };
    let provisional = recorder().commit_provisionally(op, &record);
    if !is_child {
        recorder().end(Ending::Exec, 0);
    }
    set_errno(before);
    let result = call();
    let error = errno();
    if !is_child {
        recorder().end(Ending::None, 0);
    }
    let errno = error_number(error);
    recorder().correct(provisional, &CallRecord { end: now(), result: -1, errno, ..record });
    set_errno(error);
    result
}

fn searched_file(program: *const c_char) -> u32 {
    if names::is_readable_now(program) { searched(program) } else { UNNAMED }
}

fn file_in(folder: c_int, program: *const c_char) -> u32 {
    if names::is_readable_now(program) { named(folder, program) } else { UNNAMED }
}

/// Functions that become another program: `fn name, name_as(arguments) = Op, real, file;`. Variadic ones
/// call `name_as` and are recorded under their own names.
macro_rules! replacements {
    ($(fn $name:ident, $name_as:ident($($arg:ident: $type:ty),+) = $op:ident, $real:ident, $file:expr;)+) => {$(
        /// The same, recorded as `op`.
        ///
        /// # Safety
        /// As for the C library's.
        pub(super) unsafe fn $name_as(op: Op, $($arg: $type),+) -> c_int {
            type Function = unsafe extern "C-unwind" fn($($type),+) -> c_int;
            if $real.get().is_null() {
                return missing();
            }
            let function = function!($real, Function);
            // SAFETY: the program's own arguments.
            replace(op, || $file, || unsafe { function($($arg),+) })
        }

        /// As in the C library.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C-unwind" fn $name($($arg: $type),+) -> c_int {
            // SAFETY: the program's own arguments.
            unsafe { $name_as(Op::$op, $($arg),+) }
        }
    )+};
}

replacements! {
    fn execve, execve_as(program: *const c_char, arguments: Row, environment: Row)
        = Execve, EXECVE, file_in(libc::AT_FDCWD, program);
    fn execv, execv_as(program: *const c_char, arguments: Row)
        = Execv, EXECV, file_in(libc::AT_FDCWD, program);
    fn execvp, execvp_as(program: *const c_char, arguments: Row)
        = Execvp, EXECVP, searched_file(program);
    fn execvpe, execvpe_as(program: *const c_char, arguments: Row, environment: Row)
        = Execvpe, EXECVPE, searched_file(program);
    fn fexecve, fexecve_as(file: c_int, arguments: Row, environment: Row)
        = Fexecve, FEXECVE, fds::name(file);
    fn execveat, execveat_as(folder: c_int, program: *const c_char, arguments: Row, environment: Row, flags: c_int)
        = Execveat, EXECVEAT, file_in(folder, program);
}

/// Says that the process ends with this call.
fn ending(op: Op, status: c_int) {
    if filter::is_on() && !vfork::is_child() {
        let start = now();
        let arg = u64::from(status.cast_unsigned());
        if is_looked_at(op) {
            recorder().commit(op, &CallRecord { start, end: start, arg, ..CallRecord::default() });
        }
        recorder().end(Ending::Exit, status & 0xff);
    }
}

/// Functions that end the process: `name = Op, real;`
macro_rules! endings {
    ($($name:ident = $op:ident, $real:ident;)+) => {$(
        /// As in the C library.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C-unwind" fn $name(status: c_int) -> ! {
            ending(Op::$op, status);
            let function = function!($real, unsafe extern "C-unwind" fn(c_int) -> !);
            // SAFETY: takes a number.
            unsafe { function(status) }
        }
    )+};
}

endings! {
    _exit = ExitNow, EXIT_NOW;
    _Exit = ExitIso, EXIT_ISO;
    quick_exit = QuickExit, EXIT_QUICK;
}
