//! Decides which references may be read. Pure.
//!
//! The operator's token can often read more than the author of a change may see. The author must
//! not choose what it reads: without a list of projects, only projects that the reviewed history of
//! the base names are read.

use super::reference::{ChangeTexts, Reference, references};
use std::collections::BTreeSet;

/// The projects whose tickets, pages and issues may be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allowed {
    /// Projects of `[context] projects`; empty if it is not set.
    listed: Vec<String>,
    /// Projects and spaces that commit messages of the base name, in upper case.
    of_base: BTreeSet<String>,
    /// The operator's own pattern finds the keys, which are then allowed without a list.
    has_pattern: bool,
}

impl Allowed {
    /// Allows the projects that the operator lists.
    pub fn listed(projects: &[String]) -> Self {
        Self {
            listed: projects.to_vec(),
            ..Self::default()
        }
    }

    /// Also allows the projects of the base, if the operator lists none.
    #[must_use]
    pub fn with_base(mut self, projects: BTreeSet<String>) -> Self {
        self.of_base = projects;
        self
    }

    /// Allows all keys that the operator's pattern finds, if the operator lists no projects.
    #[must_use]
    pub fn with_pattern(mut self) -> Self {
        self.has_pattern = true;
        self
    }

    /// Returns true if the operator lists projects.
    pub fn is_listed(&self) -> bool {
        !self.listed.is_empty()
    }

    /// Returns true if the operator lists this project by name.
    pub(super) fn lists(&self, project: &str) -> bool {
        self.listed.iter().any(|p| p.eq_ignore_ascii_case(project))
    }

    /// Returns true if a project or space may be read.
    fn has(&self, project: &str) -> bool {
        match self.is_listed() {
            true => self.lists(project),
            false => self.of_base.contains(&project.to_ascii_uppercase()),
        }
    }

    /// Returns true if the project of a key is listed, or named in the base.
    pub(super) fn names_project(&self, key: &str) -> bool {
        project_of(key).is_some_and(|p| self.has(p))
    }

    /// Returns why a reference must not be read; `None` if it may be read.
    pub fn refuses(&self, reference: &Reference) -> Option<String> {
        match reference {
            Reference::Ticket(_) if self.has_pattern && !self.is_listed() => None,
            Reference::Ticket(key) => match project_of(key) {
                Some(project) if self.has(project) => None,
                Some(project) => Some(self.unknown(&format!("project {project}"))),
                None => Some(not_listed(&format!("the project of {key}"))),
            },
            Reference::Issue { project: None, .. } => None,
            Reference::Issue {
                project: Some(project),
                ..
            } if self.lists(project) => None,
            Reference::Issue {
                project: Some(project),
                ..
            } => Some(not_listed(project)),
            Reference::Page {
                space: Some(space), ..
            } if self.has(space) => None,
            Reference::Page {
                space: Some(space), ..
            } => Some(self.unknown(&format!("space {space}"))),
            // The answer names the space, which is checked then.
            Reference::Page { space: None, .. } => None,
        }
    }

    fn unknown(&self, what: &str) -> String {
        match self.is_listed() {
            true => not_listed(what),
            false => {
                format!("no commit of the base names {what}, and it is not in [context] projects")
            }
        }
    }

    /// Returns why the answer for a reference is not used: it is about another ticket or page, in a
    /// project that must not be read. The answer for a moved ticket has its new key.
    pub(super) fn refuses_answer(
        &self,
        reference: &Reference,
        key: &str,
        space: &str,
    ) -> Option<String> {
        match reference {
            Reference::Ticket(asked) if key.is_empty() || key.eq_ignore_ascii_case(asked) => None,
            // Some servers answer with the number of a ticket, which does not reveal its project.
            Reference::Ticket(_) if key.bytes().all(|b| b.is_ascii_digit()) => None,
            Reference::Ticket(_) => self
                .refuses(&Reference::Ticket(key.to_owned()))
                .map(|why| format!("the answer is about {key}: {why}")),
            Reference::Page { id, .. } if !key.is_empty() && key != id => {
                Some(format!("the answer is about page {key}"))
            }
            Reference::Page { .. } if space.is_empty() => {
                Some("the answer does not name the space of the page".to_owned())
            }
            Reference::Page { .. } if self.has(space) => None,
            Reference::Page { .. } => Some(self.unknown(&format!("space {space}"))),
            Reference::Issue { .. } => None,
        }
    }
}

fn not_listed(what: &str) -> String {
    format!("{what} is not in [context] projects")
}

/// Returns the project of a key: the part before its last hyphen or underscore.
fn project_of(key: &str) -> Option<&str> {
    let (project, number) = key.rsplit_once(['-', '_'])?;
    (!project.is_empty() && number.bytes().all(|b| b.is_ascii_digit())).then_some(project)
}

/// Returns the projects and spaces that commit messages name, in upper case.
pub fn projects_of(messages: &[String]) -> BTreeSet<String> {
    let nothing = Allowed::default();
    let mut out = BTreeSet::new();
    for message in messages {
        let texts = ChangeTexts {
            title: message.clone(),
            ..ChangeTexts::default()
        };
        for reference in references(&texts, None, None, &nothing) {
            match reference {
                Reference::Ticket(key) => out.extend(project_of(&key).map(str::to_ascii_uppercase)),
                Reference::Page { space, .. } => out.extend(space.map(|s| s.to_ascii_uppercase())),
                Reference::Issue { .. } => {}
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticket(key: &str) -> Reference {
        Reference::Ticket(key.to_owned())
    }

    fn page(space: Option<&str>) -> Reference {
        Reference::Page {
            space: space.map(str::to_owned),
            id: "1".to_owned(),
        }
    }

    /// Returns true if an answer is not used.
    fn refuses(allowed: &Allowed, asked: &Reference, key: &str, space: &str) -> bool {
        allowed.refuses_answer(asked, key, space).is_some()
    }

    fn issue(project: &str) -> Reference {
        Reference::Issue {
            project: Some(project.to_owned()),
            number: 1,
        }
    }

    #[test]
    fn a_list_of_projects_is_exact() {
        let allowed = Allowed::listed(&["PROJ".to_owned(), "o/r".to_owned()])
            .with_base(["OPS".to_owned()].into());
        assert_eq!(allowed.refuses(&ticket("PROJ-1")), None);
        assert_eq!(
            allowed.refuses(&ticket("OPS-1")).unwrap(),
            "project OPS is not in [context] projects"
        );
        assert!(allowed.refuses(&ticket("PROJ2-1")).is_some());
        assert!(allowed.refuses(&ticket("SUBPROJ-1")).is_some());
        assert_eq!(allowed.refuses(&issue("o/r")), None);
        assert!(allowed.refuses(&issue("o/rr")).is_some());
    }

    #[test]
    fn without_a_list_the_base_says_which_projects_are_known() {
        let base = projects_of(&[
            "PROJ-1: x, UTF-8".to_owned(),
            "https://w.example/spaces/DEV/pages/3".to_owned(),
        ]);
        assert_eq!(base, ["DEV".to_owned(), "PROJ".to_owned()].into());
        let allowed = Allowed::listed(&[]).with_base(base);
        assert_eq!(allowed.refuses(&ticket("PROJ-9")), None);
        assert!(
            allowed
                .refuses(&ticket("HR-1"))
                .unwrap()
                .starts_with("no commit of the base names project HR")
        );
        assert_eq!(allowed.refuses(&page(Some("DEV"))), None);
        assert!(allowed.refuses(&page(Some("HR"))).is_some());
    }

    #[test]
    fn an_answer_about_another_project_is_refused() {
        let allowed = Allowed::listed(&["PROJ".to_owned(), "DEV".to_owned()]);
        assert!(!refuses(&allowed, &ticket("PROJ-1"), "PROJ-1", ""));
        assert!(
            !refuses(&allowed, &ticket("PROJ-1"), "PROJ-77", ""),
            "moved within the project"
        );
        assert!(!refuses(&allowed, &ticket("PROJ-1"), "10001", ""));
        assert!(
            refuses(&allowed, &ticket("PROJ-1"), "HR-1", ""),
            "moved into a project that may not be read"
        );
        assert!(!refuses(&allowed, &page(None), "1", "DEV"));
        assert!(refuses(&allowed, &page(None), "1", "HR"));
        assert!(
            refuses(&allowed, &page(Some("DEV")), "1", "HR"),
            "the address named another space"
        );
        assert!(refuses(&allowed, &page(Some("DEV")), "1", ""));
    }
}
