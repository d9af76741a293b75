//! Locks that survive a panic of another thread.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex whose value stays valid even if a thread panics while it holds the lock.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
