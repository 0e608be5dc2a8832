//! The source of a backend's key, as the policy configures it.

use crate::ai::ask::{Cause, Failure};
use crate::env::Env;
use crate::http::key::{Key, KeySource};
use crate::policy;
use std::path::Path;

/// Returns the source of a backend's key. `own` is true at the usual address of its kind, which
/// requires a key.
pub(super) fn source(
    policy: &policy::Backend,
    own: bool,
    env: &Env,
    top: Option<&Path>,
) -> Result<KeySource, Failure> {
    if policy.keyless {
        return Ok(KeySource::Keyless);
    }
    if let (Some(line), None) = (&policy.api_key_command, &policy.api_key_env) {
        return Ok(KeySource::command("api_key_command", line, env, top)?);
    }
    let Some(name) = policy.api_key_env.as_deref().or_else(|| policy.usual_key()) else {
        return Ok(KeySource::Keyless);
    };
    let own = own || policy.preset().is_some();
    let Some(value) = env.os(name) else {
        // A local server often needs no key. If a variable is configured, this server does.
        if policy.api_key_env.is_none() && !own {
            return Ok(KeySource::Keyless);
        }
        let hint = format!("set {name}, or api_key_command in the policy of this user");
        return Err(
            Failure::new(Cause::Setup, format!("no credentials: {name} is not set")).hint(hint),
        );
    };
    match value.to_str().and_then(Key::new) {
        Some(key) => Ok(KeySource::Known(key)),
        None => Err(Failure::new(
            Cause::Setup,
            format!("the key in {name} has invalid characters"),
        )),
    }
}
