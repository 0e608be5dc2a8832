//! Documentation of a built-in rule in reports.

use super::catalog;

/// The parts of a rule that explain it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RuleDocs {
    pub(crate) why: Option<&'static str>,
    /// Code that the rule finds, and code to write instead. Rules for secrets have none, because
    /// other scanners would report the example.
    pub(crate) bad: Option<&'static str>,
    pub(crate) good: Option<&'static str>,
}

/// Returns the documentation of a rule. `None`: the rule is a team rule or does not exist.
pub(crate) fn about(id: &str) -> Option<RuleDocs> {
    let rule = &catalog::RULES[usize::from(catalog::index_of(id)?)];
    let (bad, good) = if rule.secret {
        (None, None)
    } else {
        (rule.bad.as_deref(), rule.good.as_deref())
    };
    Some(RuleDocs {
        why: rule.why.as_deref(),
        bad,
        good,
    })
}

/// Address of the documentation, from the package in `Cargo.toml`, which is the only place that
/// names it.
///
/// `homepage` is the address of the book. Without it, `repository` and the tag of this version give
/// the address of the book's sources. `ci/release` sets both; a build without them has no links.
const BOOK: Book = Book {
    home: env!("CARGO_PKG_HOMEPAGE"),
    repository: env!("CARGO_PKG_REPOSITORY"),
    version: env!("CARGO_PKG_VERSION"),
};

/// Returns the address of a built-in rule on the documentation page about rules; `None` for a rule
/// that is not built in, and in a build without an address.
pub fn doc_url(id: &str) -> Option<String> {
    let is_built_in = catalog::index_of(id).is_some();
    BOOK.page("rules")
        .filter(|_| is_built_in)
        .map(|page| format!("{page}#{id}"))
}

/// The location of the documentation.
struct Book {
    home: &'static str,
    repository: &'static str,
    version: &'static str,
}

impl Book {
    /// Returns the address of a page of the documentation.
    fn page(&self, name: &str) -> Option<String> {
        let Self {
            home,
            repository,
            version,
        } = self;
        let (home, repository) = (home.trim_end_matches('/'), repository.trim_end_matches('/'));
        match (home, repository) {
            ("", "") => None,
            ("", _) => Some(format!("{repository}/blob/v{version}/docs/{name}.md")),
            _ => Some(format!("{home}/{name}.html")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_linked_in_the_book_else_in_the_repository_else_not_at_all() {
        fn page(home: &'static str, repository: &'static str) -> Option<String> {
            Book {
                home,
                repository,
                version: "1.2.3",
            }
            .page("rules")
        }
        let (home, repository) = ("https://example.org/book/", "https://example.org/a/b");
        assert_eq!(
            page(home, repository).as_deref(),
            Some("https://example.org/book/rules.html")
        );
        assert_eq!(
            page("", repository).as_deref(),
            Some("https://example.org/a/b/blob/v1.2.3/docs/rules.md")
        );
        assert_eq!(page("", ""), None);
        assert_eq!(
            doc_url("no-such-rule"),
            None,
            "a team's rule is not in the book"
        );
        let url = doc_url("conflict-marker");
        assert_eq!(url.is_some(), BOOK.page("rules").is_some());
        assert!(url.is_none_or(|u| u.ends_with("#conflict-marker")));
    }
}
