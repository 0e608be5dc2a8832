//! Compares the words of two texts, to determine whether they describe the same problem.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// Words of a text that are compared, at most.
const MOST: usize = 80;

/// The significant words of a text: their hashes, sorted.
#[derive(Clone, Debug, Default)]
pub(super) struct Words(Vec<u64>);

/// Words that occur in most findings.
const COMMON: [&str; 72] = [
    "the",
    "and",
    "for",
    "are",
    "but",
    "not",
    "you",
    "all",
    "any",
    "can",
    "has",
    "have",
    "had",
    "was",
    "were",
    "will",
    "with",
    "this",
    "that",
    "these",
    "those",
    "from",
    "into",
    "onto",
    "than",
    "then",
    "they",
    "them",
    "their",
    "there",
    "when",
    "where",
    "which",
    "while",
    "who",
    "why",
    "how",
    "what",
    "its",
    "it's",
    "may",
    "might",
    "could",
    "would",
    "should",
    "must",
    "also",
    "because",
    "since",
    "code",
    "line",
    "lines",
    "here",
    "use",
    "uses",
    "used",
    "using",
    "issue",
    "problem",
    "bug",
    "error",
    "possible",
    "potential",
    "potentially",
    "does",
    "without",
    "such",
    "only",
    "being",
    "been",
    "very",
    "more",
];

impl Words {
    /// Extracts the significant words of several texts.
    pub(super) fn of(texts: &[&str]) -> Self {
        let words = texts
            .iter()
            .flat_map(|t| t.split(|c: char| !c.is_alphanumeric() && c != '_'));
        let words = words
            .filter(|w| w.chars().count() > 2)
            .map(str::to_lowercase);
        let words = words
            .filter(|w| !COMMON.contains(&w.as_str()))
            .map(stem)
            .take(MOST);
        let mut words: Vec<u64> = words.map(|w| hash(&w)).collect();
        words.sort_unstable();
        words.dedup();
        Self(words)
    }

    /// Returns the share of words that two texts have in common, from 0 to 1.
    pub(super) fn likeness(&self, other: &Self) -> f64 {
        let (mut a, mut b, mut common) = (&self.0[..], &other.0[..], 0);
        while let ([x, more_a @ ..], [y, more_b @ ..]) = (a, b) {
            common += usize::from(x == y);
            (a, b) = (
                if x <= y { more_a } else { a },
                if y <= x { more_b } else { b },
            );
        }
        let all = self.0.len() + other.0.len();
        if all == 0 {
            0.0
        } else {
            common as f64 * 2.0 / all as f64
        }
    }

    /// Returns true if the text contains one of these words, given as stems.
    pub(super) fn has_any(&self, words: &[&str]) -> bool {
        words.iter().any(|w| self.0.binary_search(&hash(w)).is_ok())
    }
}

fn hash(word: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    word.hash(&mut hasher);
    hasher.finish()
}

/// Removes common English suffixes.
fn stem(mut word: String) -> String {
    for end in [
        "ation", "ated", "ates", "ing", "ies", "ed", "es", "s", "e", "y",
    ] {
        if word.len() > end.len() + 3 && word.ends_with(end) {
            word.truncate(word.len() - end.len());
            break;
        }
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    fn likeness(a: &str, b: &str) -> f64 {
        Words::of(&[a]).likeness(&Words::of(&[b]))
    }

    #[test]
    fn the_same_problem_in_other_words_is_more_alike_than_another_problem() {
        let same = likeness(
            "SQL injection: the user's name is concatenated into the query",
            "User-controlled name concatenated into a SQL query allows injection",
        );
        let other = likeness(
            "SQL injection: the user's name is concatenated into the query",
            "The cursor is never closed, which leaks connections",
        );
        assert!(same > 0.5 && other < 0.2, "{same} {other}");
        assert!(likeness("Off by one", "Off by one") > 0.99);
        assert!(likeness("", "") < 0.01);
    }
}
