//! Finds every occurrence of many literals in a text, in one pass and without regard to ASCII case.
//!
//! The four bytes at each position are folded and hashed into a bitmap that fits the first-level
//! cache. For the few positions that pass, an exact table gives the literals that have that window,
//! and the literal itself is compared. For each literal, the window that is rarest in source text
//! is selected. The build script, which includes this file, creates the tables of the built-in
//! catalogue, so nothing here may use the rest of the crate.

/// The bits of the bitmap's index.
const BITS: u32 = 16;

/// A literal with the position of one of its windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LiteralWindow {
    /// Index of the literal.
    pub(crate) literal: u16,
    /// Offset of the window in the literal.
    pub(crate) offset: u8,
}

/// The tables, borrowed from any storage.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prefilter<'a> {
    /// One bit a hash of a folded window: 2^16 bits.
    pub(crate) bitmap: &'a [u64],
    /// Open addressing by a hash of the window: the window, the first of its candidates and their
    /// number. A slot without candidates is free. The length is a power of two.
    pub(crate) slots: &'a [(u32, u16, u16)],
    pub(crate) candidates: &'a [LiteralWindow],
    /// The literals in lower case.
    pub(crate) literals: &'a [&'a [u8]],
}

/// The tables during their creation.
#[derive(Clone, Debug)]
pub(crate) struct Tables {
    pub(crate) bitmap: Vec<u64>,
    pub(crate) slots: Vec<(u32, u16, u16)>,
    pub(crate) candidates: Vec<LiteralWindow>,
}

/// Folds letters of four bytes to lower case at once. Other bytes are folded too, consistently; the
/// literal is compared exactly afterwards.
#[inline(always)]
fn fold(window: u32) -> u32 {
    window | 0x2020_2020
}

#[inline(always)]
fn mix(folded: u32) -> u32 {
    folded.wrapping_mul(0x9E37_79B1)
}

fn window_at(literal: &[u8], at: usize) -> Option<u32> {
    literal
        .get(at..at + 4)?
        .try_into()
        .ok()
        .map(|w| fold(u32::from_le_bytes(w)))
}

impl Tables {
    /// Creates the tables for lower-case literals of at least four bytes, at most 65,535 of them.
    pub(crate) fn new(literals: &[&[u8]]) -> Self {
        let mut windows: Vec<(u32, LiteralWindow)> = Vec::new();
        for (i, literal) in literals.iter().enumerate() {
            let best = (0..literal.len().saturating_sub(3).min(250))
                .min_by_key(|at| commonness(&literal[*at..at + 4]));
            if let Some((offset, window)) = best.and_then(|at| Some((at, window_at(literal, at)?)))
            {
                windows.push((
                    window,
                    LiteralWindow {
                        literal: i as u16,
                        offset: offset as u8,
                    },
                ));
            }
        }
        windows.sort_by_key(|(w, c)| (*w, c.literal));
        let mut bitmap = vec![0u64; 1 << (BITS - 6)];
        let distinct = windows.chunk_by(|a, b| a.0 == b.0).count();
        let mut slots = vec![(0, 0, 0); (distinct * 2).next_power_of_two().max(2)];
        let mut candidates = Vec::with_capacity(windows.len());
        for group in windows.chunk_by(|a, b| a.0 == b.0) {
            let window = group[0].0;
            let bit = mix(window) >> (32 - BITS);
            bitmap[(bit >> 6) as usize] |= 1 << (bit & 63);
            let mut at = slot_of(window, slots.len());
            while slots[at].2 != 0 {
                at = (at + 1) & (slots.len() - 1);
            }
            slots[at] = (window, candidates.len() as u16, group.len() as u16);
            candidates.extend(group.iter().map(|(_, c)| *c));
        }
        Self {
            bitmap,
            slots,
            candidates,
        }
    }
}

#[inline]
fn slot_of(window: u32, slots: usize) -> usize {
    (mix(window) as usize >> 3) & (slots - 1)
}

/// Frequency of pairs of bytes in source text: 64 lines for the first, 64 columns for the second of
/// a pair, in classes of [`class`]; 3.2 times the binary logarithm of the count, starting at `0`.
/// Counted over 62 MB of Rust, Python, Perl, C, JavaScript, JSON and Markdown files.
const PAIRS: &[u8] = include_bytes!("prefilter/pairs.txt");

/// Maps bytes to 64 classes: as [`fold`] does, without the bits that are the same for all.
fn class(b: u8) -> usize {
    let folded = b | 0x20;
    usize::from((folded >> 1 & 0x20) | (folded & 0x1f))
}

/// Estimates the frequency of a window in source text, as a chain of pairs. A lower value is rarer.
fn commonness(window: &[u8]) -> i32 {
    let classes: Vec<usize> = window.iter().map(|b| class(*b)).collect();
    let pairs: i32 = classes
        .windows(2)
        .map(|p| commonness_of_pair(p[0], p[1]))
        .sum();
    let inner: i32 = classes[1..classes.len() - 1]
        .iter()
        .map(|c| commonness_of_class(*c))
        .sum();
    // Runs of one byte (`----`, `====`) are far more common than their pairs.
    let run = if window.windows(2).all(|p| p[0] == p[1]) {
        60
    } else {
        0
    };
    pairs - inner + run
}

/// Returns the logarithm of the frequency of a pair of classes.
fn commonness_of_pair(first: usize, second: usize) -> i32 {
    PAIRS
        .get(first * 65 + second)
        .map_or(0, |n| i32::from(*n) - i32::from(b'0'))
}

/// Returns the logarithm of the frequency of a class before any other.
fn commonness_of_class(class: usize) -> i32 {
    let seen: f32 = (0..64)
        .map(|next| (commonness_of_pair(class, next) as f32 / 3.2).exp2())
        .sum();
    (seen.log2() * 3.2) as i32
}

impl Prefilter<'_> {
    /// Calls `hit` with the index and the start of the literal, for every literal at every
    /// position. Positions ascend, except for literals that overlap.
    #[inline]
    pub(crate) fn scan(&self, text: &[u8], mut hit: impl FnMut(u16, usize)) {
        let Ok(bitmap) = <&[u64; 1 << (BITS - 6)]>::try_from(self.bitmap) else {
            return;
        };
        let mut at = 0;
        // Eight positions out of eleven bytes at a time.
        while let Some(chunk) = text.get(at..at + 11) {
            let (lo, hi) = (load(chunk, 0), load(chunk, 3));
            let mut found = 0;
            for i in 0..5 {
                found |= bit_of(bitmap, (lo >> (8 * i)) as u32) << i;
            }
            for i in 2..5 {
                found |= bit_of(bitmap, (hi >> (8 * i)) as u32) << (i + 3);
            }
            while found != 0 {
                self.verify(text, at + found.trailing_zeros() as usize, &mut hit);
                found &= found - 1;
            }
            at += 8;
        }
        while at + 4 <= text.len() {
            self.verify(text, at, &mut hit);
            at += 1;
        }
    }

    /// Searches the table for the window at `at`, and compares the literals that have it.
    fn verify(&self, text: &[u8], at: usize, hit: &mut impl FnMut(u16, usize)) {
        let Some(window) = window_at(text, at) else {
            return;
        };
        let mut slot = slot_of(window, self.slots.len());
        loop {
            let (key, first, count) = self.slots[slot];
            if count == 0 {
                return;
            }
            if key == window {
                for c in &self.candidates[usize::from(first)..usize::from(first + count)] {
                    let literal = self.literals[usize::from(c.literal)];
                    let Some(start) = at.checked_sub(usize::from(c.offset)) else {
                        continue;
                    };
                    let there = text.get(start..start + literal.len());
                    if there.is_some_and(|t| t.eq_ignore_ascii_case(literal)) {
                        hit(c.literal, start);
                    }
                }
                return;
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
    }
}

/// Returns 1 if a literal can have the window, and 0 if none has it.
#[inline(always)]
fn bit_of(bitmap: &[u64; 1 << (BITS - 6)], window: u32) -> u64 {
    let h = mix(fold(window)) >> (32 - BITS);
    (bitmap[(h >> 6) as usize] >> (h & 63)) & 1
}

#[inline(always)]
fn load(chunk: &[u8], at: usize) -> u64 {
    match chunk.get(at..at + 8).and_then(|b| b.try_into().ok()) {
        Some(b) => u64::from_le_bytes(b),
        None => 0,
    }
}
