//! Where a program's own events go: to the recorder in this very program, if it was started, or to the
//! preload library, if the program was started with it.
//!
//! Both are looked for once. Every event looks at one byte first; without a recorder, that is all.

use core::ffi::CStr;
use core::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};

use crate::app::{self, CallFacts, Tags};
use crate::op::Op;
use crate::record::TextKind;
use crate::recorder::{UNNAMED, recorder};
use crate::ticks::{self, ClockPair};

/// Nobody has looked yet.
const UNKNOWN: u8 = 0;
const NOBODY: u8 = 1;
const OWN: u8 = 2;
const LIBRARY: u8 = 3;

static ROUTE: AtomicU8 = AtomicU8::new(UNKNOWN);
/// Both clocks when this program's own recorder was started.
static OWN_TICKS: AtomicU64 = AtomicU64::new(0);
static OWN_NS: AtomicU64 = AtomicU64::new(0);
/// Ticks of a nanosecond since then, times 2^[`RATE_BITS`]; 0 until that is well known.
static RATE: AtomicU64 = AtomicU64::new(0);
const RATE_BITS: u32 = 32;
/// A rate that was measured over so long is right to some millionths.
const RATE_NS: u64 = 10_000_000;
/// The functions of the library, once `ROUTE` says that there is one.
static LIBRARY_SITE: AtomicUsize = AtomicUsize::new(0);
static LIBRARY_NOW: AtomicUsize = AtomicUsize::new(0);
static LIBRARY_PUT: AtomicUsize = AtomicUsize::new(0);

type IsOn = unsafe extern "C" fn() -> i32;
type RegisterSite = unsafe extern "C" fn(*const u8, usize) -> u32;
type Now = unsafe extern "C" fn() -> u64;
type Put = unsafe extern "C" fn(*const ApiEvent);

/// An event on its way into the preload library: `struct feedline_event` of `feedline.h`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ApiEvent {
    /// Bytes of this structure: later versions may be longer.
    pub bytes: u32,
    /// 1 for a span, 2 for a counter.
    pub kind: u32,
    /// The number that registering the site gave.
    pub site: u32,
    /// Not used.
    pub reserved: u32,
    /// Ticks at the begin.
    pub start: u64,
    /// Ticks at the end.
    pub end: u64,
    /// Negative if there is none, as the three below.
    pub epoch: i64,
    /// Step, as the program counts it.
    pub step: i64,
    /// Number of the sample.
    pub sample: i64,
    /// Size in bytes.
    pub size: i64,
    /// What a counter counts.
    pub value: f64,
}

impl ApiEvent {
    /// The kind of spans.
    pub const SPAN: u32 = 1;
    /// The kind of counters.
    pub const COUNTER: u32 = 2;
}

/// The recorder that takes the events of this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    Nowhere,
    Own,
    Library,
}

impl Route {
    #[inline]
    pub(crate) fn now() -> Self {
        match ROUTE.load(Ordering::Relaxed) {
            NOBODY => Self::Nowhere,
            OWN => Self::Own,
            LIBRARY => Self::Library,
            _ => look(),
        }
    }

    /// This program's own recorder is on from now on.
    pub(crate) fn set_own() {
        let now = ClockPair::now();
        OWN_TICKS.store(now.ticks, Ordering::Relaxed);
        OWN_NS.store(now.monotonic_ns, Ordering::Relaxed);
        ROUTE.store(OWN, Ordering::Release);
    }

    #[inline]
    pub(crate) fn ticks(self) -> u64 {
        match self {
            Self::Nowhere => 0,
            Self::Own => ticks::now(),
            // SAFETY: `look` has found it under this type.
            Self::Library => unsafe { function::<Now>(&LIBRARY_NOW)() },
        }
    }

    /// The number of a site, [`UNNAMED`] if it was dropped.
    pub(crate) fn register(self, text: &[u8]) -> u32 {
        match self {
            Self::Nowhere => UNNAMED,
            Self::Own => recorder().text(TextKind::Span, UNNAMED, text),
            // SAFETY: `look` has found it under this type; the text is as long as said.
            Self::Library => unsafe {
                function::<RegisterSite>(&LIBRARY_SITE)(text.as_ptr(), text.len())
            },
        }
    }

    #[inline]
    pub(crate) fn span(self, site: u32, times: (u64, u64), tags: &Tags) {
        match self {
            Self::Nowhere => {}
            Self::Own => recorder().span(site, times, tags),
            Self::Library => put(&ApiEvent {
                epoch: tags.epoch.unwrap_or(-1),
                step: tags.step.unwrap_or(-1),
                sample: below_zero_if_none(tags.sample),
                size: below_zero_if_none(tags.size),
                ..event(ApiEvent::SPAN, site, times)
            }),
        }
    }

    pub(crate) fn counter(self, site: u32, value: f64) {
        let at = self.ticks();
        match self {
            Self::Nowhere => {}
            Self::Own => recorder().counter(site, at, value),
            Self::Library => {
                put(&ApiEvent { value, ..event(ApiEvent::COUNTER, site, (at, at)) });
            }
        }
    }

    /// Calls are this recorder's alone: the library has hooks for them.
    #[inline]
    pub(crate) fn call(self, site: u32, times: (u64, u64), facts: &CallFacts) {
        if self == Self::Own {
            recorder().commit(Op::AppCall, &app::pack_call(site, times, facts));
        }
    }
}

fn event(kind: u32, site: u32, (start, end): (u64, u64)) -> ApiEvent {
    let bytes = size_of::<ApiEvent>() as u32;
    let (epoch, step, sample, size) = (-1, -1, -1, -1);
    ApiEvent { bytes, kind, site, reserved: 0, start, end, epoch, step, sample, size, value: 0.0 }
}

fn below_zero_if_none(value: Option<u64>) -> i64 {
    value.map_or(-1, |value| i64::try_from(value).unwrap_or(i64::MAX))
}

fn put(event: &ApiEvent) {
    // SAFETY: `look` has found it under this type; the event says how long it is.
    unsafe { function::<Put>(&LIBRARY_PUT)(event) };
}

/// The function at an address that `look` has stored.
///
/// # Safety
/// `F` must be the type of the function, and `look` must have found it.
unsafe fn function<F: Copy>(place: &AtomicUsize) -> F {
    const { assert!(size_of::<F>() == size_of::<usize>()) };
    let address = core::ptr::with_exposed_provenance::<u8>(place.load(Ordering::Relaxed));
    // SAFETY: the caller vouches for the type; the address is not null.
    unsafe { core::mem::transmute_copy(&address) }
}

/// So many nanoseconds in ticks of this program's own recorder.
#[inline]
pub(crate) fn ticks_of(duration_ns: u64) -> u64 {
    if !ticks::is_counter() {
        return duration_ns;
    }
    let rate = match RATE.load(Ordering::Relaxed) {
        0 => measure_rate(),
        rate => rate,
    };
    ((u128::from(duration_ns) * u128::from(rate)) >> RATE_BITS) as u64
}

#[cold]
fn measure_rate() -> u64 {
    let now = ClockPair::now();
    let ns = now.monotonic_ns.saturating_sub(OWN_NS.load(Ordering::Relaxed)).max(1);
    let ticks = now.ticks.saturating_sub(OWN_TICKS.load(Ordering::Relaxed));
    let rate = ((u128::from(ticks) << RATE_BITS) / u128::from(ns)) as u64;
    if ns > RATE_NS {
        RATE.store(rate, Ordering::Relaxed);
    }
    rate
}

#[cold]
fn look() -> Route {
    let names = [c"feedline_api_site", c"feedline_api_now", c"feedline_api_put"];
    let found = names.map(find);
    let is_on = match find(c"feedline_api_is_on") {
        0 => false,
        // SAFETY: the library gives this function this type; it is loaded for good.
        address => unsafe { core::mem::transmute::<usize, IsOn>(address)() != 0 },
    };
    let route = if is_on && found.iter().all(|address| *address != 0) { LIBRARY } else { NOBODY };
    for (place, address) in [&LIBRARY_SITE, &LIBRARY_NOW, &LIBRARY_PUT].into_iter().zip(found) {
        place.store(address, Ordering::Relaxed);
    }
    // If the own recorder was started meanwhile, that counts.
    _ = ROUTE.compare_exchange(UNKNOWN, route, Ordering::AcqRel, Ordering::Acquire);
    match ROUTE.load(Ordering::Acquire) {
        OWN => Route::Own,
        LIBRARY => Route::Library,
        _ => Route::Nowhere,
    }
}

fn find(name: &CStr) -> usize {
    // SAFETY: the name ends with NUL.
    unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }.expose_provenance()
}
