//! Signatures of OpenSSH (`ssh-keygen -Y`), as git uses them for commits.

use crate::env::Env;
use crate::error::{Error, Result};
use crate::process::{self, End, Output, Program, find_program};
use crate::stop::Stop;
use crate::untrusted::Inert;
use crate::wire::receipt::Signed;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Namespace of the signatures: one with another purpose is invalid here.
const NAMESPACE: &str = "claude-reviewer";
/// Time limit; a hardware key waits for a touch.
const DEADLINE: Duration = Duration::from_secs(60);
/// Bytes of output, at most.
const MOST: usize = 64 << 10;
/// First and last line of a signature.
const BEGIN: &str = "-----BEGIN SSH SIGNATURE-----";
const END: &str = "-----END SSH SIGNATURE-----";
/// Principals for which one signature is checked, at most.
const TRIES: usize = 32;
/// Environment variables that ssh-keygen gets.
const PASSED: &[&str] = &[
    "HOME",
    "PATH",
    "SSH_AUTH_SOCK",
    "SSH_ASKPASS",
    "SSH_ASKPASS_REQUIRE",
    "DISPLAY",
    "TMPDIR",
];

/// Returns the key file that the environment names.
///
/// # Errors
/// Usage: the file does not exist.
pub(super) fn named(env: &Env) -> Result<Option<PathBuf>> {
    env.var("CLAUDE_REVIEWER_RECEIPT_KEY")
        .map(|name| file(name, env))
        .transpose()
}

/// Returns the signing key: the one in `CLAUDE_REVIEWER_RECEIPT_KEY`, or that of the policy.
///
/// # Errors
/// Usage: no key is configured, or the file does not exist.
pub(super) fn key(configured: Option<&str>, env: &Env) -> Result<PathBuf> {
    match (named(env)?, configured) {
        (Some(path), _) => Ok(path),
        (None, Some(name)) => file(name, env),
        (None, None) => Err(Error::usage("no key is configured for signing receipts")
            .hint("set one in your own configuration: [receipt] key = \"~/.ssh/id_ed25519\"")
            .hint("or for this run: CLAUDE_REVIEWER_RECEIPT_KEY=~/.ssh/id_ed25519 claude-reviewer review …")),
    }
}

fn file(name: &str, env: &Env) -> Result<PathBuf> {
    let path = match (name.strip_prefix("~/"), env.os("HOME")) {
        (Some(rest), Some(home)) => PathBuf::from(home).join(rest),
        _ => env.dir.join(name),
    };
    if !path.is_file() {
        return Err(Error::usage(format!(
            "the key {} is not a file",
            path.display()
        )));
    }
    Ok(path)
}

/// Signs a text; returns the signature in the format of ssh-keygen.
///
/// # Errors
/// Usage: ssh-keygen is missing or fails.
pub(super) fn sign(
    key: &Path,
    text: &[u8],
    env: &Env,
    top: Option<&Path>,
    stop: &Stop,
) -> Result<String> {
    let args: Vec<OsString> = vec![
        "-Y".into(),
        "sign".into(),
        "-n".into(),
        NAMESPACE.into(),
        "-f".into(),
        key.as_os_str().to_owned(),
    ];
    let output = run(&args, text, env, top, stop).map_err(|why| refused(key, &why))?;
    let signature = String::from_utf8(output.stdout).unwrap_or_default();
    if output.end == End::Exit(0) && signature.starts_with(BEGIN) {
        return Ok(signature);
    }
    Err(refused(key, &last_line(&output.stderr)))
}

/// Returns the error for a key that cannot sign.
fn refused(key: &Path, why: &str) -> Error {
    Error::usage(format!("cannot sign with the key {}: {why}", key.display()))
        .hint("for a key with a passphrase, run ssh-add and set the path of the public key")
}

/// Returns the key in a signature, in base64 as in a list of signers; `None` if the signature is
/// malformed.
///
/// The format is OpenSSH's PROTOCOL.sshsig: the magic bytes and a version precede the key, which
/// has a length prefix.
pub(super) fn signer(signed: &Signed) -> Option<String> {
    let armoured = signed
        .signature
        .trim()
        .strip_prefix(BEGIN)?
        .strip_suffix(END)?;
    let text: String = armoured.split_ascii_whitespace().collect();
    let bytes = STANDARD.decode(text).ok()?;
    let rest = bytes.strip_prefix(b"SSHSIG\0\0\0\x01")?;
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let key = rest.get(..usize::try_from(u32::from_be_bytes(*length)).ok()?)?;
    Some(STANDARD.encode(key))
}

/// Verifies a signature; returns the signer's name from the list of signers.
///
/// Each line of the list is checked separately: ssh-keygen prints the principals of only the first
/// line with the key, and another line may be the one for receipts.
pub(super) fn verify(
    signed: &Signed,
    signers: &[String],
    env: &Env,
    top: Option<&Path>,
    stop: &Stop,
) -> std::result::Result<String, String> {
    let key = signer(signed)
        .ok_or_else(|| "the signature is not in the format of ssh-keygen".to_owned())?;
    let signature =
        written(&signed.signature).map_err(|e| format!("the signature cannot be checked: {e}"))?;
    let mut reason = "not signed by a signer of the policy".to_owned();
    let mut left = TRIES;
    for (n, line) in signers
        .iter()
        .enumerate()
        .filter(|(_, line)| may_name(line, &key))
    {
        let allowed = written(&format!("{line}\n"))
            .map_err(|e| format!("the signature cannot be checked: {e}"))?;
        let args = args_for(&["-Y", "find-principals"], allowed.path(), signature.path());
        let found = run(&args, b"", env, top, stop)?;
        let names = String::from_utf8(found.stdout)
            .ok()
            .filter(|_| found.end == End::Exit(0))
            .unwrap_or_default();
        // One principal a line, without quotes; old versions print all of them in one line. A
        // leading `!` marks an exception from a pattern.
        let names = names
            .split(['\n', ','])
            .map(str::trim)
            .filter(|n| !n.is_empty() && !n.starts_with('!'));
        for name in names {
            if left == 0 {
                return Err(reason);
            }
            left -= 1;
            let args = args_for(
                &["-Y", "verify", "-n", NAMESPACE, "-I", name],
                allowed.path(),
                signature.path(),
            );
            let checked = run(&args, signed.receipt.as_bytes(), env, top, stop)?;
            if checked.end == End::Exit(0) {
                return Ok(name.to_owned());
            }
            let said = without(
                &last_line(&checked.stderr),
                &[allowed.path(), signature.path()],
            );
            reason = format!("invalid signature (signer {}: {said})", n + 1);
        }
    }
    Err(reason)
}

/// Writes a text to a temporary file.
fn written(text: &str) -> std::io::Result<tempfile::NamedTempFile> {
    let mut file = tempfile::NamedTempFile::new()?;
    file.write_all(text.as_bytes())?;
    file.flush()?;
    Ok(file)
}

/// Returns arguments of ssh-keygen, with the files of the allowed signers and of the signature.
fn args_for(action: &[&str], allowed: &Path, signature: &Path) -> Vec<OsString> {
    let mut args: Vec<OsString> = action.iter().map(OsString::from).collect();
    args.extend(["-f".into(), allowed.as_os_str().to_owned()]);
    args.extend(["-s".into(), signature.as_os_str().to_owned()]);
    args
}

/// Returns true if a line of signers may match a key: it has the key, or names a certificate
/// authority.
fn may_name(line: &str, key: &str) -> bool {
    let has_key = line
        .split_ascii_whitespace()
        .any(|word| word.trim_end_matches('=') == key.trim_end_matches('='));
    has_key || line.to_ascii_lowercase().contains("cert-authority")
}

/// Removes the names of temporary files, with the line numbers after them, from the output of a
/// program.
fn without(said: &str, files: &[&Path]) -> String {
    let mut said = said.to_owned();
    for file in files {
        let name = file.display().to_string();
        while let Some(at) = said.find(&name) {
            let behind = &said[at + name.len()..];
            let rest = behind
                .trim_start_matches(|c: char| c == ':' || c.is_ascii_digit())
                .trim_start();
            said = format!("{}{rest}", &said[..at]);
        }
    }
    said
}

fn run(
    args: &[OsString],
    stdin: &[u8],
    env: &Env,
    top: Option<&Path>,
    stop: &Stop,
) -> std::result::Result<Output, String> {
    let path = find_program("ssh-keygen", env, top).map_err(|e| e.to_string())?;
    let mut vars: Vec<(OsString, OsString)> = PASSED
        .iter()
        .filter_map(|name| Some((OsString::from(name), env.os(name)?.clone())))
        .collect();
    vars.push(("LC_ALL".into(), "C".into()));
    let program = Program {
        path: &path,
        args,
        env: &vars,
        dir: Path::new("/"),
        stdin,
        deadline: Instant::now() + DEADLINE,
        max_stdout: MOST,
        max_stderr: MOST,
        max_memory: None,
    };
    let output = process::wait(&program, stop)
        .map_err(|e| format!("{} cannot be run: {e}", path.display()))?;
    match output.end {
        End::Exit(_) => Ok(output),
        End::TimedOut => Err(format!("ssh-keygen took over {} s", DEADLINE.as_secs())),
        _ => Err("ssh-keygen was ended".to_owned()),
    }
}

/// Returns the last line of a program's standard error.
fn last_line(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let line = text
        .lines()
        .rev()
        .find(|l| !l.trim().is_empty())
        .unwrap_or("it does not say why");
    Inert::new(line.trim().chars().take(200).collect::<String>()).to_string()
}
