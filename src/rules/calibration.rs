//! Requirements of the build script for the built-in rules: severity and confidence must agree with
//! the CWE, and exemptions of secrets must cover a value instead of a file.

use super::format::Rule;

/// Weaknesses of injection, as numbers of the CWE list: critical if the confidence is at least
/// medium.
const INJECTION: &[u32] = &[74, 77, 78, 79, 89, 94, 95, 502, 611, 918];
/// Exposed secrets: critical if the confidence is at least medium.
const SECRET: &[u32] = &[798, 522, 321];

/// Returns the error in a built-in rule, if there is one.
pub(crate) fn fault(rule: &Rule) -> Option<String> {
    let cwe = rule.cwe.unwrap_or_default();
    let injection = INJECTION.contains(&cwe);
    let (severity, confidence) = (rule.severity.as_str(), rule.confidence.as_str());
    if rule.secret && !rule.file_lacks.is_empty() {
        return Some(
            "file_lacks: a secret is not exempt for what else is in its file: use near_lacks"
                .to_owned(),
        );
    }
    match confidence {
        _ if rule.judges_origin && !injection => {
            Some(format!("judges_origin: CWE-{cwe} is not an injection"))
        }
        "low" if injection && severity != "suggestion" => Some(format!(
            "severity: CWE-{cwe} with confidence low is a suggestion, not {severity:?}"
        )),
        "medium" | "high" if (injection || SECRET.contains(&cwe)) && severity != "critical" => {
            Some(format!(
                "severity: CWE-{cwe} with confidence {confidence} is critical, not {severity:?}; \
             where the origin of the value is unknown, the confidence is low"
            ))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(cwe: &str, severity: &str, confidence: &str, more: &str) -> Rule {
        let text = format!(
            "id = 'a'\ntitle = 't'\ncategory = 'security'\nmessage = 'm'\nseverity = '{severity}'\n\
             confidence = '{confidence}'\n{cwe}\n{more}\n"
        );
        toml::from_str(&text).unwrap()
    }

    #[test]
    fn a_rule_that_contradicts_its_cwe_fails_the_build() {
        for cwe in INJECTION.iter().chain(SECRET) {
            let cwe = format!("cwe = {cwe}");
            for confidence in ["medium", "high"] {
                assert_eq!(fault(&rule(&cwe, "critical", confidence, "")), None);
                for severity in ["major", "minor", "suggestion"] {
                    assert!(
                        fault(&rule(&cwe, severity, confidence, "")).is_some(),
                        "{cwe} {severity} {confidence}"
                    );
                }
            }
            assert_eq!(fault(&rule(&cwe, "suggestion", "low", "")), None);
        }
        assert!(fault(&rule("cwe = 89", "major", "low", "")).is_some());
        assert!(
            fault(&rule(
                "cwe = 22",
                "critical",
                "high",
                "judges_origin = true"
            ))
            .is_some()
        );
        assert_eq!(
            fault(&rule(
                "cwe = 89",
                "critical",
                "high",
                "judges_origin = true"
            )),
            None
        );
        assert_eq!(fault(&rule("cwe = 295", "major", "high", "")), None);
        assert_eq!(fault(&rule("", "major", "high", "")), None);
    }
}
