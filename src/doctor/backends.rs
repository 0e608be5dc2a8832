//! Checks that each backend can be asked: program or endpoint, key, model.

use super::{CheckSection, CheckState, DoctorCheck, Patient};
use crate::ai::ask::{Cause, Failure};
use crate::ai::backend::{Backend, Pool};
use crate::git::Repo;
use crate::policy::{self, BackendKind, value};
use crate::stop::Stop;
use crate::text::listed;
use futures_util::future::join_all;
use std::time::{Duration, Instant};

/// Time limit for a request to a backend.
const TIME: Duration = Duration::from_secs(30);
/// Models that are listed, at most.
const MAX_MODELS: usize = 12;

/// Checks the backends that the policy enables. If it enables none, lists the known ones without
/// contacting them.
pub(super) fn examine(patient: &Patient<'_>) -> Vec<CheckSection> {
    let policy = patient.policy;
    let names = if patient.backends.is_empty() {
        &policy.review.backends
    } else {
        patient.backends
    };
    let named: Vec<&policy::Backend> = names.iter().filter_map(|n| policy.backend(n)).collect();
    if named.is_empty() {
        return vec![idle(patient)];
    }
    let runtime = match tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(e) => {
            let mut section = CheckSection::new("backends");
            section.checks.push(DoctorCheck::bad(
                "start",
                format!("cannot send requests: {e}"),
            ));
            return vec![section];
        }
    };
    let pool = Pool::default();
    let sections = runtime.block_on(join_all(named.into_iter().map(|b| one(patient, b, &pool))));
    // Do not wait for a pending name lookup.
    runtime.shutdown_background();
    sections
}

/// Lists backends that the policy does not use, without sending a request.
fn idle(patient: &Patient<'_>) -> CheckSection {
    let mut section = CheckSection::new("other backends");
    let top = patient.repo.and_then(Repo::worktree);
    // A preset is a server that most machines do not have.
    for backend in patient
        .policy
        .backends
        .iter()
        .filter(|b| b.preset().is_none())
    {
        let name = backend.kind.map_or("backend", BackendKind::name);
        let own = if backend.name == name {
            String::new()
        } else {
            format!("{}: ", backend.name)
        };
        let text = match Backend::open(backend, patient.env, top, &Pool::default()) {
            Ok(open) if open.kind() == BackendKind::Claude => {
                format!("{own}{}, with its own login", open.endpoint())
            }
            Ok(open) => format!(
                "{own}{}, key {}",
                open.endpoint(),
                key(patient, backend).text
            ),
            Err(failure) => format!("{own}{}", failure.message),
        };
        section.checks.push(DoctorCheck::told(name, text));
    }
    section
}

/// Checks one backend.
async fn one(patient: &Patient<'_>, backend: &policy::Backend, pool: &Pool) -> CheckSection {
    let mut section = CheckSection::new(format!("backend {}", backend.name));
    let top = patient.repo.and_then(Repo::worktree);
    match Backend::open(backend, patient.env, top, pool) {
        Ok(open) if open.kind() == BackendKind::Claude => {
            program(backend, &open, &mut section.checks).await;
        }
        Ok(open) => server(patient, backend, &open, &mut section.checks).await,
        Err(failure) => section.checks.push(DoctorCheck::failed("set up", &failure)),
    }
    section
}

/// Checks that the Claude Code program starts.
async fn program(backend: &policy::Backend, open: &Backend, checks: &mut Vec<DoctorCheck>) {
    checks.push(DoctorCheck::good("program", open.endpoint()));
    let stop = Stop::default();
    match open.ready(Instant::now() + TIME, &stop).await {
        Ok(model) => {
            // The version was just requested.
            let version = open
                .version(Instant::now() + TIME, &stop)
                .await
                .ok()
                .flatten();
            checks.push(DoctorCheck::good(
                "version",
                version.unwrap_or_else(|| "unknown".to_owned()),
            ));
            checks.push(chosen(backend, model, &[], true));
        }
        Err(failure) => checks.push(DoctorCheck::failed("version", &failure)),
    }
}

/// Checks that a server answers, accepts the key and has the model.
async fn server(
    patient: &Patient<'_>,
    backend: &policy::Backend,
    open: &Backend,
    checks: &mut Vec<DoctorCheck>,
) {
    checks.push(DoctorCheck::good("endpoint", open.endpoint()));
    checks.push(key(patient, backend));
    if patient.offline {
        let text = match &backend.model {
            Some(model) => format!("{model}; not checked with the server because of --offline"),
            None => "not known: the server's list was not asked for: --offline".to_owned(),
        };
        checks.push(DoctorCheck::told("model", text));
        return;
    }
    // The list of models has more information, so it is requested first; the answer also shows
    // whether the endpoint accepts the key.
    let offered = match open.models().await {
        Ok(offered) => offered,
        Err(failure) if backend.model.is_some() && lists_none(&failure) => {
            let text = format!("the server lists no models: {}", failure.message);
            checks.push(DoctorCheck::told("models", text));
            Vec::new()
        }
        Err(failure) => {
            checks.push(no_models(backend, &failure));
            return;
        }
    };
    match open.ready(Instant::now() + TIME, &Stop::default()).await {
        Ok(model) => checks.push(chosen(backend, model, &offered, false)),
        Err(failure) => checks.push(DoctorCheck::failed("model", &failure)),
    }
    if !offered.is_empty() {
        checks.push(DoctorCheck::told("offers", list(&offered)));
    }
}

/// Describes why the list of models cannot be read.
fn no_models(backend: &policy::Backend, failure: &Failure) -> DoctorCheck {
    let check = DoctorCheck::failed("models", failure);
    match (&check.hint, failure.cause) {
        (None, Cause::Unreachable) => {
            check.hint(format!("check base_url in [backend.{}]", backend.name))
        }
        _ => check,
    }
}

/// Returns true if the server answers, but has no list of models.
fn lists_none(failure: &Failure) -> bool {
    let has_no_route = ["404", "405", "501"]
        .iter()
        .any(|code| failure.message.starts_with(code));
    match failure.cause {
        Cause::Malformed => true,
        Cause::Setup | Cause::Refused => has_no_route,
        _ => false,
    }
}

fn chosen(
    backend: &policy::Backend,
    model: &str,
    offered: &[String],
    is_program: bool,
) -> DoctorCheck {
    match &backend.model {
        None if is_program => DoctorCheck::good("model", format!("{model}; the policy sets none")),
        None => DoctorCheck::good(
            "model",
            format!("{model}, the default; the policy sets none"),
        )
        .hint(format!(
            "to pin it, set model = {model:?} in [backend.{}]",
            backend.name
        )),
        Some(named) if offered.is_empty() || offered.contains(named) => {
            DoctorCheck::good("model", named)
        }
        Some(named) => {
            let check = DoctorCheck::new(
                "model",
                CheckState::Doubtful,
                format!("{named} is not in the list of the server"),
            );
            match value::closest(named, offered.iter().map(String::as_str)) {
                Some(near) => check.hint(format!("did you mean {near}?")),
                None => check,
            }
        }
    }
}

fn list(models: &[String]) -> String {
    listed(&models[..models.len().min(MAX_MODELS)], models.len())
}

/// Describes the source of the key. Never shows the key.
fn key(patient: &Patient<'_>, backend: &policy::Backend) -> DoctorCheck {
    if backend.keyless {
        return DoctorCheck::good("key", "not sent: the address comes from an untrusted file");
    }
    if backend.api_key_command.is_some() && backend.api_key_env.is_none() {
        return DoctorCheck::good("key", "from api_key_command");
    }
    let Some(name) = backend
        .api_key_env
        .as_deref()
        .or_else(|| backend.usual_key())
    else {
        return DoctorCheck::good("key", "not needed");
    };
    match patient.env.os(name) {
        Some(_) => DoctorCheck::good("key", format!("{name} is set")),
        None => DoctorCheck::good("key", format!("not sent: {name} is not set")),
    }
}
