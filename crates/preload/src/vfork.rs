//! Children that run in their parent's memory until they become another program.
//!
//! What such a child does to its descriptors must not be done to the parent's table, so it is not
//! looked at, except for becoming another program. The parent is suspended meanwhile, so its thread can
//! only be told from the child by asking the kernel, which is done after a `vfork` only.

use core::sync::atomic::{AtomicU32, Ordering};

use feedline_recorder::recorder;

static GOING_ON: AtomicU32 = AtomicU32::new(0);

/// This thread is about to have such a child.
pub(crate) fn begin() {
    if !recorder().vfork_mark().replace(true) {
        GOING_ON.fetch_add(1, Ordering::Relaxed);
    }
}

/// Whether this is such a child.
#[inline]
pub(crate) fn is_child() -> bool {
    GOING_ON.load(Ordering::Relaxed) != 0 && is_child_here()
}

#[cold]
fn is_child_here() -> bool {
    let here = recorder().vfork_mark();
    if !here.get() {
        return false;
    }
    if recorder().is_this_process() {
        here.set(false);
        GOING_ON.fetch_sub(1, Ordering::Relaxed);
        return false;
    }
    true
}
