//! GitLab's pages: they are numbered, and have as many items as the request says.

use crate::forge::client::{ApiDocument, Query};
use crate::forge::pager::{PageCursor, TooLarge, list_of};
use crate::forge::session::ForgeSession;
use crate::http::{Cause, Failure, HeaderMap, Url};
use serde_json::Value;

/// Items of a page, and smaller numbers for pages that exceed the size limit: a note has up to a
/// megabyte. Each number divides the previous one.
const SIZES: [usize; 3] = [100, 10, 1];
/// Pages of a list, at most, even if they are almost empty.
const MOST_PAGES: usize = 300;

/// A position in a list.
///
/// The number of the next page takes precedence over its address: a server behind a proxy may not
/// know its own name. An address is followed only below the API's.
pub(super) struct NumberedPages<'a> {
    path: &'a [String],
    query: Query<'a>,
    /// The number of the current page, from 1.
    number: u64,
    /// Index of its size in [`SIZES`].
    level: usize,
    /// Whether all pages so far are full. Then the number of a page determines the items that were
    /// read, whatever the size of the next page.
    is_even: bool,
    /// The address of the current page, if the previous one had no number of it.
    at: Option<Url>,
    /// The page that follows the current one.
    next: Option<NextPage>,
}

/// The number of the next page, and its address if the answer has only that.
struct NextPage {
    number: u64,
    at: Option<Url>,
}

impl<'a> NumberedPages<'a> {
    /// Returns the start of a list.
    pub(super) fn new(path: &'a [String], query: Query<'a>) -> Self {
        Self {
            path,
            query,
            number: 1,
            level: 0,
            is_even: true,
            at: None,
            next: None,
        }
    }

    /// Moves to the page that begins after `count` items. All pages before it are full.
    fn go_to_item(&mut self, count: usize) {
        self.number = (count / SIZES[self.level]) as u64 + 1;
        self.at = None;
    }
}

impl PageCursor for NumberedPages<'_> {
    fn most_pages(&self) -> usize {
        MOST_PAGES
    }

    fn url(&self, session: &ForgeSession<'_>) -> Result<Url, Failure> {
        if let Some(url) = &self.at {
            return Ok(url.clone());
        }
        let (page, size) = (self.number.to_string(), SIZES[self.level].to_string());
        let own = [("per_page", size.as_str()), ("page", page.as_str())];
        let query: Vec<_> = self.query.iter().copied().chain(own).collect();
        session.url(self.path, &query)
    }

    fn read(
        &mut self,
        session: &ForgeSession<'_>,
        page: ApiDocument,
    ) -> Result<(Vec<Value>, bool), Failure> {
        let items = list_of(page.value)?;
        self.is_even &= items.len() == SIZES[self.level];
        self.next = match next_number(&page.headers, self.number)? {
            Some(next) => next.map(|number| NextPage { number, at: None }),
            None => session.next(&page.headers)?.map(|url| NextPage {
                number: self.number + 1,
                at: Some(url),
            }),
        };
        Ok((items, self.next.is_some()))
    }

    fn advance(&mut self, _session: &ForgeSession<'_>, count: usize) -> Result<(), Failure> {
        // After the large items, the page size grows again.
        if self.level > 0 && self.is_even && count.is_multiple_of(SIZES[self.level - 1]) {
            self.level -= 1;
            self.go_to_item(count);
        } else if let Some(next) = self.next.take() {
            (self.number, self.at) = (next.number, next.at);
        }
        Ok(())
    }

    fn too_large(&mut self, items: &mut Vec<Value>) -> TooLarge {
        if self.level + 1 < SIZES.len() {
            self.level += 1;
            if !self.is_even {
                items.clear();
                self.is_even = true;
            }
            self.go_to_item(items.len());
            return TooLarge::Retry;
        }
        if !self.is_even {
            return TooLarge::Fail;
        }
        self.next = Some(NextPage {
            number: self.number + 1,
            at: None,
        });
        TooLarge::Skip
    }
}

/// Reads the number of the next page. `Some(None)` means that this is the last page; `None`, that
/// the answer has no number.
fn next_number(headers: &HeaderMap, number: u64) -> Result<Option<Option<u64>>, Failure> {
    let Some(value) = headers.get("x-next-page") else {
        return Ok(None);
    };
    match value.to_str().map(str::trim) {
        Ok("") => Ok(Some(None)),
        // Never go back: that could go on forever.
        Ok(text) if let Some(next) = text.parse().ok().filter(|next| *next > number) => {
            Ok(Some(Some(next)))
        }
        _ => Err(Failure::new(
            Cause::Malformed,
            "the next page of a list has no number that comes next",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::next_number;
    use crate::http::HeaderMap;

    #[test]
    fn pages_only_go_on() {
        fn next(value: Option<&str>) -> Option<Option<Option<u64>>> {
            let mut headers = HeaderMap::new();
            if let Some(value) = value {
                headers.insert("x-next-page", value.parse().unwrap());
            }
            next_number(&headers, 3).ok()
        }
        assert_eq!(next(None), Some(None));
        assert_eq!(next(Some("")), Some(Some(None)));
        assert_eq!(next(Some(" 4 ")), Some(Some(Some(4))));
        for bad in ["3", "1", "-1", "x", "4x"] {
            assert_eq!(next(Some(bad)), None, "{bad}");
        }
    }
}
