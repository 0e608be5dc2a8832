//! Where a backend's key comes from, as policy has it.

use crate::ai::ask::{Cause, Failure};
use crate::env::Env;
use crate::http::key::{Key, Source};
use crate::policy;
use crate::policy::BackendKind;
use std::path::Path;

/// Finds out where the key of a backend comes from. `own`: the backend is at its kind's usual address, which nobody
/// can ask without a key.
pub(super) fn source(policy: &policy::Backend, own: bool, env: &Env, top: Option<&Path>) -> Result<Source, Failure> {
    if policy.keyless {
        return Ok(Source::Keyless);
    }
    if let (Some(line), None) = (&policy.api_key_command, &policy.api_key_env) {
        return Ok(Source::command("api_key_command", line, env, top)?);
    }
    let usual = policy.kind.and_then(BackendKind::key_variable).unwrap_or_default();
    let name = policy.api_key_env.as_deref().unwrap_or(usual);
    let Some(value) = env.os(name) else {
        // A server of one's own often takes no key; that a variable is named says that this one does.
        if policy.api_key_env.is_none() && !own {
            return Ok(Source::Keyless);
        }
        let hint = format!("set {name}, or api_key_command in the policy of this user");
        return Err(Failure::new(Cause::Setup, format!("no credentials: {name} is not set")).hint(hint));
    };
    match value.to_str().and_then(Key::new) {
        Some(key) => Ok(Source::Known(key)),
        None => Err(Failure::new(Cause::Setup, format!("the key in {name} has characters that no key has"))),
    }
}
