//! Reports of several repositories: their totals, and that no name acts in them.

use super::*;
use crate::report::fleet::{self, FORMATS, Fleet, FleetMember};
use crate::report::sample::{clean, full, incomplete};

/// Returns the reviews of three repositories, the worst in the middle.
fn fleet() -> Fleet {
    let member = |name: &str, review: Review| FleetMember {
        name: name.to_owned(),
        report: super::super::json::report(&review),
        review,
    };
    Fleet {
        members: vec![
            member("clean/repo", clean()),
            member("web", full()),
            member("late", incomplete(crate::error::ExitStatus::Incomplete)),
        ],
    }
}

fn shown(fleet: &Fleet, format: ReportFormat) -> String {
    let mut out = Vec::new();
    fleet::render(fleet, format, &Style::default(), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn the_verdict_of_several_repositories_is_the_worst() {
    let mut fleet = fleet();
    assert_eq!(fleet.verdict().name(), "block");
    assert_eq!(fleet.exit().code(), 1);
    fleet.members.remove(1);
    assert_eq!(
        (fleet.verdict().name(), fleet.exit().code()),
        ("incomplete", 3)
    );
    fleet.members.remove(1);
    assert_eq!((fleet.verdict().name(), fleet.exit().code()), ("pass", 0));
    fleet.members.clear();
    assert_ne!(fleet.exit().code(), 0, "no review opens no gate");
}

#[test]
fn every_format_for_several_repositories_names_each_of_them() {
    let fleet = fleet();
    for format in FORMATS {
        let text = shown(&fleet, format);
        if format == ReportFormat::Dotenv {
            assert!(text.contains("repositories=3\n"), "{text}");
            continue;
        }
        for m in &fleet.members {
            assert!(text.contains(&m.name), "{}: {}", format.name(), m.name);
        }
    }
    for format in ReportFormat::ALL.iter().filter(|f| !FORMATS.contains(f)) {
        let error = fleet::refuse_other_formats(*format).unwrap_err();
        assert!(error.message.contains(format.name()), "{error}");
    }
}

#[test]
fn inj_16_no_name_of_a_repository_acts_in_a_report() {
    let mut fleet = fleet();
    let hostile =
        "</h3><script>alert(1)</script>\u{1b}[2J\u{202e}\r\n::error::x | ![x](http://e) ##[error]";
    fleet.members[0].name = hostile.to_owned();
    for format in FORMATS {
        let text = shown(&fleet, format);
        let active = text
            .chars()
            .find(|c| *c != '\n' && crate::untrusted::is_active(*c));
        assert_eq!(active, None, "{}", format.name());
        assert!(
            !text
                .lines()
                .any(|l| l.trim_start().starts_with("::error::x")),
            "{}",
            format.name()
        );
        if matches!(format, ReportFormat::Html | ReportFormat::Junit) {
            assert!(!text.contains("<script"), "{}", format.name());
        }
        if format == ReportFormat::Summary {
            assert!(!text.contains("![x](http"), "{text}");
            let row = text.lines().find(|l| l.contains("alert")).unwrap();
            assert_eq!(row.replace("\\|", "").matches('|').count(), 8, "{row}");
        }
    }
}

#[test]
fn the_page_of_several_repositories_has_unique_ids_and_working_links() {
    let page = shown(&fleet(), ReportFormat::Html);
    let ids = |start: &str| -> Vec<String> {
        let parts = page.split(start).skip(1);
        let ids = parts.map(|p| p.split([' ', '>', '"']).next().unwrap().to_owned());
        ids.collect()
    };
    let own = ids(" id=");
    let unique: std::collections::BTreeSet<_> = own.iter().collect();
    assert_eq!(unique.len(), own.len(), "{own:?}");
    for link in ids("href=#") {
        assert!(own.contains(&link), "{link}");
    }
}

#[test]
fn the_published_schema_of_several_repositories_is_the_one_of_the_types() {
    compare(&[("schemas/fleet.schema.json", crate::wire::fleet::schema())]);
    let text = shown(&fleet(), ReportFormat::Json);
    let read: crate::wire::fleet::FleetReport = serde_json::from_str(&text).unwrap();
    assert_eq!(read.reports.len(), 3);
    assert_eq!(
        read.summary.text,
        "3 repositories: 1 blocked, 1 incomplete, 1 passed"
    );
}
