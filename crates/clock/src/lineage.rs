//! What threads are called in a trace: by their own name after those of the threads that started them,
//! `rank 3 reader 2`, so that a trace says whose reader it is.
//!
//! All threads are started in one place, so they are named there too. Unless a trace is recorded,
//! nothing is kept.

use std::cell::RefCell;

thread_local! {
    static NAME: RefCell<String> = const { RefCell::new(String::new()) };
}

/// The full name of a thread that the calling one starts; `None` unless a trace is recorded.
pub(crate) fn of_child(name: &str) -> Option<String> {
    feedline_recorder::is_recording().then(|| {
        NAME.with_borrow(|own| match own.is_empty() {
            true => name.to_owned(),
            false => format!("{own} {name}"),
        })
    })
}

/// Gives the calling thread, which has just started, its full name.
pub(crate) fn take_on(name: Option<String>) {
    if let Some(name) = name {
        feedline_recorder::name_thread(&name);
        NAME.set(name);
    }
}
