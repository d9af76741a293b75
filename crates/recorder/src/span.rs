//! Annotations: places in a program that report what happens there.
//!
//! A program that is not recorded pays one load at each place. Started by `feedline trace`, its events
//! are in the same trace as its calls.

use core::sync::atomic::{AtomicU32, Ordering};

use crate::app::{CallFacts, THREAD_CATEGORY, Tags, pack_counter, pack_span};
use crate::config::Text;
use crate::op::Op;
use crate::record::TextKind;
use crate::recorder::{Recorder, UNNAMED};
use crate::route::{Route, ticks_of};

/// Longer categories and names, together, are cut off.
const LONGEST_SITE: usize = 256;

/// A place in a program: what is reported there has this category and this name. Best a `static`.
///
/// Its text is recorded once per process, at the first event; forked children go on with the number.
#[derive(Debug)]
pub struct Site {
    category: &'static str,
    name: &'static str,
    number: AtomicU32,
}

/// When a call began; empty if it is not recorded.
#[derive(Clone, Copy, Debug)]
pub struct CallStart(u64);

/// Something that has begun, and ends when this is dropped.
#[derive(Debug)]
#[must_use = "a span ends when it is dropped"]
pub struct Span<'a> {
    site: &'a Site,
    route: Route,
    start: u64,
    /// What it is about.
    pub tags: Tags,
}

impl Site {
    /// A place; nothing happens before the first event.
    pub const fn new(category: &'static str, name: &'static str) -> Self {
        Self { category, name, number: AtomicU32::new(UNNAMED) }
    }

    /// Something begins.
    #[inline]
    pub fn begin(&self) -> Span<'_> {
        let route = Route::now();
        Span { site: self, route, start: route.ticks(), tags: Tags::NONE }
    }

    /// Something has happened that took no time.
    #[inline]
    pub fn mark(&self, tags: Tags) {
        let mut span = self.begin();
        span.tags = tags;
        if span.route != Route::Nowhere {
            span.record(span.start);
        }
        span.cancel();
    }

    /// Something has this value now.
    #[inline]
    pub fn count(&self, value: f64) {
        let route = Route::now();
        if route != Route::Nowhere
            && let Some(number) = self.number(route)
        {
            route.counter(number, value);
        }
    }

    /// A call on a file begins. Only a program that started its own recorder reports calls: in others
    /// they are seen where they are made.
    #[inline]
    pub fn begin_call() -> CallStart {
        CallStart(match Route::now() {
            Route::Own => Route::Own.ticks(),
            Route::Library | Route::Nowhere => 0,
        })
    }

    /// That call has ended. `facts` are asked for only if it is recorded.
    #[inline]
    pub fn end_call(&self, CallStart(start): CallStart, facts: impl FnOnce() -> CallFacts) {
        if start != 0 {
            let end = Route::Own.ticks();
            if let Some(number) = self.number(Route::Own) {
                Route::Own.call(number, (start, end), &facts());
            }
        }
    }

    /// A call has ended just now that took `duration_ns`, as measured by the caller.
    #[inline]
    pub fn ended_call(&self, duration_ns: u64, facts: impl FnOnce() -> CallFacts) {
        if let CallStart(end @ 1..) = Self::begin_call()
            && let Some(number) = self.number(Route::Own)
        {
            let start = end.saturating_sub(ticks_of(duration_ns));
            Route::Own.call(number, (start, end), &facts());
        }
    }

    #[inline]
    fn number(&self, route: Route) -> Option<u32> {
        match self.number.load(Ordering::Relaxed) {
            UNNAMED => self.register(route),
            number => Some(number),
        }
    }

    #[cold]
    fn register(&self, route: Route) -> Option<u32> {
        let number = route.register(site_text(self.category, self.name).bytes());
        // Two threads may both get here: both numbers name the same.
        self.number.store(number, Ordering::Relaxed);
        (number != UNNAMED).then_some(number)
    }
}

impl Span<'_> {
    /// Says what it is about.
    #[inline]
    pub fn tag(&mut self, tags: Tags) {
        self.tags = tags;
    }

    /// Whether anybody records it; else what only it needs can be left out.
    #[inline]
    pub fn is_recorded(&self) -> bool {
        self.route != Route::Nowhere
    }

    /// Ends the span before its scope does.
    #[inline]
    pub fn end(self) {}

    /// It was none: nothing is recorded.
    #[inline]
    pub fn cancel(mut self) {
        self.route = Route::Nowhere;
    }

    fn record(&self, end: u64) {
        if let Some(number) = self.site.number(self.route) {
            self.route.span(number, (self.start, end), &self.tags);
        }
    }
}

impl Drop for Span<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.route != Route::Nowhere {
            self.record(self.route.ticks());
        }
    }
}

/// Whether events of this program are recorded, by itself or by the preload library.
#[inline]
pub fn is_recording() -> bool {
    Route::now() != Route::Nowhere
}

/// Says what the calling thread is, for people who look at the trace: `rank 3 reader 2`.
pub fn name_thread(name: &str) {
    let route = Route::now();
    if route == Route::Nowhere {
        return;
    }
    let number = route.register(site_text(THREAD_CATEGORY, name).bytes());
    if number != UNNAMED {
        let now = route.ticks();
        route.span(number, (now, now), &Tags::NONE);
    }
}

impl Recorder {
    /// Records a span of a site that was registered as a text.
    #[inline]
    pub fn span(&self, site: u32, times: (u64, u64), tags: &Tags) {
        self.commit(Op::Span, &pack_span(site, times, tags));
    }

    /// Records the value of a counter, likewise.
    #[inline]
    pub fn counter(&self, site: u32, at: u64, value: f64) {
        self.commit(Op::Counter, &pack_counter(site, at, value));
    }

    /// The number of a file's name for [`CallFacts`]; `base` is the number of the folder that it
    /// continues. [`UNNAMED`] unless this program records for itself.
    pub fn file_text(&self, kind: TextKind, base: u32, name: &[u8]) -> u32 {
        if Route::now() == Route::Own { self.text(kind, base, name) } else { UNNAMED }
    }
}

fn site_text(category: &str, name: &str) -> Text<LONGEST_SITE> {
    let mut text = Text::EMPTY;
    let mut add = |part: &str| {
        let room = LONGEST_SITE - 1 - text.bytes().len();
        let end = (0..=part.len().min(room)).rev().find(|end| part.is_char_boundary(*end));
        text.push(part.get(..end.unwrap_or(0)).unwrap_or_default().as_bytes());
    };
    add(category);
    add("\0");
    add(name);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sites_are_cut_off_at_a_character() {
        assert_eq!(site_text("data", "item").bytes(), b"data\0item");
        let long = "ä".repeat(200);
        let text = site_text("c", &long);
        assert_eq!(text.bytes().len(), 2 + 252);
        assert!(std::str::from_utf8(text.bytes()).is_ok());
    }

    /// The recorder of this test program is never started.
    #[test]
    fn nobody_records() {
        static SITE: Site = Site::new("a", "b");
        assert!(!is_recording());
        let span = SITE.begin();
        assert!(!span.is_recorded() && span.start == 0);
        span.end();
        SITE.mark(Tags::NONE);
        SITE.count(1.0);
        SITE.end_call(Site::begin_call(), CallFacts::default);
        SITE.ended_call(1, CallFacts::default);
        name_thread("main");
        assert_eq!(SITE.number.load(Ordering::Relaxed), UNNAMED);
    }
}
