//! Checks that each context server starts and has a permitted tool.

use super::{CheckSection, CheckState, DoctorCheck, Patient};
use crate::context::{Probe, probe};
use crate::git::Repo;
use crate::stop::Stop;
use std::time::Duration;

/// Time that a server has to start and list its tools.
const TIME: Duration = Duration::from_secs(30);

/// Starts the servers of the policy. With `--offline` none is started, because a server uses the
/// network.
pub(super) fn examine(patient: &Patient<'_>) -> Option<CheckSection> {
    let servers = &patient.policy.context.servers;
    if servers.is_empty() {
        return None;
    }
    let mut section = CheckSection::new("context servers");
    if patient.offline {
        let names: Vec<&str> = servers.iter().map(|s| s.name.as_str()).collect();
        section.checks.push(DoctorCheck::told(
            "server",
            format!("{}: not started because of --offline", names.join(", ")),
        ));
        return Some(section);
    }
    let top = patient.repo.and_then(Repo::worktree);
    for Probe { name, outcome } in probe(servers, patient.env, top, TIME, &Stop::default()) {
        section.checks.push(match outcome {
            Ok(tools) => DoctorCheck::good(
                "server",
                format!("{name}: starts, and has {}", tools.join(", ")),
            ),
            // Missing tickets make a review incomplete only if they are required.
            Err(why) => {
                let state = if patient.policy.context.required {
                    CheckState::Bad
                } else {
                    CheckState::Doubtful
                };
                DoctorCheck::new("server", state, format!("{name}: {why}"))
                    .hint(format!("check [context.servers.{name}]"))
            }
        });
    }
    Some(section)
}
