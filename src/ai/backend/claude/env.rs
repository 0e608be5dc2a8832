//! The environment variables that are passed to the program.

use super::Key;
use crate::env::Env;
use std::ffi::OsString;
use std::path::Path;

/// Variables that are passed unchanged: location of the login, locale, network settings.
const PASSED: &[&str] = &[
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "CLAUDE_CONFIG_DIR",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    // Required on Windows.
    "SystemRoot",
    "USERPROFILE",
    "APPDATA",
    "LOCALAPPDATA",
    // Settings for login and requests of the program. Variables that an outer session sets for its
    // children are excluded.
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_CLIENT_CERT",
    "CLAUDE_CODE_CLIENT_KEY",
    "CLAUDE_CODE_CLIENT_KEY_PASSPHRASE",
    "CLAUDE_CODE_PROXY_RESOLVES_HOSTS",
    "CLAUDE_CODE_MAX_OUTPUT_TOKENS",
    "CLAUDE_CODE_EFFORT_LEVEL",
    "CLAUDE_CODE_GIT_BASH_PATH",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_SKIP_BEDROCK_AUTH",
    "CLAUDE_CODE_USE_VERTEX",
    "CLAUDE_CODE_SKIP_VERTEX_AUTH",
    "CLAUDE_CODE_USE_FOUNDRY",
    "CLAUDE_CODE_SKIP_FOUNDRY_AUTH",
];

/// Prefix of keys, addresses and model names of the provider.
const PREFIX: &[u8] = b"ANTHROPIC_";

/// Credentials of a cloud, passed only if the variable that selects this cloud is set.
const CLOUDS: &[(&str, &[&str])] = &[
    (
        "CLAUDE_CODE_USE_BEDROCK",
        &[
            "AWS_REGION",
            "AWS_DEFAULT_REGION",
            "AWS_PROFILE",
            "AWS_CONFIG_FILE",
            "AWS_SHARED_CREDENTIALS_FILE",
            "AWS_ACCESS_KEY_ID",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_SESSION_TOKEN",
            "AWS_BEARER_TOKEN_BEDROCK",
            "AWS_ROLE_ARN",
            "AWS_WEB_IDENTITY_TOKEN_FILE",
        ],
    ),
    (
        "CLAUDE_CODE_USE_VERTEX",
        &[
            "CLOUD_ML_REGION",
            "GOOGLE_APPLICATION_CREDENTIALS",
            "GOOGLE_CLOUD_PROJECT",
            "GCLOUD_PROJECT",
        ],
    ),
    (
        "CLAUDE_CODE_USE_FOUNDRY",
        &[
            "AZURE_CLIENT_ID",
            "AZURE_CLIENT_SECRET",
            "AZURE_TENANT_ID",
            "AZURE_FEDERATED_TOKEN_FILE",
        ],
    ),
];

/// Returns the environment of the program, except its temporary folder.
pub(super) fn allowed(env: &Env, top: Option<&Path>, retries: u32) -> Vec<(OsString, OsString)> {
    let clouds = CLOUDS
        .iter()
        .filter(|(switch, _)| env.os(switch).is_some())
        .flat_map(|(_, names)| *names);
    let named = PASSED
        .iter()
        .chain(clouds)
        .filter_map(|name| Some((OsString::from(name), env.os(name)?.clone())));
    let provider = env
        .vars()
        .filter(|(name, _)| name.as_encoded_bytes().starts_with(PREFIX));
    let provider = provider.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let set = [
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned()),
        ("DISABLE_AUTOUPDATER", "1".to_owned()),
        ("CLAUDE_CODE_MAX_RETRIES", retries.to_string()),
    ];
    let mut all: Vec<_> = named.chain(provider).collect();
    all.extend(search_path(env, top).map(|path| ("PATH".into(), path)));
    all.extend(set.map(|(name, value)| (name.into(), value.into())));
    all
}

/// Returns `PATH` without relative entries and entries in the repository, because the program
/// starts others by name.
fn search_path(env: &Env, top: Option<&Path>) -> Option<OsString> {
    let top = top.and_then(|t| t.canonicalize().ok());
    let safe = env.path().into_iter().filter(|dir| {
        let real = dir.canonicalize();
        dir.is_absolute()
            && real.is_ok_and(|real| top.as_ref().is_none_or(|top| !real.starts_with(top)))
    });
    let mut joined = OsString::new();
    let separator = if cfg!(windows) { ";" } else { ":" };
    for dir in safe {
        if !joined.is_empty() {
            joined.push(separator);
        }
        joined.push(dir);
    }
    (!joined.is_empty()).then_some(joined)
}

/// Returns the secrets that must not appear in messages: keys, tokens and the passwords of proxies.
pub(super) fn secrets(env: &Env) -> Vec<Key> {
    let mut secrets = Vec::new();
    for (name, value) in env.vars() {
        let (name, Some(value)) = (name.to_string_lossy().to_ascii_uppercase(), value.to_str())
        else {
            continue;
        };
        if ["KEY", "TOKEN", "SECRET", "PASSPHRASE", "CUSTOM_HEADERS"]
            .iter()
            .any(|part| name.contains(part))
        {
            secrets.extend(Key::new(value).filter(|_| value.len() >= 8));
        } else if name.ends_with("_PROXY") || name.ends_with("_BASE_URL") {
            let login = value
                .split_once("://")
                .and_then(|(_, rest)| rest.rsplit_once('@'));
            secrets.extend(login.and_then(|(login, _)| Key::new(login)));
        }
    }
    secrets
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use crate::ai::desk::temporary;
    use std::path::PathBuf;

    fn names(vars: &[(&str, &str)]) -> Vec<String> {
        let env = Env::from_pairs(PathBuf::from("/"), vars.iter().copied());
        let mut names: Vec<_> = allowed(&env, None, 2)
            .into_iter()
            .map(|(name, _)| name.into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn sec_10_the_program_knows_only_what_it_needs() {
        let canaries = [
            "AWS_ACCESS_KEY_ID",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_SESSION_TOKEN",
            "AZURE_CLIENT_SECRET",
            "CI_JOB_TOKEN",
            "CLAUDE_CODE_SSE_PORT",
            "DATABASE_URL",
            "DOCKER_AUTH_CONFIG",
            "GEMINI_API_KEY",
            "GH_TOKEN",
            "GITHUB_TOKEN",
            "GIT_DIR",
            "GIT_INDEX_FILE",
            "GITLAB_TOKEN",
            "GOOGLE_APPLICATION_CREDENTIALS",
            "HF_TOKEN",
            "KUBECONFIG",
            "LD_PRELOAD",
            "NODE_OPTIONS",
            "NPM_TOKEN",
            "OPENAI_API_KEY",
            "PYPI_TOKEN",
            "SSH_AUTH_SOCK",
            "VAULT_TOKEN",
        ];
        let vars: Vec<_> = canaries
            .iter()
            .map(|name| (*name, "canary"))
            .chain([("HOME", "/h")])
            .collect();
        let set = [
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
            "CLAUDE_CODE_MAX_RETRIES",
            "DISABLE_AUTOUPDATER",
        ];
        assert_eq!(names(&vars), [&set[..], &["HOME"]].concat());
        // The credentials of a cloud are passed when it is selected.
        let vars = [
            &vars[..],
            &[("CLAUDE_CODE_USE_BEDROCK", "1"), ("ANTHROPIC_API_KEY", "x")],
        ]
        .concat();
        let names = names(&vars);
        assert!(
            names.contains(&"AWS_SECRET_ACCESS_KEY".to_owned())
                && names.contains(&"ANTHROPIC_API_KEY".to_owned())
        );
        assert!(
            !names.contains(&"AZURE_CLIENT_SECRET".to_owned())
                && !names.contains(&"GH_TOKEN".to_owned())
        );
    }

    #[test]
    fn cli_10_the_program_finds_nothing_in_the_repository() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(top.join("repo/bin")).unwrap();
        std::fs::create_dir_all(top.join("bin")).unwrap();
        let path = format!("{0}/repo/bin:.::{0}/bin:{0}/nothing:bin", top.display());
        let env = Env::from_pairs(
            top.join("repo"),
            [
                ("PATH", path),
                ("TMPDIR", format!("{}/repo/bin", top.display())),
            ],
        );
        let found = search_path(&env, Some(&top.join("repo"))).unwrap();
        assert_eq!(found, top.join("bin").into_os_string());
        let temporary = temporary(&env, Some(&top.join("repo"))).unwrap();
        assert!(!temporary.starts_with(top.join("repo")));
    }

    #[test]
    fn what_may_not_be_shown_is_known() {
        let vars = [
            ("ANTHROPIC_API_KEY", "canary-one-23"),
            ("HTTPS_PROXY", "http://me:canary-two@proxy:1"),
            ("HOME", "/h"),
        ];
        let masked = secrets(&Env::from_pairs(PathBuf::from("/"), vars))
            .iter()
            .fold(
                "x canary-one-23 me:canary-two /h".to_owned(),
                |text, key| key.mask(&text),
            );
        assert!(
            !masked.contains("canary") && masked.starts_with("x ") && masked.ends_with(" /h"),
            "{masked}"
        );
    }
}
