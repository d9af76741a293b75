//! What all hooks have in common: how a call is timed, and how hooks are written down.

use core::ffi::{c_char, c_int, c_long, c_uint};

use feedline_recorder::{CallRecord, Class, Op, now, recorder};

use crate::names::{self, SKIP};
use crate::{fds, filter, vfork};

/// What a call is about.
#[derive(Clone, Copy)]
pub(crate) enum Subject {
    /// This file.
    File(u32),
    /// A path, relative to a folder's descriptor.
    Path(c_int, *const c_char),
    /// No file, or one that its hook finds out.
    Nothing,
    /// Memory and the like: the call is none of our business.
    Unseen,
}

/// The result of a call, as a number.
pub(crate) trait Outcome: Copy {
    /// The number to record.
    fn number(self) -> i64;
    /// Whether `errno` says why it did not work.
    fn is_error(self) -> bool {
        self.number() == -1
    }
    /// What a function gives that does not exist.
    const MISSING: Self;
}

macro_rules! outcomes {
    ($($type:ty),+) => {$(
        impl Outcome for $type {
            #[inline]
            fn number(self) -> i64 {
                self as i64
            }
            const MISSING: Self = !0;
        }
    )+};
}

outcomes!(c_int, c_uint, isize, c_long);

impl Outcome for () {
    fn number(self) -> i64 {
        0
    }
    fn is_error(self) -> bool {
        false
    }
    const MISSING: Self = ();
}

impl Outcome for usize {
    fn number(self) -> i64 {
        self.cast_signed() as i64
    }
    fn is_error(self) -> bool {
        false
    }
    const MISSING: Self = 0;
}

impl<T> Outcome for *mut T {
    fn number(self) -> i64 {
        self.addr().cast_signed() as i64
    }
    fn is_error(self) -> bool {
        self.is_null() || self.addr() == usize::MAX
    }
    const MISSING: Self = core::ptr::null_mut();
}

/// The result of a call of a function that the C library does not have. Programs look for some by
/// their names and take ours for the C library's.
#[cold]
pub(crate) fn missing<R: Outcome>() -> R {
    set_errno(libc::ENOSYS);
    R::MISSING
}

/// Does something and leaves `errno` as it was.
pub(crate) fn keep_errno<T>(work: impl FnOnce() -> T) -> T {
    let before = errno();
    let result = work();
    set_errno(before);
    result
}

/// This thread's `errno`.
pub(crate) fn errno() -> c_int {
    // SAFETY: always a valid pointer to this thread's own variable.
    unsafe { *libc::__errno_location() }
}

/// Sets this thread's `errno`.
pub(crate) fn set_errno(error: c_int) {
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = error };
}

/// The `errno` of a call, as records hold it.
#[inline]
pub(crate) fn error_number(error: c_int) -> u16 {
    u16::try_from(error).unwrap_or(u16::MAX)
}

/// Makes a call and records it. `fill` says what the record holds beside times, result and error, and
/// takes note of descriptors that were made; it runs after the call. Pointers of the program may be
/// followed only where the kernel must have done so, see [`names::is_readable`].
#[inline]
pub(crate) fn observe<R: Outcome>(
    op: Op,
    subject: Subject,
    call: impl FnOnce() -> R,
    fill: impl FnOnce(&mut CallRecord, R),
) -> R {
    if vfork::is_child() {
        return call();
    }
    let file = match subject {
        Subject::File(SKIP) if !keeps_books(op) => {
            recorder().count_filtered();
            return call();
        }
        Subject::File(file) => file,
        Subject::Path(..) | Subject::Nothing => 0,
        Subject::Unseen => return call(),
    };
    let start = now();
    let result = call();
    let end = now();
    // SAFETY: takes no arguments. Asked for once, since every recorded call comes here.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: this thread's own variable, here and below.
    let error = unsafe { *place };
    let mut record =
        CallRecord { start, end, file, result: result.number(), ..CallRecord::default() };
    if result.is_error() {
        record.errno = error_number(error);
    }
    if let Subject::Path(folder, path) = subject
        && names::is_readable(path, record.errno)
    {
        // SAFETY: just found out.
        record.file = unsafe { names::at(folder, path) };
    }
    fill(&mut record, result);
    if record.file == SKIP {
        recorder().count_filtered();
    } else if is_wanted(op) {
        recorder().commit(op, &record);
    }
    // SAFETY: as above.
    unsafe { *place = error };
    result
}

/// Whether calls of this kind are looked at now: those that make or close descriptors always are.
#[inline]
pub(crate) fn is_looked_at(op: Op) -> bool {
    if keeps_books(op) { filter::is_on() } else { is_wanted(op) }
}

/// Whether calls of this kind change what descriptors, folders and mappings mean.
#[inline]
fn keeps_books(op: Op) -> bool {
    matches!(
        op.info().class,
        Class::Open
            | Class::Close
            | Class::Descriptor
            | Class::Directory
            | Class::Map
            | Class::Process
    )
}

#[inline]
pub(crate) fn is_wanted(op: Op) -> bool {
    filter::takes(filter::bit(op.info()))
}

/// The file of a descriptor.
#[inline]
pub(crate) fn fd(fd: c_int) -> Subject {
    // What such a child's descriptors are must not go into its parent's table.
    if vfork::is_child() { Subject::Nothing } else { Subject::File(fds::file(fd)) }
}

/// The file of a descriptor that is about to be closed.
pub(crate) fn closing(fd: c_int) -> Subject {
    if vfork::is_child() { Subject::Nothing } else { Subject::File(fds::take(fd)) }
}

/// A path.
#[inline]
pub(crate) fn path(path: *const c_char) -> Subject {
    Subject::Path(libc::AT_FDCWD, path)
}

/// A path relative to a folder's descriptor.
#[inline]
pub(crate) fn at(folder: c_int, path: *const c_char) -> Subject {
    Subject::Path(folder, path)
}

/// The file of a stream.
#[inline]
pub(crate) fn stream(stream: *mut libc::FILE) -> Subject {
    fd(descriptor(stream))
}

/// The descriptor of a stream, -1 if it has none. Keeps `errno`.
pub(crate) fn descriptor(stream: *mut libc::FILE) -> c_int {
    if stream.is_null() {
        return -1;
    }
    // SAFETY: the program vouches for the stream; `fileno` is no hook of ours.
    keep_errno(|| unsafe { libc::fileno(stream) })
}

/// A descriptor was made for the file of the call.
pub(crate) fn opened(record: &CallRecord, fd: c_int) {
    if fd >= 0 {
        fds::set(fd, record.file);
    }
}

/// Hooks: `fn name(arguments) -> result = Op | twin = TwinOp, subject, |record, result| …;`. A twin has the
/// same type and fills its record in the same way.
macro_rules! hooks {
    ($(fn $name:ident $args:tt -> $result:ty
        = $op:ident $(| $twin:ident = $twin_op:ident)*, $subject:expr, $fill:expr;)+) => {
        $crate::real::named!(real: $($name $($twin)*)+);
        pub(crate) use real::resolve;

        $(
            $crate::hook::hook!($name $args -> $result, $op, $subject, $fill);
            $($crate::hook::hook!($twin $args -> $result, $twin_op, $subject, $fill);)*
        )+
    };
}
pub(crate) use hooks;

/// One hook.
macro_rules! hook {
    ($name:ident($($arg:ident: $type:ty),*) -> $result:ty, $op:ident, $subject:expr, $fill:expr) => {
        /// As in the C library.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C-unwind" fn $name($($arg: $type),*) -> $result {
            type Function = unsafe extern "C-unwind" fn($($type),*) -> $result;
            let place = real::$name.get();
            if place.is_null() {
                return $crate::hook::missing();
            }
            // SAFETY: the C library's function of this name has this type.
            let function = unsafe { core::mem::transmute::<*mut core::ffi::c_void, Function>(place) };
            // SAFETY: the program's own arguments, unchanged.
            let call = || unsafe { function($($arg),*) };
            if !$crate::hook::is_looked_at(feedline_recorder::Op::$op) {
                return call();
            }
            $crate::hook::observe(feedline_recorder::Op::$op, $subject, call, $fill)
        }
    };
}
pub(crate) use hook;
