//! Tests of the values of policy keys.

use super::*;

fn read(kind: ValueKind, text: &str) -> Result<String, String> {
    let value = DeValue::parse(text).unwrap();
    kind.read(&value).map(|v| v.to_toml()).map_err(|c| {
        let hint = c.hint.map(|h| format!(" ({h})")).unwrap_or_default();
        c.text + &hint
    })
}

#[test]
fn severities_take_synonyms_and_come_out_worst_first() {
    let list = read(
        ValueKind::Severities,
        r#"["warning", "High", "blocker", "major"]"#,
    );
    assert_eq!(list.unwrap(), r#"["critical", "major", "minor"]"#);
    let e = read(ValueKind::Severities, r#"["majr"]"#).unwrap_err();
    assert_eq!(
        e,
        r#"has the unknown severity "majr" (did you mean "major"?)"#
    );
    let e = read(ValueKind::Severities, r#""major""#).unwrap_err();
    assert!(e.contains(r#"write it as a list: ["major"]"#), "{e}");
}

#[test]
fn bounds_are_named() {
    assert_eq!(read(ValueKind::Count(1, 64), "8").unwrap(), "8");
    assert_eq!(
        read(ValueKind::Count(1, 64), "0").unwrap_err(),
        "must be a whole number from 1 to 64, not 0"
    );
    assert_eq!(
        read(ValueKind::Count(1, 64), "-3").unwrap_err(),
        "must be a whole number from 1 to 64, not -3"
    );
    assert!(read(ValueKind::Count(1, 64), "9223372036854775807").is_err());
    assert!(read(ValueKind::Count(1, 64), "99999999999999999999999").is_err());
    assert_eq!(
        read(ValueKind::Count(1, 64), "4.0").unwrap_err(),
        "must be a whole number from 1 to 64, not a decimal number"
    );
    for bad in ["nan", "inf", "-0.5", "1e999", "true"] {
        assert!(read(ValueKind::Number(0.0, 10.0), bad).is_err(), "{bad}");
    }
    assert_eq!(read(ValueKind::Number(0.0, 10.0), "1").unwrap(), "1.0");
    assert_eq!(
        read(ValueKind::Span(1, 3600), r#""1m30s""#).unwrap(),
        r#""1m30s""#
    );
    assert!(
        read(ValueKind::Span(1, 3600), "90")
            .unwrap_err()
            .contains(r#"add a unit: "90s""#)
    );
    assert!(read(ValueKind::Span(1, 3600), r#""2h""#).is_err());
}

#[test]
fn paths_stay_inside_the_repository() {
    for bad in [
        "../x",
        "a/../../x",
        "/etc",
        ".git/hooks",
        "a/.GIT/x",
        "",
        "a//b",
        "a\\\\b",
        "c:/x",
        "\\u0000",
    ] {
        assert!(
            read(ValueKind::Files, &format!("[\"{bad}\"]")).is_err(),
            "{bad}"
        );
    }
    assert_eq!(
        read(ValueKind::Files, r#"["./docs/a.md", "rules/"]"#).unwrap(),
        r#"["docs/a.md", "rules"]"#
    );
}

#[test]
fn programs_are_names_or_absolute_paths() {
    for (good, text) in [
        (true, "claude"),
        (true, "/opt/claude"),
        (false, "./claude"),
        (false, "tools/claude"),
        (false, " "),
    ] {
        assert_eq!(
            read(ValueKind::Program, &format!("{text:?}")).is_ok(),
            good,
            "{text}"
        );
    }
}

#[test]
fn a_container_command_names_a_program_and_the_folder() {
    let command = r#"["podman", "run", "-v", "{tree}:/a", "-v", "x:/b", "image"]"#;
    assert_eq!(
        read(ValueKind::Sandbox, command).unwrap(),
        command,
        "repeated words stay"
    );
    assert!(read(ValueKind::Sandbox, r#"["/usr/bin/docker", "{tree}"]"#).is_ok());
    for bad in [
        "[]",
        r#"["podman", "run"]"#,
        r#"["./podman", "{tree}"]"#,
        r#"["podman", "{tree}", ""]"#,
        r#""podman""#,
    ] {
        assert!(read(ValueKind::Sandbox, bad).is_err(), "{bad}");
    }
}

#[test]
fn folders_of_a_sandbox_are_absolute_of_the_home_or_of_the_repository() {
    let folders = r#"["node_modules", "~/.cargo", "/opt/tools"]"#;
    assert_eq!(read(ValueKind::Folders, folders).unwrap(), folders);
    for bad in ["../other", "a/../../b", ".git", "a\\u0000b", ""] {
        assert!(
            read(ValueKind::Folders, &format!("[\"{bad}\"]")).is_err(),
            "{bad}"
        );
    }
}

#[test]
fn a_key_in_place_of_its_variables_name_is_not_repeated() {
    let e = read(ValueKind::Variable, r#""not-a-name-but-a-key""#).unwrap_err();
    assert!(!e.contains("not-a-name-but-a-key"), "{e}");
    assert!(e.contains("not the key"), "{e}");
}
