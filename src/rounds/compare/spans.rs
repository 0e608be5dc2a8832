//! Ranges of lines, indexed for overlap queries.

use std::collections::HashMap;
use std::hash::Hash;
use std::ops::Range;

/// Ranges of lines, indexed for overlap queries.
#[derive(Debug)]
pub(super) struct Spans {
    /// Ordered by start: start, end, owner.
    all: Vec<(u32, u32, usize)>,
    /// Maximum end of all ranges up to each.
    reach: Vec<u32>,
}

impl Spans {
    /// Indexes ranges by their file: file, range, owner.
    pub(super) fn by_file<F: Eq + Hash>(
        ranges: impl IntoIterator<Item = (F, Range<u32>, usize)>,
    ) -> HashMap<F, Self> {
        let mut by_file: HashMap<F, Vec<(u32, u32, usize)>> = HashMap::new();
        for (file, lines, owner) in ranges {
            let of_file = by_file.entry(file).or_default();
            of_file.push((lines.start, lines.end, owner));
        }
        by_file
            .into_iter()
            .map(|(file, all)| (file, Self::new(all)))
            .collect()
    }

    fn new(mut all: Vec<(u32, u32, usize)>) -> Self {
        all.sort_unstable();
        let mut most = 0;
        let reach = all.iter().map(|(_, end, _)| {
            most = most.max(*end);
            most
        });
        let reach = reach.collect();
        Self { all, reach }
    }

    /// Returns the owners of ranges that share a line with this one.
    pub(super) fn touching(&self, lines: &Range<u32>) -> impl Iterator<Item = usize> {
        let from = lines.start;
        let near = self.all.partition_point(|(start, ..)| *start < lines.end);
        let back = (0..near)
            .rev()
            .take_while(move |i| self.reach[*i] > from)
            .map(|i| self.all[i]);
        back.filter(move |(_, end, _)| *end > from)
            .map(|(.., whose)| whose)
    }
}
