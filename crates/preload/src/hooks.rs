//! The hooks, by what they are about.

mod copies;
mod descriptors;
mod directories;
mod files;
mod memory;
mod metadata;
mod processes;
mod reads;
mod sandbox;
mod streams;
mod text_streams;
mod uring;
#[cfg(target_arch = "x86_64")]
mod variadic;
mod writes;

/// Looks up everything that programs may mean, but for liburing's functions, which few do.
pub(crate) fn resolve() {
    copies::resolve();
    descriptors::resolve();
    descriptors::resolve_makers();
    directories::resolve();
    files::resolve();
    memory::resolve();
    metadata::resolve();
    processes::resolve();
    processes::resolve_others();
    reads::resolve();
    sandbox::resolve();
    streams::resolve();
    text_streams::resolve();
    writes::resolve();
    #[cfg(target_arch = "x86_64")]
    variadic::resolve();
}
