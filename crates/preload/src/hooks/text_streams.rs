//! Buffered streams: characters, lines and formatted text.

use core::ffi::{CStr, c_char, c_int, c_void};

use feedline_recorder::CallRecord;
use libc::{FILE, size_t, ssize_t};

use crate::hook::{Subject, fd, hooks, stream};

/// One character, or a word of four bytes: done or not.
fn piece(record: &mut CallRecord, bytes: u64, result: c_int) {
    record.size = bytes;
    record.result = if result == libc::EOF { 0 } else { bytes.cast_signed() };
    // The end of a file is no error, and `errno` may be an older one.
    record.errno = 0;
}

/// One character or word put: done, or an error.
fn placed(record: &mut CallRecord, bytes: u64, result: c_int) {
    record.size = bytes;
    record.result = if result == libc::EOF { -1 } else { bytes.cast_signed() };
}

fn line(record: &mut CallRecord, asked: c_int, text: *const c_char) {
    record.size = u64::from(asked.max(0).cast_unsigned());
    record.result = 0;
    record.errno = 0;
    if !text.is_null() {
        // SAFETY: the C library has just put a NUL after it.
        record.result = unsafe { CStr::from_ptr(text) }.to_bytes().len().cast_signed() as i64;
    }
}

fn put(record: &mut CallRecord, text: *const c_char, newline: u64, result: c_int) {
    // SAFETY: the C library has just read it to its NUL.
    let length = unsafe { CStr::from_ptr(text) }.to_bytes().len() as u64 + newline;
    record.size = length;
    record.result = if result < 0 { -1 } else { length.cast_signed() };
}

fn got(record: &mut CallRecord, result: ssize_t) {
    record.size = result.max(0).cast_unsigned() as u64;
    record.result = record.size.cast_signed();
    record.errno = 0;
}

/// Standard input and output, by the descriptors that they have unless they were reopened.
const INPUT: c_int = 0;
const OUTPUT: c_int = 1;

fn input() -> Subject {
    fd(INPUT)
}

fn output() -> Subject {
    fd(OUTPUT)
}

hooks! {
    fn fgetc(file: *mut FILE) -> c_int
        = Fgetc | getc = Getc | _IO_getc = IoGetc | fgetc_unlocked = FgetcUnlocked | getc_unlocked = GetcUnlocked,
        stream(file), |record, c| piece(record, 1, c);
    fn getchar() -> c_int = Getchar | getchar_unlocked = GetcharUnlocked, input(), |record, c| piece(record, 1, c);
    fn getw(file: *mut FILE) -> c_int = Getw, stream(file), |record, c| piece(record, 4, c);
    fn fputc(c: c_int, file: *mut FILE) -> c_int
        = Fputc | putc = Putc | _IO_putc = IoPutc | fputc_unlocked = FputcUnlocked | putc_unlocked = PutcUnlocked,
        stream(file), |record, c| placed(record, 1, c);
    fn putchar(c: c_int) -> c_int
        = Putchar | putchar_unlocked = PutcharUnlocked, output(), |record, c| placed(record, 1, c);
    fn putw(w: c_int, file: *mut FILE) -> c_int = Putw, stream(file), |record, c| placed(record, 4, c);
    fn fgets(to: *mut c_char, size: c_int, file: *mut FILE) -> *mut c_char
        = Fgets | fgets_unlocked = FgetsUnlocked, stream(file), |record, text| line(record, size, text);
    fn __fgets_chk(to: *mut c_char, room: size_t, size: c_int, file: *mut FILE) -> *mut c_char
        = FgetsChk | __fgets_unlocked_chk = FgetsUnlockedChk, stream(file), |record, text| line(record, size, text);
    fn getline(place: *mut *mut c_char, size: *mut size_t, file: *mut FILE) -> ssize_t
        = Getline, stream(file), got;
    fn getdelim(place: *mut *mut c_char, size: *mut size_t, end: c_int, file: *mut FILE) -> ssize_t
        = Getdelim | __getdelim = GetdelimAlias, stream(file), got;
    fn fputs(text: *const c_char, file: *mut FILE) -> c_int
        = Fputs | fputs_unlocked = FputsUnlocked, stream(file), |record, result| put(record, text, 0, result);
    fn puts(text: *const c_char) -> c_int = Puts, output(), |record, result| put(record, text, 1, result);
    fn ungetc(c: c_int, file: *mut FILE) -> c_int = Ungetc, stream(file), |_, _| ();
    fn vfprintf(file: *mut FILE, format: *const c_char, values: *mut c_void) -> c_int
        = Vfprintf | vfscanf = Vfscanf | __isoc99_vfscanf = Isoc99Vfscanf, stream(file), |_, _| ();
    fn vprintf(format: *const c_char, values: *mut c_void) -> c_int = Vprintf, output(), |_, _| ();
    fn __vfprintf_chk(file: *mut FILE, flag: c_int, format: *const c_char, values: *mut c_void) -> c_int
        = VfprintfChk, stream(file), |_, _| ();
    fn __vprintf_chk(flag: c_int, format: *const c_char, values: *mut c_void) -> c_int
        = VprintfChk, output(), |_, _| ();
}

/// What older C libraries do not have. Looking for it in vain would take memory, so it is looked up when
/// a program calls it.
mod of_c23 {
    use super::{FILE, c_char, c_int, c_void, hooks, stream};

    hooks! {
        fn __isoc23_vfscanf(file: *mut FILE, format: *const c_char, values: *mut c_void) -> c_int
            = Isoc23Vfscanf, stream(file), |_, _| ();
    }
    const _: fn() = resolve;
}
