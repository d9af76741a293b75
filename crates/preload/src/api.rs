//! What annotated programs call: the functions of `include/feedline.h`, and those of the Rust API of
//! programs that do not record for themselves.
//!
//! They are looked for by name and may be missing, so none of them may ever change its meaning; what
//! comes later gets fields at the end of the event, which says how long it is.

use core::ffi::c_int;

use feedline_recorder::{ApiEvent, Op, Tags, TextKind, UNNAMED, now, recorder};

use crate::hook::is_wanted;

/// Whether events are recorded.
#[unsafe(no_mangle)]
extern "C" fn feedline_api_is_on() -> c_int {
    c_int::from(recorder().is_on())
}

/// The number of a site, whose category and name have a NUL between them; 0 if recording is off. It stays
/// the same in forked children.
///
/// # Safety
/// `text` must be readable for `length` bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn feedline_api_site(text: *const u8, length: usize) -> u32 {
    if !recorder().is_on() || text.is_null() {
        return UNNAMED;
    }
    // SAFETY: the caller vouches for it.
    let text = unsafe { core::slice::from_raw_parts(text, length) };
    recorder().text(TextKind::Span, UNNAMED, text)
}

/// The time, as events have it.
#[unsafe(no_mangle)]
extern "C" fn feedline_api_now() -> u64 {
    now()
}

/// Records an event.
///
/// # Safety
/// `event` must be readable for as many bytes as it says.
#[unsafe(no_mangle)]
unsafe extern "C" fn feedline_api_put(event: *const ApiEvent) {
    if !recorder().is_on() || event.is_null() {
        return;
    }
    // SAFETY: the caller vouches for it; the length is the first field.
    let bytes = unsafe { (*event).bytes } as usize;
    if bytes < size_of::<ApiEvent>() {
        return;
    }
    // SAFETY: as above, and it is as long as this version knows it.
    let event = unsafe { &*event };
    if event.site == UNNAMED {
        return;
    }
    match event.kind {
        ApiEvent::SPAN if !is_wanted(Op::Span) => {}
        ApiEvent::COUNTER if !is_wanted(Op::Counter) => {}
        ApiEvent::SPAN => recorder().span(event.site, (event.start, event.end), &tags(event)),
        ApiEvent::COUNTER => recorder().counter(event.site, event.start, event.value),
        _ => {}
    }
}

fn tags(event: &ApiEvent) -> Tags {
    let known = |value: i64| (value >= 0).then_some(value);
    Tags {
        epoch: known(event.epoch),
        step: known(event.step),
        sample: u64::try_from(event.sample).ok(),
        size: u64::try_from(event.size).ok(),
    }
}
