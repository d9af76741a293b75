//! Functions with any number of arguments.
//!
//! Rust cannot be called like that, so a few instructions do what a C compiler does at the start of
//! such a function: save the registers that arguments travel in, describe them, and call the variant
//! that takes the description (`va_list`). The `exec` functions need less: their arguments only have to
//! be in a row. x86-64 only; elsewhere these calls are not seen.

use core::arch::naked_asm;
use core::ffi::{c_char, c_int, c_void};

use feedline_recorder::Op;
use libc::FILE;

use super::processes;
use crate::hook::{is_looked_at, missing, observe, stream};
use crate::real::Real;

static VFPRINTF: Real = Real::new(c"vfprintf");
static VFPRINTF_CHECKED: Real = Real::new(c"__vfprintf_chk");
static VFSCANF: Real = Real::new(c"vfscanf");
static VFSCANF_99: Real = Real::new(c"__isoc99_vfscanf");
static VFSCANF_23: Real = Real::new(c"__isoc23_vfscanf");

/// Looks all of them up.
pub(crate) fn resolve() {
    // The one of C23 is looked up when it is called, see `text_streams`.
    for real in [&VFPRINTF, &VFPRINTF_CHECKED, &VFSCANF, &VFSCANF_99] {
        real.resolve();
    }
}

type Formatted = unsafe extern "C-unwind" fn(*mut FILE, *const c_char, *mut c_void) -> c_int;
type Checked = unsafe extern "C-unwind" fn(*mut FILE, c_int, *const c_char, *mut c_void) -> c_int;

unsafe extern "C" {
    static stdout: *mut FILE;
}

/// A function with a description of its arguments.
///
/// # Safety
/// As for the C library's.
unsafe fn formatted(
    op: Op,
    real: &Real,
    file: *mut FILE,
    format: *const c_char,
    values: *mut c_void,
) -> c_int {
    if real.get().is_null() {
        return missing();
    }
    // SAFETY: the C library's functions that end up here have this type.
    let function = unsafe { core::mem::transmute::<*mut c_void, Formatted>(real.get()) };
    // SAFETY: the program's own arguments.
    let call = || unsafe { function(file, format, values) };
    if !is_looked_at(op) { call() } else { observe(op, stream(file), call, |_, _| ()) }
}

/// The same for the variant that checks.
///
/// # Safety
/// As for the C library's.
unsafe fn checked(
    op: Op,
    file: *mut FILE,
    flag: c_int,
    format: *const c_char,
    values: *mut c_void,
) -> c_int {
    // SAFETY: the C library's function of this name has this type.
    let function = unsafe { core::mem::transmute::<*mut c_void, Checked>(VFPRINTF_CHECKED.get()) };
    // SAFETY: the program's own arguments.
    let call = || unsafe { function(file, flag, format, values) };
    if !is_looked_at(op) { call() } else { observe(op, stream(file), call, |_, _| ()) }
}

/// What entry points call with a description of their arguments: `target(named arguments) = function(…);`
macro_rules! targets {
    ($($target:ident($($arg:ident: $type:ty),+) = $function:ident($($given:expr),+);)+) => {$(
        unsafe extern "C-unwind" fn $target($($arg: $type,)+ values: *mut c_void) -> c_int {
            // SAFETY: as the C library does.
            unsafe { $function($($given,)+ values) }
        }
    )+};
}

targets! {
    printf_of(format: *const c_char) = formatted(Op::Printf, &VFPRINTF, stdout, format);
    fprintf_of(file: *mut FILE, format: *const c_char) = formatted(Op::Fprintf, &VFPRINTF, file, format);
    printf_checked_of(flag: c_int, format: *const c_char) = checked(Op::PrintfChk, stdout, flag, format);
    fprintf_checked_of(file: *mut FILE, flag: c_int, format: *const c_char)
        = checked(Op::FprintfChk, file, flag, format);
    fscanf_of(file: *mut FILE, format: *const c_char) = formatted(Op::Fscanf, &VFSCANF, file, format);
    fscanf_99_of(file: *mut FILE, format: *const c_char)
        = formatted(Op::Isoc99Fscanf, &VFSCANF_99, file, format);
    fscanf_23_of(file: *mut FILE, format: *const c_char)
        = formatted(Op::Isoc23Fscanf, &VFSCANF_23, file, format);
}

/// Entry points that describe their arguments: `$named` of them have names, in registers.
macro_rules! described {
    ($($name:ident => $target:ident, $named:literal, $last:literal;)+) => {$(
        /// As in the C library.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub(crate) unsafe extern "C-unwind" fn $name() {
            naked_asm!(
                ".cfi_startproc",
                "push rbp",
                ".cfi_def_cfa_offset 16",
                ".cfi_offset rbp, -16",
                "mov rbp, rsp",
                ".cfi_def_cfa_register rbp",
                // 176 bytes for registers, 24 for the description, 8 to stay aligned.
                "sub rsp, 208",
                "mov [rsp], rdi",
                "mov [rsp + 8], rsi",
                "mov [rsp + 16], rdx",
                "mov [rsp + 24], rcx",
                "mov [rsp + 32], r8",
                "mov [rsp + 40], r9",
                "test al, al",
                "je 2f",
                "movaps [rsp + 48], xmm0",
                "movaps [rsp + 64], xmm1",
                "movaps [rsp + 80], xmm2",
                "movaps [rsp + 96], xmm3",
                "movaps [rsp + 112], xmm4",
                "movaps [rsp + 128], xmm5",
                "movaps [rsp + 144], xmm6",
                "movaps [rsp + 160], xmm7",
                "2:",
                "mov dword ptr [rsp + 176], 8 * {named}",
                "mov dword ptr [rsp + 180], 48",
                "lea rax, [rbp + 16]",
                "mov [rsp + 184], rax",
                "mov [rsp + 192], rsp",
                concat!("lea ", $last, ", [rsp + 176]"),
                "call {target}",
                "leave",
                ".cfi_def_cfa rsp, 8",
                "ret",
                ".cfi_endproc",
                named = const $named,
                target = sym $target,
            )
        }
    )+};
}

described! {
    printf => printf_of, 1, "rsi";
    fprintf => fprintf_of, 2, "rdx";
    __printf_chk => printf_checked_of, 2, "rdx";
    __fprintf_chk => fprintf_checked_of, 3, "rcx";
    fscanf => fscanf_of, 2, "rdx";
    __isoc99_fscanf => fscanf_99_of, 2, "rdx";
    __isoc23_fscanf => fscanf_23_of, 2, "rdx";
}

/// Arguments in a row, the last one null.
type Row = *const *const c_char;

unsafe extern "C-unwind" fn execl_of(program: *const c_char, arguments: Row) -> c_int {
    // SAFETY: the row is on the stack of our caller.
    unsafe { processes::execv_as(Op::Execl, program, arguments) }
}

unsafe extern "C-unwind" fn execlp_of(program: *const c_char, arguments: Row) -> c_int {
    // SAFETY: as above.
    unsafe { processes::execvp_as(Op::Execlp, program, arguments) }
}

unsafe extern "C-unwind" fn execle_of(program: *const c_char, arguments: Row) -> c_int {
    let mut end = arguments;
    // SAFETY: the row ends with null, and the environment follows it.
    let environment = unsafe {
        while !(*end).is_null() {
            end = end.add(1);
        }
        (*end.add(1)).cast::<*const c_char>()
    };
    // SAFETY: as above.
    unsafe { processes::execve_as(Op::Execle, program, arguments, environment) }
}

/// Entry points that put their arguments in a row: those in registers go in front of those on the
/// stack, where the return address was.
macro_rules! in_a_row {
    ($($name:ident => $target:ident;)+) => {$(
        /// As in the C library.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub(crate) unsafe extern "C-unwind" fn $name() {
            naked_asm!(
                "pop rax",
                "push r9",
                "push r8",
                "push rcx",
                "push rdx",
                "push rsi",
                "mov rsi, rsp",
                // Five arguments and the address make the stack aligned again.
                "push rax",
                "call {target}",
                "pop rcx",
                "add rsp, 40",
                "push rcx",
                "ret",
                target = sym $target,
            )
        }
    )+};
}

in_a_row! {
    execl => execl_of;
    execlp => execlp_of;
    execle => execle_of;
}
