//! The functions that programs meant.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

/// The next function of the same name after ours, looked up once.
pub(crate) struct Real {
    name: &'static CStr,
    place: AtomicPtr<c_void>,
}

impl Real {
    pub(crate) const fn new(name: &'static CStr) -> Self {
        Self { name, place: AtomicPtr::new(ptr::null_mut()) }
    }

    /// For macros, which make texts of names; the text ends with its only NUL.
    pub(crate) const fn named(name: &'static str) -> Self {
        match CStr::from_bytes_with_nul(name.as_bytes()) {
            Ok(name) => Self::new(name),
            Err(_) => panic!(),
        }
    }

    /// Where it is. A program that calls a function which its C library does not have would not have
    /// started, so there is always one by the time it is called.
    #[inline]
    pub(crate) fn get(&self) -> *mut c_void {
        let place = self.place.load(Ordering::Relaxed);
        if place.is_null() { self.resolve() } else { place }
    }

    /// Looks it up. All are looked up when the library is loaded, since a signal handler or a forked
    /// child must not do it; calls from other libraries' own start may come before that.
    #[cold]
    pub(crate) fn resolve(&self) -> *mut c_void {
        // SAFETY: the name ends with NUL; `dlsym` is not one of our hooks.
        let place = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        self.place.store(place, Ordering::Relaxed);
        place
    }

    /// Where it is, for functions of a library that may come later and may be out of sight: loaded by
    /// another one for itself alone. Null if no library has it.
    #[inline]
    pub(crate) fn get_anywhere(&self) -> *mut c_void {
        let place = self.place.load(Ordering::Relaxed);
        if place.is_null() { self.search() } else { place }
    }

    #[cold]
    fn search(&self) -> *mut c_void {
        let mut place = self.resolve();
        let mut objects = Objects { names: [ptr::null(); 512], count: 0 };
        if place.is_null() {
            // SAFETY: the function takes what it is given here.
            unsafe { libc::dl_iterate_phdr(Some(take_name), (&raw mut objects).cast()) };
        }
        for name in objects.names.iter().take(objects.count) {
            if !place.is_null() {
                break;
            }
            // SAFETY: the names stay while their objects are loaded, which is the program's business.
            let handle = unsafe { libc::dlopen(*name, libc::RTLD_NOLOAD | libc::RTLD_LAZY) };
            if !handle.is_null() {
                // SAFETY: the name ends with NUL.
                let found = unsafe { libc::dlsym(handle, self.name.as_ptr()) };
                if !is_ours(found) {
                    place = found;
                }
                // SAFETY: ours, from above.
                unsafe { libc::dlclose(handle) };
            }
        }
        // What was looked for in vain must not be the program's error.
        // SAFETY: takes no arguments.
        unsafe { libc::dlerror() };
        self.place.store(place, Ordering::Relaxed);
        place
    }
}

/// Names of loaded objects, as the loader keeps them.
struct Objects {
    names: [*const c_char; 512],
    count: usize,
}

unsafe extern "C" fn take_name(
    object: *mut libc::dl_phdr_info,
    _bytes: libc::size_t,
    objects: *mut c_void,
) -> c_int {
    // SAFETY: `search` gives this.
    let objects = unsafe { &mut *objects.cast::<Objects>() };
    // SAFETY: the loader gives a valid object.
    let name = unsafe { (*object).dlpi_name };
    // The program itself has no name; what it has was found before.
    if !name.is_null()
        // SAFETY: the loader's names end with NUL.
        && unsafe { *name } != 0
        && let Some(place) = objects.names.get_mut(objects.count)
    {
        *place = name;
        objects.count += 1;
    }
    0
}

/// Whether a function is one of this library's own.
fn is_ours(place: *mut c_void) -> bool {
    let object_of = |address: *const c_void| {
        // SAFETY: all fields may be zeros.
        let mut facts: libc::Dl_info = unsafe { core::mem::zeroed() };
        // SAFETY: valid for writing; any address may be asked for.
        unsafe { libc::dladdr(address, &raw mut facts) };
        facts.dli_fbase
    };
    object_of(place) == object_of((is_ours as *const ()).cast())
}

/// A module of functions by their own names, and a way to look all of them up.
macro_rules! named {
    ($module:ident: $($name:ident)+) => {
        #[allow(non_upper_case_globals, reason = "named as the functions that they lead to")]
        mod $module {
            use $crate::real::Real;
            $(pub(super) static $name: Real = Real::named(concat!(stringify!($name), "\0"));)+
            /// Looks all of them up.
            pub(crate) fn resolve() {
                for real in [$(&$name),+] {
                    real.resolve();
                }
            }
        }
    };
}
pub(crate) use named;
