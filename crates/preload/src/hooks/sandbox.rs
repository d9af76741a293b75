//! Programs that lock themselves in, and programs that become daemons inside the C library.
//!
//! A program that forbids itself system calls would be killed for those that recording needs, and one
//! that forbids itself the counter for reading it. So recording ends before that; the trace says so.

use core::ffi::{c_int, c_long, c_ulong, c_void};

use feedline_recorder::{DropReason, Ending, recorder};

use crate::real::Real;
use crate::{fds, filter, names, scratch, vfork};

static PRCTL: Real = Real::new(c"prctl");
static SYSCALL: Real = Real::new(c"syscall");
static DAEMON: Real = Real::new(c"daemon");

/// Looks all of them up.
pub(crate) fn resolve() {
    for real in [&SYSCALL, &PRCTL, &DAEMON] {
        real.resolve();
    }
}

fn stop_recording() {
    if filter::is_on() && !vfork::is_child() {
        filter::set_calls(0);
        recorder().stop(DropReason::Sandbox);
    }
}

fn locks_in(option: c_long) -> bool {
    option == c_long::from(libc::PR_SET_SECCOMP) || option == c_long::from(libc::PR_SET_TSC)
}

/// As in the C library; arguments are passed on whether they mean something or not.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn prctl(
    option: c_int,
    second: c_ulong,
    third: c_ulong,
    fourth: c_ulong,
    fifth: c_ulong,
) -> c_int {
    type Function = unsafe extern "C-unwind" fn(c_int, c_ulong, c_ulong, c_ulong, c_ulong) -> c_int;
    // SAFETY: the C library's function of this name takes these.
    let function = unsafe { core::mem::transmute::<*mut c_void, Function>(PRCTL.get()) };
    if locks_in(c_long::from(option)) {
        stop_recording();
    }
    // SAFETY: the program's own arguments, unchanged.
    unsafe { function(option, second, third, fourth, fifth) }
}

/// As in the C library. Our own calls come through here too.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn syscall(
    number: c_long,
    first: c_long,
    second: c_long,
    third: c_long,
    fourth: c_long,
    fifth: c_long,
    sixth: c_long,
) -> c_long {
    type Function = unsafe extern "C-unwind" fn(
        c_long,
        c_long,
        c_long,
        c_long,
        c_long,
        c_long,
        c_long,
    ) -> c_long;
    // SAFETY: the C library's function of this name takes these.
    let function = unsafe { core::mem::transmute::<*mut c_void, Function>(SYSCALL.get()) };
    if number == libc::SYS_seccomp || (number == libc::SYS_prctl && locks_in(first)) {
        stop_recording();
    }
    // SAFETY: the program's own arguments, unchanged.
    unsafe { function(number, first, second, third, fourth, fifth, sixth) }
}

/// As in the C library, which forks, and ends the parent, without calling our hooks.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn daemon(stays: c_int, keeps: c_int) -> c_int {
    type Function = unsafe extern "C-unwind" fn(c_int, c_int) -> c_int;
    // SAFETY: the C library's function of this name has this type.
    let function = unsafe { core::mem::transmute::<*mut c_void, Function>(DAEMON.get()) };
    let is_on = filter::is_on() && !vfork::is_child();
    if is_on {
        recorder().end(Ending::Exit, 0);
    }
    // SAFETY: the program's own arguments, unchanged.
    let result = unsafe { function(stays, keeps) };
    if !is_on {
        return result;
    }
    if result != 0 {
        recorder().end(Ending::None, 0);
        return result;
    }
    // This is the child.
    scratch::free_all();
    recorder().notice_fork();
    names::look_at_folder();
    for file in 0..3 {
        fds::clear(file);
    }
    result
}
