//! The input line for a reason, a date or a search. Pure.

use super::key::KeyPress;
use super::line::InputLine;
use crate::disposition::DEFERRED_DAYS;
use jiff::Span;
use jiff::civil::Date;

/// The purpose of a prompt.
#[derive(Clone, Debug, PartialEq)]
pub enum Purpose {
    Reject {
        names: Vec<String>,
        needs_reason: bool,
    },
    Defer {
        names: Vec<String>,
    },
    /// `before` is the search that Esc restores.
    Search {
        before: String,
    },
}

/// A question with its current answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Prompt {
    pub purpose: Purpose,
    pub line: InputLine,
    /// Reason why the answer was rejected.
    pub problem: Option<String>,
    /// The line is an unedited suggestion, which new input replaces.
    is_offer: bool,
}

/// The result of a key.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum PromptAnswer {
    Open,
    Cancelled,
    Text(String),
    /// A date, and a reason that may be empty.
    Date(Date, String),
}

impl Prompt {
    /// Asks for the reason of a rejection.
    pub(super) fn reject(names: Vec<String>, needs_reason: bool) -> Self {
        Self {
            purpose: Purpose::Reject {
                names,
                needs_reason,
            },
            line: InputLine::default(),
            problem: None,
            is_offer: false,
        }
    }

    /// Suggests the default date of the command line.
    pub(super) fn defer(names: Vec<String>, today: Date) -> Self {
        let date = today
            .checked_add(Span::new().days(DEFERRED_DAYS))
            .unwrap_or(today);
        Self {
            purpose: Purpose::Defer { names },
            line: InputLine::new(&date.to_string()),
            problem: None,
            is_offer: true,
        }
    }

    /// Asks for a search text. `before` is the current one.
    pub(super) fn search(before: &str) -> Self {
        let line = InputLine::new(before);
        Self {
            purpose: Purpose::Search {
                before: before.to_owned(),
            },
            line,
            problem: None,
            is_offer: false,
        }
    }

    /// Returns the question.
    pub fn title(&self) -> String {
        match &self.purpose {
            Purpose::Reject { names, .. } => format!("Reject {}: why?", names.join(", ")),
            Purpose::Defer { names } => format!("Defer {} until?", names.join(", ")),
            Purpose::Search { .. } => "Search".to_owned(),
        }
    }

    /// Returns how to answer.
    pub fn hint(&self) -> &'static str {
        match &self.purpose {
            Purpose::Reject {
                needs_reason: true, ..
            } => "a critical finding needs a reason",
            Purpose::Reject { .. } => "the reason may be empty",
            Purpose::Defer { .. } => "YYYY-MM-DD, 30d, 6w or 3m, then a reason if you like",
            Purpose::Search { .. } => "in titles, messages, rules, files and quotes",
        }
    }

    /// Inserts a text at the cursor.
    pub(super) fn paste(&mut self, text: &str) {
        self.problem = None;
        self.take_offer(text.chars().next());
        self.line.insert(text);
    }

    /// Accepts or replaces the suggestion when text is edited. `typed` is the first inserted
    /// character. A space keeps the suggestion, so that a reason can follow it.
    fn take_offer(&mut self, typed: Option<char>) {
        if self.is_offer && typed.is_some_and(|c| !c.is_whitespace()) {
            self.line = InputLine::default();
        }
        self.is_offer = false;
    }

    /// Handles a key.
    pub(super) fn press(&mut self, key: KeyPress, today: Date) -> PromptAnswer {
        match key {
            KeyPress::Esc => return PromptAnswer::Cancelled,
            KeyPress::Enter => {
                let text = self.line.text().trim().to_owned();
                match self.answer(text, today) {
                    Ok(answer) => return answer,
                    Err(problem) => self.problem = Some(problem),
                }
            }
            key => {
                self.take_offer(if let KeyPress::Char(c) = key {
                    Some(c)
                } else {
                    None
                });
                if self.line.press(key) {
                    self.problem = None;
                }
            }
        }
        PromptAnswer::Open
    }

    /// Parses a complete input. The error is shown to the user.
    fn answer(&self, text: String, today: Date) -> Result<PromptAnswer, String> {
        match &self.purpose {
            Purpose::Reject {
                needs_reason: true, ..
            } if text.is_empty() => {
                Err("a critical finding is not rejected without a reason".to_owned())
            }
            Purpose::Reject { .. } | Purpose::Search { .. } => Ok(PromptAnswer::Text(text)),
            Purpose::Defer { .. } => {
                let (date, reason) = text.split_once(char::is_whitespace).unwrap_or((&text, ""));
                Ok(PromptAnswer::Date(
                    until(date, today)?,
                    reason.trim().to_owned(),
                ))
            }
        }
    }
}

/// Parses a date, or a number of days, weeks or months from today.
///
/// # Errors
/// The text is neither, or the date is not in the future.
fn until(text: &str, today: Date) -> Result<Date, String> {
    let unit = text.chars().next_back().filter(char::is_ascii_alphabetic);
    let number = unit.and_then(|_| text[..text.len() - 1].parse::<i32>().ok());
    let span = match (number, unit) {
        (Some(n), Some('d')) => Some(Span::new().try_days(n)),
        (Some(n), Some('w')) => Some(Span::new().try_weeks(n)),
        (Some(n), Some('m')) => Some(Span::new().try_months(n)),
        _ => None,
    };
    let date = match span {
        Some(span) => span.and_then(|span| today.checked_add(span)).ok(),
        None => text.parse().ok(),
    };
    let date = date.ok_or_else(|| format!("{text:?} is not a date such as {today}, or 30d"))?;
    if date <= today {
        Err(format!("{date} is not in the future"))
    } else {
        Ok(date)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TODAY: Date = jiff::civil::date(2026, 11, 24);

    #[test]
    fn dates_are_absolute_or_from_today() {
        for (text, date) in [
            ("2027-01-31", Some("2027-01-31")),
            ("30d", Some("2026-12-24")),
            ("2w", Some("2026-12-08")),
            ("3m", Some("2027-02-24")),
            ("0d", None),
            ("-5d", None),
            ("99999999d", None),
            ("2026-11-24", None),
            ("2020-01-01", None),
            ("2027-02-30", None),
            ("soon", None),
            ("", None),
            ("d", None),
            ("日", None),
        ] {
            assert_eq!(
                until(text, TODAY).ok().map(|d| d.to_string()).as_deref(),
                date,
                "{text}"
            );
        }
    }

    #[test]
    fn a_problem_keeps_the_question_open_until_the_next_key() {
        let mut prompt = Prompt::reject(vec!["F1".to_owned()], true);
        assert_eq!(prompt.press(KeyPress::Enter, TODAY), PromptAnswer::Open);
        assert!(prompt.problem.is_some());
        assert_eq!(prompt.press(KeyPress::Char('x'), TODAY), PromptAnswer::Open);
        assert!(prompt.problem.is_none());
        assert_eq!(
            prompt.press(KeyPress::Enter, TODAY),
            PromptAnswer::Text("x".to_owned())
        );
        assert_eq!(prompt.press(KeyPress::Esc, TODAY), PromptAnswer::Cancelled);
    }

    #[test]
    fn another_date_replaces_the_one_that_is_offered() {
        assert_eq!(
            typed("30d"),
            PromptAnswer::Date(jiff::civil::date(2026, 12, 24), String::new())
        );
        assert_eq!(
            typed("2w later"),
            PromptAnswer::Date(jiff::civil::date(2026, 12, 8), "later".to_owned())
        );
        assert_eq!(
            typed(" later"),
            PromptAnswer::Date(jiff::civil::date(2027, 2, 22), "later".to_owned())
        );
        let mut edited = Prompt::defer(vec!["F1".to_owned()], TODAY);
        assert_eq!(edited.press(KeyPress::Backspace, TODAY), PromptAnswer::Open);
        assert_eq!(edited.press(KeyPress::Char('3'), TODAY), PromptAnswer::Open);
        assert_eq!(edited.line.text(), "2027-02-23");
    }

    /// Types a date, and returns the answer of the prompt.
    fn typed(keys: &str) -> PromptAnswer {
        let mut prompt = Prompt::defer(vec!["F1".to_owned()], TODAY);
        keys.chars()
            .for_each(|c| assert_eq!(prompt.press(KeyPress::Char(c), TODAY), PromptAnswer::Open));
        prompt.press(KeyPress::Enter, TODAY)
    }

    #[test]
    fn a_reason_may_follow_the_date() {
        let mut prompt = Prompt::defer(vec!["F1".to_owned()], TODAY);
        assert_eq!(prompt.line.text(), "2027-02-22");
        prompt.paste(" after the release");
        let date = jiff::civil::date(2027, 2, 22);
        assert_eq!(
            prompt.press(KeyPress::Enter, TODAY),
            PromptAnswer::Date(date, "after the release".to_owned())
        );
    }
}
