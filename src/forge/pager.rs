//! Reads lists page by page, whatever way a forge numbers the pages.

use super::client::{ApiDocument, Query};
use super::lacks;
use super::session::ForgeSession;
use crate::http::{Cause, Failure, Url};
use serde_json::Value;

/// The items of a paginated list.
#[derive(Clone, Debug, Default)]
pub(super) struct Pages {
    pub(super) items: Vec<Value>,
    /// Whether the list has items that were not read.
    pub(super) more: bool,
}

/// A position in a list, and how the forge names the pages around it.
pub(super) trait PageCursor {
    /// Pages of a list that are read, at most, even if they are almost empty.
    fn most_pages(&self) -> usize {
        usize::MAX
    }

    /// Returns the address of the current page.
    fn url(&self, session: &ForgeSession<'_>) -> Result<Url, Failure>;

    /// Reads the items of the current page, and whether there is a next one.
    fn read(
        &mut self,
        session: &ForgeSession<'_>,
        page: ApiDocument,
    ) -> Result<(Vec<Value>, bool), Failure>;

    /// Moves to the next page. `count` is the number of items so far.
    fn advance(&mut self, session: &ForgeSession<'_>, count: usize) -> Result<(), Failure>;

    /// Decides what to do about a page that exceeds the size limit of an answer.
    fn too_large(&mut self, items: &mut Vec<Value>) -> TooLarge;
}

/// What to do about a page that exceeds the size limit.
pub(super) enum TooLarge {
    /// Read the page at the cursor, which now has fewer items. The cursor has removed from
    /// the list the items that this page has again.
    Retry,
    /// Leave out its only item. A null takes its place.
    Skip,
    Fail,
}

/// Reads a list, `most` items at most.
pub(super) fn pages(
    session: &ForgeSession<'_>,
    mut cursor: impl PageCursor,
    most: usize,
) -> Result<Pages, Failure> {
    let mut out = Pages::default();
    for _ in 0..cursor.most_pages() {
        let (items, has_next) = match session.fetch(cursor.url(session)?) {
            Err(failure) if is_too_large(&failure) => match cursor.too_large(&mut out.items) {
                TooLarge::Retry => continue,
                TooLarge::Skip => {
                    out.more = true;
                    (vec![Value::Null], true)
                }
                TooLarge::Fail => return Err(failure),
            },
            page => cursor.read(session, page?)?,
        };
        out.items.extend(items);
        if out.items.len() >= most {
            out.more |= out.items.len() > most || has_next;
            out.items.truncate(most);
            return Ok(out);
        }
        if !has_next {
            return Ok(out);
        }
        cursor.advance(session, out.items.len())?;
    }
    out.more = true;
    Ok(out)
}

/// Returns true if an answer exceeded the size limit; a page with fewer items may not.
fn is_too_large(failure: &Failure) -> bool {
    failure.cause == Cause::TooLarge && failure.status.is_none()
}

/// Returns the items of an answer that is a list.
pub(super) fn list_of(value: Value) -> Result<Vec<Value>, Failure> {
    match value {
        Value::Array(items) => Ok(items),
        _ => Err(Failure::new(Cause::Malformed, "the answer is not a list")),
    }
}

/// Where a page has the address of the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PageLink {
    /// In a `Link` header (RFC 8288); the answer is the list.
    Header,
    /// In its field `next`; the list is in `values`.
    Field,
}

/// Pages that each contain the address of the next one. If one exceeds the size limit, the list is
/// read again with ten items a page.
pub(super) struct LinkedPages<'a> {
    link: PageLink,
    path: &'a [String],
    query: Vec<(&'a str, &'a str)>,
    has_small_pages: bool,
    /// The address of the current page, unless it is the first one.
    at: Option<Url>,
    /// The unchecked address of the next page, in a field.
    next: Option<String>,
}

impl<'a> LinkedPages<'a> {
    /// Returns the start of a list. `per_page` or `pagelen` in the query is the number of items of
    /// a page.
    pub(super) fn new(link: PageLink, path: &'a [String], query: Query<'a>) -> Self {
        Self {
            link,
            path,
            query: query.to_vec(),
            has_small_pages: false,
            at: None,
            next: None,
        }
    }
}

impl PageCursor for LinkedPages<'_> {
    fn url(&self, session: &ForgeSession<'_>) -> Result<Url, Failure> {
        match &self.at {
            Some(url) => Ok(url.clone()),
            None => session.url(self.path, &self.query),
        }
    }

    fn read(
        &mut self,
        session: &ForgeSession<'_>,
        mut page: ApiDocument,
    ) -> Result<(Vec<Value>, bool), Failure> {
        let (items, has_next) = match self.link {
            PageLink::Header => {
                let items = list_of(page.value)?;
                self.at = session.next(&page.headers)?;
                (items, self.at.is_some())
            }
            PageLink::Field => {
                self.next = page.value["next"].as_str().map(str::to_owned);
                let values = page.value.get_mut("values").map(Value::take);
                let Some(Value::Array(items)) = values else {
                    return Err(lacks("/values"));
                };
                (items, self.next.is_some())
            }
        };
        // Empty pages that link to a next one could go on forever.
        let has_next = has_next && !items.is_empty();
        Ok((items, has_next))
    }

    fn advance(&mut self, session: &ForgeSession<'_>, _count: usize) -> Result<(), Failure> {
        if let Some(next) = self.next.take() {
            self.at = Some(session.page(&next)?);
        }
        Ok(())
    }

    fn too_large(&mut self, items: &mut Vec<Value>) -> TooLarge {
        if self.has_small_pages {
            return TooLarge::Fail;
        }
        self.has_small_pages = true;
        for (_, value) in self
            .query
            .iter_mut()
            .filter(|(name, _)| matches!(*name, "per_page" | "pagelen"))
        {
            *value = "10";
        }
        self.at = None;
        items.clear();
        TooLarge::Retry
    }
}
