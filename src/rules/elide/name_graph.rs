//! Parts of a text that are connected by the names that they declare and use.
//!
//! The connections go through the names, so that their number grows with the text: many parts can
//! declare one name that many others use.

use foldhash::fast::RandomState;
use std::collections::HashMap;

/// The parts of a text, by index, and the names that connect them.
pub(in crate::rules) struct NameGraph<'t> {
    numbers: HashMap<&'t [u8], usize, RandomState>,
    /// By part: the names that it declares, and those that it uses.
    declares: Vec<Vec<usize>>,
    uses: Vec<Vec<usize>>,
    /// By name: the parts that declare it, and those that use it.
    declared_by: Vec<Vec<usize>>,
    used_by: Vec<Vec<usize>>,
}

impl<'t> NameGraph<'t> {
    /// Returns a graph of a number of parts without connections.
    pub(in crate::rules) fn new(parts: usize) -> Self {
        Self {
            numbers: HashMap::default(),
            declares: vec![Vec::new(); parts],
            uses: vec![Vec::new(); parts],
            declared_by: Vec::new(),
            used_by: Vec::new(),
        }
    }

    /// Adds a name that a part declares.
    pub(in crate::rules) fn declare(&mut self, part: usize, name: &'t [u8]) {
        let next = self.declared_by.len();
        let number = *self.numbers.entry(name).or_insert(next);
        if number == next {
            self.add_name();
        }
        if self.declared_by[number].last() != Some(&part) {
            self.declared_by[number].push(part);
            self.declares[part].push(number);
        }
    }

    /// Adds the words of a part's text that are names. Names that are declared later do not count.
    pub(in crate::rules) fn use_words(&mut self, part: usize, text: &[u8]) {
        for word in words(text) {
            if let Some(number) = self.numbers.get(word)
                && self.used_by[*number].last() != Some(&part)
            {
                self.used_by[*number].push(part);
                self.uses[part].push(*number);
            }
        }
    }

    /// Connects two parts in both directions.
    pub(in crate::rules) fn tie(&mut self, one: usize, other: usize) {
        let name = self.declared_by.len();
        self.add_name();
        for part in [one, other] {
            self.declared_by[name].push(part);
            self.used_by[name].push(part);
            self.declares[part].push(name);
            self.uses[part].push(name);
        }
    }

    /// Returns some parts, and those that use their names, directly or by others.
    pub(in crate::rules) fn with_users(&self, parts: Vec<bool>) -> Vec<bool> {
        reachable(parts, &self.declares, &self.used_by)
    }

    /// Returns some parts, and those whose names they use, directly or by others.
    pub(in crate::rules) fn with_used(&self, parts: Vec<bool>) -> Vec<bool> {
        reachable(parts, &self.uses, &self.declared_by)
    }

    fn add_name(&mut self) {
        self.declared_by.push(Vec::new());
        self.used_by.push(Vec::new());
    }
}

/// Returns the parts that are reachable from some parts. `names`: the names to which each part
/// leads; `parts`: the parts to which each name leads.
fn reachable(mut is_in: Vec<bool>, names: &[Vec<usize>], parts: &[Vec<usize>]) -> Vec<bool> {
    let mut is_read = vec![false; parts.len()];
    let mut open: Vec<usize> = (0..is_in.len()).filter(|part| is_in[*part]).collect();
    while let Some(part) = open.pop() {
        for name in &names[part] {
            if std::mem::replace(&mut is_read[*name], true) {
                continue;
            }
            for next in &parts[*name] {
                if !std::mem::replace(&mut is_in[*next], true) {
                    open.push(*next);
                }
            }
        }
    }
    is_in
}

/// Returns the words of a text.
pub(in crate::rules) fn words(text: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    text.split(|b| !is_name(*b)).filter(|word| !word.is_empty())
}

/// Returns true for a byte of a name.
pub(in crate::rules) fn is_name(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$') || b >= 0x80
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_connected_by_names_in_both_directions() {
        let mut graph = NameGraph::new(4);
        for (part, name) in ["main", "middle", "sink", "other"].iter().enumerate() {
            graph.declare(part, name.as_bytes());
        }
        graph.use_words(0, b"middle(argv)");
        graph.use_words(1, b"sink(sink)");
        let sink = vec![false, false, true, false];
        assert_eq!(graph.with_users(sink.clone()), [true, true, true, false]);
        assert_eq!(graph.with_used(sink), [false, false, true, false]);
        graph.tie(2, 3);
        let main = vec![true, false, false, false];
        assert_eq!(graph.with_used(main), [true; 4]);
    }

    // With an edge for each pair, a file of one megabyte took gigabytes.
    #[test]
    fn the_connections_of_a_name_grow_with_its_uses() {
        let count = 50_000;
        let mut graph = NameGraph::new(count);
        (0..count).for_each(|part| graph.declare(part, b"f"));
        (0..count).for_each(|part| graph.use_words(part, b"f() f()"));
        let edges: usize = graph.uses.iter().chain(&graph.used_by).map(Vec::len).sum();
        assert_eq!(edges, 2 * count);
        let mut first = vec![false; count];
        first[0] = true;
        assert!(graph.with_users(first).iter().all(|is| *is));
    }
}
