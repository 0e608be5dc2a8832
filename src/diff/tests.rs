//! Tests of the model, and helpers for the tests of its modules.

/// A small random number generator, deterministic for a seed.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// Returns a number below `n` (xorshift64*).
    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        ((self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize) % n.max(1)
    }
}

/// Creates a text of few different lines and an edit of it; with all kinds of line ends, often
/// without a final one.
pub(crate) fn random_edit(random: &mut Random) -> (Vec<u8>, Vec<u8>) {
    const LINES: [&str; 12] = [
        "\n",
        "}\n",
        "fn a() {\n",
        "\tx = 1;\n",
        "\r\n",
        "    y\r\n",
        "-- a/x\n",
        "++ b/x\n",
        "\u{2028}\u{c}\rz\n",
        "@@ -1 +1 @@\n",
        "caf\u{e9}\n",
        "\\ No newline at end of file\n",
    ];
    let mut old: Vec<&str> = (0..random.below(60))
        .map(|_| LINES[random.below(12)])
        .collect();
    let mut new = old.clone();
    for _ in 0..=random.below(6) {
        let at = random.below(new.len() + 1);
        match random.below(3) {
            0 => new.insert(at, LINES[random.below(12)]),
            1 if at < new.len() => drop(new.drain(at..(at + random.below(4)).min(new.len()))),
            _ if at < new.len() => new[at] = LINES[random.below(12)],
            _ => {}
        }
    }
    for side in [&mut old, &mut new] {
        if random.below(3) == 0 {
            side.push("open end");
        }
    }
    (old.concat().into_bytes(), new.concat().into_bytes())
}
