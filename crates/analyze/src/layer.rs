//! What an event is about: the layer of the stack that it belongs to, and what a wait for it is called.
//!
//! Known by category and name alone. The words are those of DLIO, DFTracer, Feedline's own runs and of
//! PyTorch; categories compare without case, as other analyzers do.

use feedline_recorder::{Class, OPS};
use feedline_trace::EventKind;

use crate::named::named_enum;

/// How many layers there are.
pub const LAYERS: usize = StackLayer::ALL.len();
/// How many causes there are.
pub const CAUSES: usize = StallCause::ALL.len();

named_enum! {
    /// A layer of the stack, from the top down.
    pub enum StackLayer {
        /// The whole program, as it says itself.
        App = "app",
        /// Epochs, blocks, training and evaluation.
        Pipeline = "pipeline",
        /// The consumer waits for its next batch.
        Fetch = "fetch",
        /// The accelerator's work.
        Compute = "compute",
        /// Collectives.
        Communication = "communication",
        /// Copies to and from the accelerator.
        Device = "device",
        /// Saving and loading checkpoints.
        Checkpoint = "checkpoint",
        /// A worker's work on a batch.
        Batch = "batch",
        /// A worker's work on a sample.
        Sample = "sample",
        /// Reading and decoding of a sample's format.
        Decode = "decode",
        /// Preprocessing, augmentation.
        Transform = "transform",
        /// Samples are put together into a batch.
        Collate = "collate",
        /// Calls on files.
        Storage = "storage",
        /// Requests to object stores.
        ObjectStore = "object-store",
        /// Processes that begin, end, or are waited for.
        Process = "process",
        /// Anything else that a program said of itself.
        Other = "other",
        /// Names, metadata, counters: nothing that takes time.
        Meta = "meta",
    }
}

impl StackLayer {
    /// Whether it is input and output: of files or objects.
    pub fn is_io(self) -> bool {
        matches!(self, Self::Storage | Self::ObjectStore)
    }
}

named_enum! {
    /// What a stalled consumer waits for.
    pub enum StallCause {
        /// Opening, closing, listing files and asking about them.
        Open = "open",
        /// Reading files.
        Read = "read",
        /// Writing files, and waiting until they are on the device.
        Write = "write",
        /// Requests to object stores.
        ObjectStore = "object-store",
        /// Bytes are there and are checked or decoded.
        Decode = "decode",
        /// Decoded samples are preprocessed.
        Transform = "transform",
        /// The worker's own code: in none of the others while it works on the batch.
        Python = "python",
        /// Samples are put together into a batch.
        Collate = "collate",
        /// The batch is ready and on its way: queues, pickling, pinned memory.
        HandOff = "hand-off",
        /// No worker had begun: all were busy with other batches.
        Workers = "workers",
        /// No worker had begun although one was free: it had not been told to, or could not in time.
        Prefetch = "prefetch",
        /// Workers were not alive yet.
        StartUp = "start-up",
        /// Another rank was late.
        Peer = "peer",
        /// The trace does not say.
        Unknown = "unknown",
    }
}

/// One kind of event: what all events of this category and name have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventType {
    /// The kind of event.
    pub kind: EventKind,
    /// The category, as the trace has it.
    pub category: String,
    /// The name, as the trace has it.
    pub name: String,
    /// What the call of this name does, if it is one of files or objects.
    pub class: Option<Class>,
    /// Its layer.
    pub layer: StackLayer,
    /// What a wait for it is called when it is the innermost thing that a worker does; none for what is
    /// not a worker's business.
    pub cause: Option<StallCause>,
}

/// Which number of an event says how many bytes it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Measure {
    /// What the call returned.
    Result,
    /// What it was asked for, or what the program gave.
    Size,
    /// The value of a counter, bit by bit.
    Value,
    /// None.
    Nothing,
}

/// Categories whose events are requests to object stores.
const OBJECT_STORES: [&str; 6] = ["s3", "gcs", "azure", "http", "object_store", "objectstore"];
/// Categories whose events are calls on files.
const FILES: [&str; 6] = ["posix", "stdio", "io_uring", "mpi-io", "mpiio", "hdf5"];

impl EventType {
    /// Recognizes events by their category and name.
    pub fn new(kind: EventKind, category: &str, name: &str) -> Self {
        let known = category.to_ascii_lowercase();
        let is_file = FILES.contains(&known.as_str());
        let is_object = OBJECT_STORES.contains(&known.as_str()) || known == "memory";
        let class = if is_file || is_object { class_of(name) } else { None };
        let layer = match kind {
            EventKind::Counter | EventKind::Instant => StackLayer::Meta,
            _ if is_object => StackLayer::ObjectStore,
            _ if is_file && matches!(class, Some(Class::Process)) => StackLayer::Process,
            _ if is_file => StackLayer::Storage,
            _ => layer_of(&known, &name.to_ascii_lowercase()),
        };
        let cause = cause_of(layer, class);
        Self { kind, category: category.to_owned(), name: name.to_owned(), class, layer, cause }
    }

    /// Whether it only says what something is called: no event of the program.
    pub(crate) fn is_metadata(&self) -> bool {
        matches!(self.category.as_str(), "thread" | "dftracer")
    }

    /// Which field of an event holds its bytes.
    pub(crate) fn measure(&self) -> Measure {
        match (self.kind, self.class) {
            (EventKind::Counter, _) => Measure::Value,
            (_, Some(class)) if class.moves_bytes() => Measure::Result,
            // Mapped, not moved: reports tell it apart by the call.
            (_, Some(Class::Map)) if self.name.starts_with("mmap") => Measure::Size,
            (EventKind::Span, _) => Measure::Size,
            _ => Measure::Nothing,
        }
    }
}

/// What a call of this name does, whatever tool wrote it down.
fn class_of(name: &str) -> Option<Class> {
    let known = OPS.iter().find(|op| op.info().name == name).map(|op| op.info().class);
    known.or_else(|| {
        let lower = name.to_ascii_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
        Some(match () {
            () if has(&["readdir", "scandir", "opendir", "mkdir", "rmdir", "list"]) => {
                Class::Directory
            }
            () if has(&["sync", "flush"]) => Class::Sync,
            () if has(&["read", "get", "recv"]) => Class::Read,
            () if has(&["write", "put", "send"]) => Class::Write,
            () if has(&["open", "creat"]) => Class::Open,
            () if has(&["close"]) => Class::Close,
            () if has(&["seek", "tell"]) => Class::Seek,
            () if has(&["stat", "access", "head"]) => Class::Stat,
            () if has(&["map"]) => Class::Map,
            () if has(&["unlink", "rename", "link", "remove", "delete"]) => Class::Namespace,
            () if has(&["fork", "exec", "wait", "spawn"]) => Class::Process,
            () => return None,
        })
    })
}

/// The layer of an event that a program told. Both words are in lower case.
fn layer_of(category: &str, name: &str) -> StackLayer {
    let starts = |words: &[&str]| words.iter().any(|word| category.starts_with(word));
    match category {
        "thread" | "dftracer" => return StackLayer::Meta,
        "ai_root" | "dlio_benchmark" | "app" if category != "app" || name == "ai_root" => {
            return StackLayer::App;
        }
        "pipeline" => return StackLayer::Pipeline,
        "comm" | "communication" | "mpi" | "nccl" => return StackLayer::Communication,
        "device" | "cuda_memcpy" | "cuda_memcpy_p2p" | "gpu_memcpy" | "gpu_memset" => {
            return StackLayer::Device;
        }
        "checkpoint" => return StackLayer::Checkpoint,
        "reader" | "decode" => return decoding(name),
        "transform" | "preprocess" => return StackLayer::Transform,
        "collate" => return StackLayer::Collate,
        _ => {}
    }
    if starts(&["compute", "cuda_kernel", "ai_framework", "kernel"]) {
        return if name.contains("trace_object") || name.contains("init") {
            StackLayer::Other
        } else {
            StackLayer::Compute
        };
    }
    if matches!(category, "dataloader" | "data_loader" | "data" | "loader") {
        return loading(name);
    }
    // Programs that were annotated by hand choose their own categories.
    match name {
        "fetch.iter" | "loop.iter" | "<module>.iter" => StackLayer::Fetch,
        // What PyTorch's profiler calls it.
        _ if name.starts_with("enumerate(dataloader)") => StackLayer::Fetch,
        _ if name.contains("__getitem__") => StackLayer::Sample,
        _ if name.contains("collate") => StackLayer::Collate,
        _ if name.contains("preprocess") || name.contains("transform") => StackLayer::Transform,
        _ if name.contains("decode") => StackLayer::Decode,
        _ => StackLayer::Other,
    }
}

fn loading(name: &str) -> StackLayer {
    match name {
        "batch" => StackLayer::Batch,
        "fetch" | "fetch.iter" => StackLayer::Fetch,
        "item" => StackLayer::Sample,
        _ if name.contains("collate") => StackLayer::Collate,
        _ if name.contains("preprocess") || name.contains("transform") => StackLayer::Transform,
        _ if name.ends_with(".iter") => StackLayer::Fetch,
        _ if name.contains("__getitem__") || name.ends_with("item") => StackLayer::Sample,
        _ if name.contains("decode") || name.contains("read") => StackLayer::Decode,
        _ => StackLayer::Other,
    }
}

fn decoding(name: &str) -> StackLayer {
    if name.contains("preprocess") || name.contains("transform") {
        StackLayer::Transform
    } else {
        StackLayer::Decode
    }
}

fn cause_of(layer: StackLayer, class: Option<Class>) -> Option<StallCause> {
    match layer {
        StackLayer::ObjectStore => Some(StallCause::ObjectStore),
        StackLayer::Storage => Some(match class {
            Some(Class::Read | Class::Map | Class::Copy | Class::Wait | Class::Submit) => {
                StallCause::Read
            }
            Some(Class::Write | Class::Sync) => StallCause::Write,
            _ => StallCause::Open,
        }),
        StackLayer::Batch | StackLayer::Sample | StackLayer::Other => Some(StallCause::Python),
        StackLayer::Decode => Some(StallCause::Decode),
        StackLayer::Transform => Some(StallCause::Transform),
        StackLayer::Collate => Some(StallCause::Collate),
        StackLayer::App
        | StackLayer::Pipeline
        | StackLayer::Fetch
        | StackLayer::Compute
        | StackLayer::Communication
        | StackLayer::Device
        | StackLayer::Checkpoint
        | StackLayer::Process
        | StackLayer::Meta => None,
    }
}
