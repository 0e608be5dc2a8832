//! Reports whether models can be asked, for programs that check before they ask. Sends nothing to a
//! provider.

use super::{CheckSection, CheckState, DoctorCheck, Patient, backends, place};
use crate::ai::backend::{Backend, Pool};
use crate::counsel::CounselAsk;
use crate::error::Result;
use crate::git::Repo;
use crate::policy::{self, BackendKind, Policy};
use crate::review::{Consultation, World};
use crate::wire::counsel as wire;
use std::time::{Duration, Instant};

/// Time limit for the version of the program.
const TIME: Duration = Duration::from_secs(30);

/// Checks that the Claude Code program answers, and the state of every backend of the policy.
///
/// # Errors
///
/// Usage: a malformed policy, a repository that cannot be opened.
pub fn health(ask: &CounselAsk, world: &World<'_>) -> Result<wire::Health> {
    let mut request = crate::request::ReviewRequest::new(
        crate::request::Source::Code(Vec::new()),
        ask.root.clone(),
    );
    request.authority = crate::request::Authority::Head;
    request.config.clone_from(&ask.config);
    let consultation = Consultation::open(&request, world)?;
    let policy = consultation.policy();
    let names = consultation.backends();
    let patient = Patient {
        env: world.env,
        dir: &ask.root,
        repo: consultation.repo(),
        policy,
        policy_files: policy.origin_label(),
        policy_notes: &[],
        config: ask.config.as_ref(),
        backends: names,
        offline: true,
        probe: false,
    };
    let (version, error) = match claude(&patient, world) {
        Ok(version) => (version, None),
        Err(why) => (None, Some(why)),
    };
    let asked = if names.is_empty() {
        Vec::new()
    } else {
        backends::examine(&patient)
    };
    let backends: Vec<wire::BackendHealth> =
        names.iter().map(|name| of(name, policy, &asked)).collect();
    let mut tools = place::tools(&patient).checks;
    tools.extend(place::policy(&patient).checks);
    let claude = match (&version, &error) {
        (_, Some(why)) => format!("The Claude Code program is not available: {why}."),
        (Some(version), None) => format!("Claude Code {version} is available."),
        (None, None) => "Claude Code is available.".to_owned(),
    };
    let ready = backends.iter().filter(|b| b.available).count();
    let others = match backends.len() {
        0 => "The policy names no backend: only the rules run.".to_owned(),
        n => format!("{ready} of {n} backends of the policy are available."),
    };
    Ok(wire::Health {
        schema_version: wire::COUNSEL_VERSION,
        available: error.is_none(),
        version,
        error,
        server_version: env!("CARGO_PKG_VERSION").to_owned(),
        backends,
        tools: tools.into_iter().map(told).collect(),
        summary: format!("{claude} {others}"),
    })
}

/// Returns the version of the program, or why it cannot be used.
fn claude(patient: &Patient<'_>, world: &World<'_>) -> std::result::Result<Option<String>, String> {
    let named = patient.policy.backend("claude").filter(|b| is_program(b));
    let backend = named.or_else(|| patient.policy.backends.iter().find(|b| is_program(b)));
    let backend = backend.ok_or_else(|| "the policy has no such backend".to_owned())?;
    let top = patient.repo.and_then(Repo::worktree);
    let open = Backend::open(backend, patient.env, top, &Pool::default()).map_err(with_hint)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| e.to_string())?;
    runtime
        .block_on(open.version(Instant::now() + TIME, world.stop))
        .map_err(with_hint)
}

/// Returns true if a backend is the program `claude`.
fn is_program(backend: &policy::Backend) -> bool {
    backend.kind == Some(BackendKind::Claude)
}

/// Returns the message of a failure, with its hint in parentheses.
fn with_hint(failure: crate::ai::ask::Failure) -> String {
    match failure.hint {
        Some(hint) => format!("{} ({hint})", failure.message),
        None => failure.message,
    }
}

fn of(name: &str, policy: &Policy, sections: &[CheckSection]) -> wire::BackendHealth {
    let title = format!("backend {name}");
    let checks = sections
        .iter()
        .find(|s| s.title == title)
        .map(|s| s.checks.clone())
        .unwrap_or_default();
    let kind = policy
        .backend(name)
        .and_then(|b| b.kind)
        .map(|k| k.name().to_owned());
    wire::BackendHealth {
        name: name.to_owned(),
        kind,
        available: !checks.is_empty() && checks.iter().all(|c| c.state != CheckState::Bad),
        checks: checks.into_iter().map(told).collect(),
    }
}

fn told(check: DoctorCheck) -> wire::ToolCheck {
    wire::ToolCheck {
        name: check.name.to_owned(),
        state: check.state.name().to_owned(),
        text: check.text,
        hint: check.hint,
    }
}
