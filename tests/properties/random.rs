//! A seeded generator of numbers, and of byte strings that are almost well-formed.

/// A generator of the SplitMix64 family, deterministic for a seed.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Returns the generator of one case, independent of the numbers that other cases used.
    pub fn of_case(seed: u64, case: usize) -> Self {
        let mut random = Self(seed ^ (case as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        random.next();
        random
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `bound`; 0 for a bound of 0.
    pub fn below(&mut self, bound: usize) -> usize {
        ((self.next() >> 16) as usize) % bound.max(1)
    }

    /// Returns true once in `n` times.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// Returns one of some words.
    pub fn word(&mut self, from: &[&'static str]) -> &'static str {
        from[self.below(from.len())]
    }

    /// Returns bytes of all values.
    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }
}

/// Changes a byte string 1 to 8 times: flips, insertions, removals, repetitions, cuts, and tokens
/// of a dictionary.
pub fn mutate(random: &mut Random, data: &mut Vec<u8>, tokens: &[&[u8]]) {
    for _ in 0..=random.below(8) {
        let at = random.below(data.len() + 1);
        let end = (at + 1 + random.below(24)).min(data.len());
        match random.below(9) {
            0 if at < data.len() => data[at] ^= 1 << random.below(8),
            1 if at < data.len() => {
                data[at] = *random.pick(b"\0\n\r\t \"'\\@+-{}[]:,=#0189aZ\x7f\x80\xc3\xff");
            }
            2 => drop(data.splice(at..at, random.bytes(3))),
            3 => drop(data.drain(at..end)),
            4 => {
                let part = data[at..end].to_vec();
                let to = random.below(data.len() + 1);
                data.splice(to..to, part);
            }
            5 if random.one_in(4) => data.truncate(at),
            6 => drop(swap_lines(random, data)),
            _ if !tokens.is_empty() => {
                let token = random.pick(tokens).to_vec();
                let replaced = if random.one_in(2) { at..end } else { at..at };
                data.splice(replaced, token);
            }
            _ => {}
        }
    }
}

/// Repeats, removes or moves a whole line; returns `None` if there is none.
fn swap_lines(random: &mut Random, data: &mut Vec<u8>) -> Option<()> {
    let mut lines: Vec<Vec<u8>> = data
        .split_inclusive(|b| *b == b'\n')
        .map(<[u8]>::to_vec)
        .collect();
    let from = random.below(lines.len());
    let line = lines.get(from)?.clone();
    if random.one_in(2) {
        lines.remove(from);
    }
    if !random.one_in(3) {
        lines.insert(random.below(lines.len() + 1), line);
    }
    *data = lines.concat();
    Some(())
}

/// Returns the smallest failing byte string that was found: removes halves, quarters, … and single
/// bytes, at most `tries` times.
pub fn shrink(data: &[u8], mut tries: usize, fails: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    let mut smallest = data.to_vec();
    let mut size = smallest.len().div_ceil(2);
    while size > 0 {
        let mut at = 0;
        while at < smallest.len() && tries > 0 {
            tries -= 1;
            let end = (at + size).min(smallest.len());
            let shorter = [&smallest[..at], &smallest[end..]].concat();
            if fails(&shorter) {
                smallest = shorter;
            } else {
                at = end;
            }
        }
        size = if size == 1 { 0 } else { size.div_ceil(2) };
    }
    smallest
}
