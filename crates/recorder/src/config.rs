//! How to record, in memory that was there before the program asked for any.

/// A short text in place.
#[derive(Clone, Copy, Debug)]
pub struct Text<const N: usize> {
    bytes: [u8; N],
    length: usize,
}

impl<const N: usize> Text<N> {
    /// The empty text.
    pub const EMPTY: Self = Self { bytes: [0; N], length: 0 };

    /// A text; `None` if it is too long to be followed by a NUL.
    pub fn new(text: &[u8]) -> Option<Self> {
        let mut made = Self::EMPTY;
        made.push(text).then_some(made)
    }

    /// Adds bytes; false, and nothing added, if they do not fit with a NUL after them.
    pub fn push(&mut self, text: &[u8]) -> bool {
        let end = self.length.saturating_add(text.len());
        match self.bytes.get_mut(self.length..end) {
            Some(place) if end < N => {
                place.copy_from_slice(text);
                self.length = end;
                true
            }
            _ => false,
        }
    }

    /// Makes the text empty.
    pub fn clear(&mut self) {
        self.bytes.get_mut(..self.length).unwrap_or_default().fill(0);
        self.length = 0;
    }

    /// Adds a number in decimal digits.
    pub fn push_number(&mut self, number: u64) -> bool {
        let mut digits = [0_u8; 20];
        let mut at = digits.len();
        let mut rest = number;
        loop {
            at -= 1;
            // A remainder of ten is a digit.
            digits[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        self.push(&digits[at..])
    }

    /// The text without its NUL.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The text with a NUL after it.
    pub fn c_str(&self) -> Option<&core::ffi::CStr> {
        core::ffi::CStr::from_bytes_until_nul(self.bytes.get(..=self.length)?).ok()
    }
}

/// What a process is told about recording.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Where its files go. Best a file system in memory.
    pub folder: Text<1024>,
    /// Where they go when `folder` is full, or holds `folder_bytes` of this process; may be empty.
    pub overflow: Text<1024>,
    /// How much of `folder` a process may take.
    pub folder_bytes: u64,
    /// Whether a drainer reads segments while they are written, so that they can be reused.
    pub is_drained: bool,
    /// Whether ticks are those of the processor's counter.
    pub counter: bool,
    /// One in this many calls that move bytes or look at files is recorded.
    pub one_of: u32,
    /// Calls of one kind on one file by one thread become one summary for so long; 0 for none.
    pub summary_ns: u64,
    /// The rank of this process in its job, -1 if it has none.
    pub rank: i32,
}

impl Config {
    /// Everything is recorded, nowhere.
    pub const EMPTY: Self = Self {
        folder: Text::EMPTY,
        overflow: Text::EMPTY,
        folder_bytes: u64::MAX,
        is_drained: false,
        counter: false,
        one_of: 1,
        summary_ns: 0,
        rank: -1,
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_end_where_their_room_does() {
        let mut text = Text::<8>::new(b"abc").unwrap();
        assert!(text.push_number(4050));
        assert_eq!(text.bytes(), b"abc4050");
        assert!(!text.push(b"x"));
        assert_eq!(text.c_str().unwrap().to_bytes(), b"abc4050");
        assert!(Text::<4>::new(b"abcd").is_none());
        text.clear();
        assert!(text.is_empty() && text.push(b"z"));
        assert_eq!(text.c_str().unwrap().to_bytes(), b"z");
        let mut zero = Text::<4>::EMPTY;
        assert!(zero.is_empty() && zero.push_number(0));
        assert_eq!(zero.bytes(), b"0");
    }
}
