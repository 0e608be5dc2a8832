//! Takes the words of tickets out of a text that leaves for a forge. Pure.

use super::Item;
use std::collections::HashSet;
use std::ops::Range;

/// Words in a row that give a ticket away.
const RUN: usize = 6;
/// Words of the shortest title that is looked for.
const TITLE: usize = 3;

/// Knows the words of tickets.
#[derive(Debug, Default)]
pub struct Quotes<'a> {
    items: Vec<(&'a Item, HashSet<Vec<String>>)>,
}

impl<'a> Quotes<'a> {
    /// Takes the words of tickets, as far as their text is known.
    pub fn of(items: &'a [Item]) -> Self {
        Self { items: items.iter().map(|item| (item, runs(item))).collect() }
    }

    /// Returns a text in which every run of six words of a ticket, and every title, is replaced: `[words of PROJ-12]`.
    pub fn remove(&self, text: &str) -> String {
        let mut out = text.to_owned();
        for (item, runs) in &self.items {
            let words = words(&out);
            let mut hidden: Vec<Range<usize>> = Vec::new();
            for length in lengths(item) {
                for window in words.windows(length) {
                    let run: Vec<String> = window.iter().map(|(_, w)| w.clone()).collect();
                    if let (true, Some((first, _)), Some((last, _))) =
                        (runs.contains(&run), window.first(), window.last())
                    {
                        hidden.push(first.start..last.end);
                    }
                }
            }
            out = replaced(&out, hidden, &format!("[words of {}]", item.reference));
        }
        out
    }
}

/// Returns the lengths of the runs of a ticket.
fn lengths(item: &Item) -> HashSet<usize> {
    let title = words(&item.title).len();
    [RUN, title].into_iter().filter(|n| *n >= TITLE).collect()
}

fn runs(item: &Item) -> HashSet<Vec<String>> {
    let plain = |text: &str| words(text).into_iter().map(|(_, w)| w).collect::<Vec<_>>();
    let title = plain(&item.title);
    let mut runs: HashSet<Vec<String>> = plain(&item.text).windows(RUN).map(<[String]>::to_vec).collect();
    if title.len() >= TITLE {
        runs.insert(title);
    }
    runs
}

/// Returns the words of a text in lower case, with their places.
fn words(text: &str) -> Vec<(Range<usize>, String)> {
    let mut out = Vec::new();
    let mut start = None;
    for (at, c) in text.char_indices().chain([(text.len(), ' ')]) {
        match (start, c.is_alphanumeric()) {
            (None, true) => start = Some(at),
            (Some(from), false) => {
                out.push((from..at, text[from..at].to_lowercase()));
                start = None;
            }
            _ => {}
        }
    }
    out
}

fn replaced(text: &str, mut spans: Vec<Range<usize>>, with: &str) -> String {
    spans.sort_by_key(|s| (s.start, s.end));
    let mut merged: Vec<Range<usize>> = Vec::new();
    for span in spans {
        match merged.last_mut() {
            Some(last) if span.start <= last.end => last.end = last.end.max(span.end),
            _ => merged.push(span),
        }
    }
    let (mut out, mut at) = (String::with_capacity(text.len()), 0);
    for span in merged {
        out.push_str(&text[at..span.start]);
        out.push_str(with);
        at = span.end;
    }
    out.push_str(&text[at..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(title: &str, text: &str) -> Item {
        Item { reference: "PROJ-1".to_owned(), title: title.to_owned(), text: text.to_owned(), ..Item::default() }
    }

    #[test]
    fn words_of_a_ticket_are_replaced_and_others_stay() {
        let items = [item("Limit the retries", "Calls to the bank must be retried at most three times, then fail.")];
        let quotes = Quotes::of(&items);
        let text = "The ticket says \"Calls to the  BANK must be retried\" and this loops.";
        assert_eq!(quotes.remove(text), "The ticket says \"[words of PROJ-1]\" and this loops.");
        assert_eq!(quotes.remove("limit the retries!"), "[words of PROJ-1]!");
        for other in ["must be retried at most", "Calls the bank", "", "ünïcode – calls"] {
            assert_eq!(quotes.remove(other), other);
        }
    }

    #[test]
    fn a_ticket_without_text_replaces_nothing_but_its_title() {
        let items = [item("One two", ""), item("", "")];
        assert_eq!(Quotes::of(&items).remove("one two three four five six"), "one two three four five six");
    }
}
