//! Reads through io_uring: rings, a pool of them, and a ring with buffers of its own.
//!
//! The kernel writes to the memory of a read until it reports the read's end, so no function here
//! returns or frees that memory earlier. A ring that the kernel suddenly refuses to enter is never
//! entered again, but reads that the kernel had already accepted are still waited for.
#![allow(unsafe_code)]

use std::fs::File;
use std::io::{self, ErrorKind};
use std::marker::PhantomData;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::sync::Mutex;

use io_uring::{IoUring, Probe, opcode, squeue, types};

use crate::lock::lock;
use crate::{AlignedBuf, BLOCK_BYTES, Result, StoreError};

/// Idle rings kept; with more concurrent readers than this, the others make a ring each time.
const RINGS_MAX: usize = 64;
/// Longest single read, whole blocks; the kernel stops a little below 2 GiB.
const READ_BYTES_MAX: usize = 1 << 30;

/// A queue to the kernel for reads, and one back for their results.
pub(crate) struct Ring {
    uring: IoUring,
    /// Reads pushed whose results were not taken yet.
    in_flight: usize,
    /// The kernel refused to be entered.
    broken: bool,
}

impl Ring {
    /// A ring for up to `reads` reads at a time.
    pub(crate) fn new(reads: usize) -> Result<Ring> {
        let entries = u32::try_from(reads.max(1)).unwrap_or(u32::MAX);
        let uring = IoUring::builder().dontfork().build(entries);
        let uring = uring.map_err(|source| StoreError::RingRefused { source })?;
        Ok(Ring { uring, in_flight: 0, broken: false })
    }

    /// Whether the kernel lets this process use the ring for reads: making one is only one of the
    /// three calls that a container may forbid.
    fn check(&mut self) -> io::Result<()> {
        let mut probe = Probe::new();
        self.uring.submitter().register_probe(&mut probe)?;
        if !probe.is_supported(opcode::Read::CODE) {
            return Err(io::Error::from_raw_os_error(libc::ENOSYS));
        }
        // SAFETY: does nothing, with no memory.
        unsafe { self.push(opcode::Nop::new().build()) };
        self.wait_for_one().map(drop)
    }

    /// Reads once and returns how many bytes came.
    fn read_at(&mut self, file: &File, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        assert_eq!(self.in_flight, 0, "one read at a time");
        let entry = read_entry(file, offset, (buf.as_mut_ptr(), buf.len()), None)?;
        // SAFETY: `buf` is borrowed until the end of this function, which waits for the read.
        unsafe { self.push(entry) };
        self.wait_for_one()
    }

    /// The result of the only request there is.
    fn wait_for_one(&mut self) -> io::Result<usize> {
        loop {
            let entered = self.enter(1);
            if let Some((_, result)) = self.finished() {
                return result;
            }
            match entered {
                Err(refused) if self.taken() == 0 => return Err(refused),
                Err(_) => std::thread::yield_now(),
                Ok(()) => {}
            }
        }
    }

    /// Hands a request over at the next [`Ring::enter`].
    ///
    /// # Safety
    /// The memory it names stays where it is, unused, until [`Ring::finished`] has given its result
    /// or the ring is broken and [`Ring::taken`] is 0.
    unsafe fn push(&mut self, entry: squeue::Entry) {
        // SAFETY: our caller keeps the promise about the memory.
        let pushed = unsafe { self.uring.submission().push(&entry) };
        pushed.expect("no more requests in flight than the ring was made for");
        self.in_flight += 1;
    }

    /// Submits what was pushed and, with a `want` of 1, waits for a result. May return without one.
    fn enter(&mut self, want: usize) -> io::Result<()> {
        if self.broken {
            return Err(broken());
        }
        let Err(error) = self.uring.submitter().submit_and_wait(want) else { return Ok(()) };
        match error.raw_os_error() {
            Some(libc::EINTR) => Ok(()),
            // Short of memory for the moment.
            Some(libc::EAGAIN | libc::EBUSY) => {
                std::thread::yield_now();
                Ok(())
            }
            _ => {
                self.broken = true;
                Err(error)
            }
        }
    }

    /// The id and the result of a finished request, if there is one.
    fn finished(&mut self) -> Option<(u64, io::Result<usize>)> {
        let entry = self.uring.completion().next()?;
        self.in_flight -= 1;
        let result = usize::try_from(entry.result())
            .map_err(|_| io::Error::from_raw_os_error(-entry.result()));
        Some((entry.user_data(), result))
    }

    /// Requests that the kernel has accepted and not finished.
    fn taken(&mut self) -> usize {
        self.in_flight - if self.broken { self.uring.submission().len() } else { 0 }
    }

    /// Waits for all of them.
    fn drain(&mut self) {
        while self.taken() > 0 {
            if self.finished().is_none() && self.enter(1).is_err() {
                // Results still arrive while the thread is out of the kernel.
                std::thread::yield_now();
            }
        }
    }
}

fn broken() -> io::Error {
    io::Error::from_raw_os_error(libc::EBADFD)
}

/// A request to read into memory, which may be registered. Refuses offsets that no file has: the
/// largest one would mean the file's own position to the kernel.
fn read_entry(
    file: &File,
    offset: u64,
    (to, len): (*mut u8, usize),
    registered: Option<u16>,
) -> io::Result<squeue::Entry> {
    if i64::try_from(offset).is_err() {
        return Err(ErrorKind::InvalidInput.into());
    }
    let fd = types::Fd(file.as_raw_fd());
    let len = len.min(READ_BYTES_MAX) as u32;
    Ok(match registered {
        Some(index) => opcode::ReadFixed::new(fd, to, len, index).offset(offset).build(),
        None => opcode::Read::new(fd, to, len).offset(offset).build(),
    })
}

/// Idle rings. Making one costs several system calls and a file descriptor.
pub(crate) struct RingPool {
    idle: Mutex<Vec<Ring>>,
}

impl std::fmt::Debug for RingPool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RingPool").finish_non_exhaustive()
    }
}

impl RingPool {
    /// A pool with one ring, after a test that it works.
    pub(crate) fn new() -> Result<RingPool> {
        let mut ring = Ring::new(1)?;
        ring.check().map_err(|source| StoreError::RingRefused { source })?;
        Ok(RingPool { idle: Mutex::new(vec![ring]) })
    }

    /// Reads once through an idle ring; the outer error means that no ring could be made.
    pub(crate) fn read_at(
        &self,
        file: &File,
        offset: u64,
        buf: &mut [u8],
    ) -> Result<io::Result<usize>> {
        let idle = lock(&self.idle).pop();
        let mut ring = idle.map_or_else(|| Ring::new(1), Ok)?;
        let read = ring.read_at(file, offset, buf);
        let mut idle = lock(&self.idle);
        if !ring.broken && idle.len() < RINGS_MAX {
            idle.push(ring);
        }
        Ok(read)
    }
}

/// A ring with one buffer (lane) per read in flight.
pub(crate) struct Lanes {
    /// Before the memory, which it may have registered: fields are dropped in order.
    ring: Ring,
    memory: AlignedBuf,
    lane_bytes: usize,
    busy: Vec<bool>,
    /// The kernel knows the memory's pages already.
    registered: bool,
}

/// Whether to wait when the kernel is entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    No,
    ForOne,
}

impl Lanes {
    /// Makes `count` lanes of `lane_bytes` each, which are whole blocks.
    ///
    /// Their memory is registered with the kernel, which saves a quarter of a direct read's CPU time;
    /// where the user may not lock that much memory, reads go without.
    pub(crate) fn new(count: usize, lane_bytes: usize) -> Result<Lanes> {
        assert!(lane_bytes.is_multiple_of(BLOCK_BYTES), "lanes of whole blocks");
        let ring = Ring::new(count)?;
        let mut memory = AlignedBuf::new(count * lane_bytes);
        let whole = libc::iovec { iov_base: memory.as_mut_ptr().cast(), iov_len: memory.len() };
        // SAFETY: the memory does not move, and the ring is dropped before it.
        let registered = unsafe { ring.uring.submitter().register_buffers(&[whole]) }.is_ok();
        Ok(Lanes { ring, memory, lane_bytes, busy: vec![false; count], registered })
    }

    /// Lets `work` begin reads and take their results. When it returns or panics, those still under
    /// way are waited for, so that they may go to any memory that outlives this call.
    pub(crate) fn scope<'b, T>(&mut self, work: impl FnOnce(&mut LaneScope<'_, 'b>) -> T) -> T {
        let lent = self.busy.iter().map(|_| None).collect();
        work(&mut LaneScope { lanes: self, lent })
    }

    /// Waits for all reads and forgets them.
    fn drain(&mut self) {
        self.ring.drain();
        self.busy.fill(false);
    }
}

/// Reads through lanes, none of which outlives the scope; see [`Lanes::scope`].
pub(crate) struct LaneScope<'l, 'b> {
    lanes: &'l mut Lanes,
    /// The memory that a lane's read goes to, if that is not the lane's own.
    lent: Vec<Option<Lent<'b>>>,
}

/// Memory that the kernel writes to. A pointer, because nothing else may refer to it meanwhile.
struct Lent<'b> {
    start: *mut u8,
    len: usize,
    owner: PhantomData<&'b mut [u8]>,
}

/// A read that has ended.
pub(crate) struct Finished<'b> {
    pub(crate) lane: usize,
    /// How many bytes came.
    pub(crate) result: io::Result<usize>,
    /// The memory that was lent for it.
    pub(crate) memory: Option<&'b mut [u8]>,
}

impl<'b> LaneScope<'_, 'b> {
    /// Prepares a read of the file's bytes at `offset` into the part `range` of a lane.
    ///
    /// # Panics
    /// If the lane is busy, or shorter than that.
    pub(crate) fn push(
        &mut self,
        lane: usize,
        file: &File,
        offset: u64,
        range: Range<usize>,
    ) -> io::Result<()> {
        assert!(range.end <= self.lanes.lane_bytes, "a lane that is long enough");
        let start = lane * self.lanes.lane_bytes;
        let to = &mut self.lanes.memory[start + range.start..start + range.end];
        let known = self.lanes.registered.then_some(0);
        let entry = read_entry(file, offset, (to.as_mut_ptr(), to.len()), known)?;
        self.submit(lane, entry, None)
    }

    /// Prepares a read of the file's bytes at `offset` into memory that [`LaneScope::finished`] gives
    /// back.
    ///
    /// # Panics
    /// If the lane is busy.
    pub(crate) fn push_into(
        &mut self,
        lane: usize,
        file: &File,
        offset: u64,
        memory: &'b mut [u8],
    ) -> io::Result<()> {
        let (start, len) = (memory.as_mut_ptr(), memory.len());
        let entry = read_entry(file, offset, (start, len), None)?;
        self.submit(lane, entry, Some(Lent { start, len, owner: PhantomData }))
    }

    fn submit(
        &mut self,
        lane: usize,
        entry: squeue::Entry,
        lent: Option<Lent<'b>>,
    ) -> io::Result<()> {
        assert!(!self.lanes.busy[lane], "an idle lane");
        if self.lanes.ring.broken {
            return Err(broken());
        }
        // SAFETY: the memory is the lane's, and nothing looks into a busy lane, or was lent for longer
        // than the scope lives, which holds the only pointer to it. Dropping the scope waits for the
        // read.
        unsafe { self.lanes.ring.push(entry.user_data(lane as u64)) };
        self.lanes.busy[lane] = true;
        self.lent[lane] = lent;
        Ok(())
    }

    /// Lets the kernel begin what was prepared.
    pub(crate) fn enter(&mut self, wait: Wait) -> io::Result<()> {
        self.lanes.ring.enter(usize::from(wait == Wait::ForOne))
    }

    /// A read that has ended, if there is one.
    pub(crate) fn finished(&mut self) -> Option<Finished<'b>> {
        let (lane, result) = self.lanes.ring.finished()?;
        let lane = lane as usize;
        self.lanes.busy[lane] = false;
        let memory = self.lent[lane].take().map(|Lent { start, len, .. }| {
            // SAFETY: `push_into` made these of a slice that it took; the kernel is done with it.
            unsafe { std::slice::from_raw_parts_mut(start, len) }
        });
        Some(Finished { lane, result, memory })
    }

    /// The bytes of an idle lane.
    ///
    /// # Panics
    /// If the lane is busy.
    pub(crate) fn lane(&self, lane: usize) -> &[u8] {
        assert!(!self.lanes.busy[lane], "an idle lane");
        &self.lanes.memory[lane * self.lanes.lane_bytes..(lane + 1) * self.lanes.lane_bytes]
    }

    /// Number of reads in flight.
    pub(crate) fn in_flight(&self) -> usize {
        self.lanes.ring.in_flight
    }
}

impl Drop for LaneScope<'_, '_> {
    fn drop(&mut self) {
        self.lanes.drain();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lets the kernel answer a system call of this thread with `EPERM` from now on, as containers
    /// do.
    fn forbid(call: libc::c_long) {
        let step = |code, k, jt, jf| libc::sock_filter { code: code as u16, jt, jf, k };
        let mut program = [
            // The number of the call is the first word the filter sees.
            step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
            step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, call as u32, 0, 1),
            step(libc::BPF_RET, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32, 0, 0),
            step(libc::BPF_RET, libc::SECCOMP_RET_ALLOW, 0, 0),
        ];
        let filter = libc::sock_fprog { len: 4, filter: program.as_mut_ptr() };
        // SAFETY: takes plain numbers.
        let status = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
        assert_eq!(status, 0);
        // SAFETY: the filter and its program outlive the call, which copies them.
        let status = unsafe {
            libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter)
        };
        assert_eq!(status, 0);
    }

    #[test]
    fn a_refusal_has_its_own_name() {
        let calls =
            [libc::SYS_io_uring_setup, libc::SYS_io_uring_enter, libc::SYS_io_uring_register];
        for call in calls {
            let refused = std::thread::spawn(move || {
                forbid(call);
                RingPool::new().map(drop).unwrap_err()
            });
            let error = refused.join().unwrap();
            assert!(matches!(error, StoreError::RingRefused { .. }), "{error:?}");
            assert_eq!(error.to_string(), "the kernel refuses io_uring");
            assert_eq!(error.errno(), Some(libc::EPERM));
        }
        let error = Lanes::new(1 << 20, BLOCK_BYTES).map(drop).unwrap_err();
        assert_eq!(error.errno(), Some(libc::EINVAL), "no ring is that long: {error:?}");
    }

    #[test]
    fn a_refusal_in_the_middle_waits_for_what_is_under_way() {
        let refused = std::thread::spawn(|| {
            let file = tempfile::tempfile().unwrap();
            file.set_len(8192).unwrap();
            let mut lanes = Lanes::new(2, BLOCK_BYTES).unwrap();
            let mut memory = vec![0; 4096];
            let pool = RingPool::new().unwrap();
            let entered = lanes.scope(|lanes| {
                lanes.push(0, &file, 0, 0..4096).unwrap();
                lanes.enter(Wait::No).unwrap();
                forbid(libc::SYS_io_uring_enter);
                lanes.push_into(1, &file, 0, &mut memory).unwrap();
                lanes.enter(Wait::ForOne).unwrap_err()
            });
            let in_flight = lanes.ring.in_flight;
            assert_eq!((lanes.ring.taken(), in_flight), (0, 1), "the second never began");
            let read = pool.read_at(&file, 0, &mut [0; 10]).unwrap().unwrap_err();
            let again = lanes.scope(|lanes| lanes.push(0, &file, 0, 0..1).unwrap_err());
            assert_eq!(again.raw_os_error(), Some(libc::EBADFD), "a broken ring stays alone");
            [entered, read].map(|error| error.raw_os_error())
        });
        assert_eq!(refused.join().unwrap(), [Some(libc::EPERM); 2]);
    }

    #[test]
    fn rings_are_used_again() {
        let pool = RingPool::new().unwrap();
        let file = File::open("/proc/self/stat").unwrap();
        let mut buf = [0; 1];
        for _ in 0..3 {
            assert_eq!(pool.read_at(&file, 0, &mut buf).unwrap().unwrap(), 1);
        }
        assert_eq!(pool.idle.lock().unwrap().len(), 1);
        pool.idle.lock().unwrap()[0].broken = true;
        let error = pool.read_at(&file, 0, &mut buf).unwrap().unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EBADFD));
        assert_eq!(pool.idle.lock().unwrap().len(), 0, "a broken ring is not used again");
    }

    #[test]
    fn an_offset_no_file_has_is_refused() {
        let pool = RingPool::new().unwrap();
        let file = tempfile::tempfile().unwrap();
        for offset in [u64::MAX, 1 << 63] {
            let error = pool.read_at(&file, offset, &mut [0; 1]).unwrap().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
        }
    }

    #[test]
    fn lanes_read_with_and_without_registered_memory() {
        let file = tempfile::tempfile().unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, b"0123456789", 0).unwrap();
        for registered in [true, false] {
            let mut lanes = Lanes::new(2, BLOCK_BYTES).unwrap();
            lanes.registered &= registered;
            lanes.scope(|lanes| {
                lanes.push(1, &file, 3, 10..15).unwrap();
                let Finished { lane, result, memory } = loop {
                    lanes.enter(Wait::ForOne).unwrap();
                    if let Some(finished) = lanes.finished() {
                        break finished;
                    }
                };
                assert_eq!((lane, result.unwrap(), memory), (1, 5, None));
                assert_eq!(lanes.lane(1)[9..16], *b"\xA534567\xA5");
            });
        }
    }
}
