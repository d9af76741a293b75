//! Huffman codes of a file, and the bits that they are read from.

/// A code and its value that have no more bits are found with one look. Of the codes of noise at
/// quality 75, 1 in 30 has more.
const LOOK_BITS: u32 = 12;

/// A code to read with.
pub(super) struct Table {
    usage: Use,
    /// By the next [`LOOK_BITS`] bits.
    look: [Look; 1 << LOOK_BITS],
    /// For 1 to 16 bits: what the first 16 bits are less than if the code has no more bits.
    limits: [u32; 17],
    /// For 1 to 16 bits: what to add to a code's bits to get its place in `symbols`.
    starts: [i32; 17],
    symbols: Vec<u8>,
}

/// What a code is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// Differences of mean values.
    Means,
    /// All other coefficients.
    Rest,
}

/// The run of the code that ends a block: further than any other run leads.
pub(super) const END_RUN: usize = 100;

/// What a code with its value means: from the top the value, the zeros before it and the length of
/// both. Zero means that the code is not known yet.
#[derive(Clone, Copy)]
pub(super) struct Look(u32);

impl Look {
    const UNKNOWN: Look = Look(0);

    fn new(value: i32, run: u32, len: u32) -> Look {
        Look((value as u32) << 16 | run << 8 | len)
    }

    #[inline(always)]
    pub(super) fn found(self) -> bool {
        self.0 != 0
    }

    #[inline(always)]
    pub(super) fn value(self) -> i32 {
        self.0 as i32 >> 16
    }

    /// Zeros before the value.
    #[inline(always)]
    pub(super) fn run(self) -> usize {
        (self.0 >> 8 & 0xFF) as usize
    }

    /// Masked as shifts are, so that there is nothing left to mask.
    #[inline(always)]
    fn len(self) -> u32 {
        self.0 & 63
    }
}

/// Zeros before a value, and the value's size in bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Symbol {
    run: u32,
    size: u32,
}

impl Table {
    /// `None` if there are more codes than bits can tell apart.
    pub(super) fn new(usage: Use, counts: &[u8; 16], symbols: &[u8]) -> Option<Table> {
        let mut table = Table {
            usage,
            look: [Look::UNKNOWN; 1 << LOOK_BITS],
            limits: [0; 17],
            starts: [0; 17],
            symbols: symbols.to_vec(),
        };
        let (mut code, mut place) = (0u32, 0usize);
        for (len, &count) in (1u32..).zip(counts) {
            let count = usize::from(count);
            if code + count as u32 > 1 << len {
                return None;
            }
            table.starts[len as usize] = place as i32 - code as i32;
            for &symbol in symbols.get(place..place + count)? {
                if let Some(symbol) = table.meaning(symbol) {
                    table.add_values(code, len, symbol);
                }
                code += 1;
            }
            place += count;
            table.limits[len as usize] = code << (16 - len);
            code <<= 1;
        }
        Some(table)
    }

    /// `None` for what no 8-bit image has.
    fn meaning(&self, symbol: u8) -> Option<Symbol> {
        let (run, size) = (u32::from(symbol >> 4), u32::from(symbol & 15));
        match (self.usage, run, size) {
            (Use::Means, 0, ..=11) => Some(Symbol { run, size }),
            (Use::Means, ..) => None,
            (Use::Rest, 0, 0) => Some(Symbol { run: END_RUN as u32, size }),
            (Use::Rest, 1..=14, 0) => None,
            (Use::Rest, ..) => Some(Symbol { run, size }),
        }
    }

    /// Enters all values that may follow the code, if there is room for them.
    fn add_values(&mut self, code: u32, len: u32, Symbol { run, size }: Symbol) {
        let Some(spare) = LOOK_BITS.checked_sub(len + size) else { return };
        for low in 0..1 << size {
            let first = ((code << size | low) << spare) as usize;
            let look = Look::new(extended(low as i32, size), run, len + size);
            self.look[first..first + (1 << spare)].fill(look);
        }
    }

    /// The code that the bits begin with, with its value.
    #[inline(always)]
    pub(super) fn look(&self, bits: &Bits<'_>) -> Look {
        self.look[(bits.word >> (64 - LOOK_BITS)) as usize]
    }

    /// The code that a word begins with, of whatever length.
    #[cold]
    #[inline(never)]
    fn look_longer(&self, word: u64) -> Option<Look> {
        let sixteen = (word >> 48) as u32;
        let len = (1..=16).find(|&len| sixteen < self.limits[len as usize])?;
        let code = (sixteen >> (16 - len)) as i32;
        let place = usize::try_from(code + self.starts[len as usize]).ok()?;
        let Symbol { run, size } = self.meaning(*self.symbols.get(place)?)?;
        // The shift is split because there may be no bits at all.
        let low = (word << len >> 1 >> (63 - size)) as i32;
        Some(Look::new(extended(low, size), run, len + size))
    }
}

/// The value of that size whose bits are `low`: one that begins with a zero is negative, counted
/// from the smallest of its size.
fn extended(low: i32, size: u32) -> i32 {
    if size > 0 && low >> (size - 1) == 0 { low - (1 << size) + 1 } else { low }
}

/// Bits from bytes that have no stuffing any more; zeros follow them without end.
///
/// Small and copied, so that a loop can have all of it in registers.
#[derive(Clone, Copy)]
pub(super) struct Bits<'a> {
    bytes: &'a [u8],
    /// The next byte that is not in `word`.
    at: usize,
    /// The next bits, the first of them on top.
    word: u64,
    /// How many of them are to be used.
    count: u32,
}

impl<'a> Bits<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Bits<'a> {
        Bits { bytes, at: 0, word: 0, count: 0 }
    }

    /// Makes at least 56 bits ready.
    ///
    /// Takes eight bytes whatever is there already: those that do not fit come again with the next
    /// call, and meet their own bits.
    #[inline(always)]
    pub(super) fn refill(&mut self) {
        let next = match self.bytes.get(self.at..).and_then(<[u8]>::first_chunk) {
            Some(&eight) => u64::from_be_bytes(eight),
            None => last_bytes(self.bytes, self.at),
        };
        self.word |= next >> self.count;
        let taken = (63 - self.count) >> 3;
        self.at += taken as usize;
        self.count += taken * 8;
    }

    /// Takes the bits that were found.
    #[inline(always)]
    pub(super) fn take(&mut self, look: Look) -> Look {
        self.word <<= look.len();
        self.count -= look.len();
        look
    }

    /// Takes a code of whatever length and makes bits ready again; `None` if there is none.
    #[inline(always)]
    pub(super) fn take_long(&mut self, table: &Table) -> Option<Look> {
        self.refill();
        let look = self.take(table.look_longer(self.word)?);
        self.refill();
        Some(look)
    }

    /// How many bits have been used; more than there are if the bytes ended too early.
    #[inline(always)]
    pub(super) fn used(&self) -> usize {
        self.at * 8 - self.count as usize
    }
}

/// Up to eight bytes from `at` on, then zeros.
#[cold]
#[inline(never)]
fn last_bytes(bytes: &[u8], at: usize) -> u64 {
    let mut eight = [0; 8];
    let rest = bytes.get(at..).unwrap_or_default();
    eight[..rest.len()].copy_from_slice(rest);
    u64::from_be_bytes(eight)
}
