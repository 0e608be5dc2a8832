//! Tags of the fields of structs.

/// Checks of go-playground/validator after which a text is harmless.
const CHECKS: [&str; 12] = [
    "number",
    "numeric",
    "alpha",
    "alphanum",
    "hexadecimal",
    "boolean",
    "uuid",
    "uuid4",
    "ip",
    "ipv4",
    "mongodb",
    "semver",
];

/// Returns true if the tag of a field names a check that only harmless texts pass:
/// `binding:"oneof=name date"`.
pub(super) fn is_checked(tag: &str) -> bool {
    let lists = ["binding:\"", "validate:\""]
        .iter()
        .filter_map(|key| tag.split_once(key));
    let mut checks =
        lists.flat_map(|(_, rest)| rest.split('"').next().unwrap_or_default().split(','));
    checks.any(|check| CHECKS.contains(&check) || check.starts_with("oneof="))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_that_limits_the_characters_counts() {
        for tag in [
            r#"`form:"sort" binding:"required,oneof=name date"`"#,
            r#"`validate:"uuid"`"#,
        ] {
            assert!(is_checked(tag), "{tag}");
        }
        for tag in [
            "",
            r#"`form:"uuid"`"#,
            r#"`binding:"required"`"#,
            r#"`json:"x" validate:"min=3,max=20"`"#,
        ] {
            assert!(!is_checked(tag), "{tag}");
        }
    }
}
