//! Signatures of OpenSSH (`ssh-keygen -Y`), as git uses them for commits.

use crate::env::Env;
use crate::error::{Error, Result};
use crate::process::{self, End, Output, Program, find_program};
use crate::stop::Stop;
use crate::untrusted::Inert;
use crate::wire::receipt::Signed;
use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What these signatures are for: one that was made for something else is none here.
const NAMESPACE: &str = "claude-reviewer";
/// A key in hardware waits for a touch.
const DEADLINE: Duration = Duration::from_secs(60);
/// Bytes of an answer.
const MOST: usize = 64 << 10;
/// What the program sees of the environment.
const PASSED: &[&str] = &["HOME", "PATH", "SSH_AUTH_SOCK", "SSH_ASKPASS", "SSH_ASKPASS_REQUIRE", "DISPLAY", "TMPDIR"];

/// Returns the key that the environment names.
///
/// # Errors
/// Usage: there is no such file.
pub(super) fn named(env: &Env) -> Result<Option<PathBuf>> {
    env.var("CLAUDE_REVIEWER_RECEIPT_KEY").map(|name| file(name, env)).transpose()
}

/// Finds the key that signs: the one that `CLAUDE_REVIEWER_RECEIPT_KEY` names, or the policy's.
///
/// # Errors
/// Usage: nobody names one, or there is no such file.
pub(super) fn key(configured: Option<&str>, env: &Env) -> Result<PathBuf> {
    match (named(env)?, configured) {
        (Some(path), _) => Ok(path),
        (None, Some(name)) => file(name, env),
        (None, None) => Err(Error::usage("no key is named that could sign a receipt")
            .hint("name one in your own configuration: [receipt] key = \"~/.ssh/id_ed25519\"")
            .hint("or for this run: CLAUDE_REVIEWER_RECEIPT_KEY=~/.ssh/id_ed25519 claude-reviewer review …")),
    }
}

fn file(name: &str, env: &Env) -> Result<PathBuf> {
    let path = match (name.strip_prefix("~/"), env.os("HOME")) {
        (Some(rest), Some(home)) => PathBuf::from(home).join(rest),
        _ => env.dir.join(name),
    };
    if !path.is_file() {
        return Err(Error::usage(format!("the key {} is no file", path.display())));
    }
    Ok(path)
}

/// Signs a text; returns the signature as ssh-keygen writes it.
///
/// # Errors
/// Usage: there is no ssh-keygen, or it does not sign.
pub(super) fn sign(key: &Path, text: &[u8], env: &Env, top: Option<&Path>, stop: &Stop) -> Result<String> {
    let args: Vec<OsString> =
        vec!["-Y".into(), "sign".into(), "-n".into(), NAMESPACE.into(), "-f".into(), key.as_os_str().to_owned()];
    let refused = |why: String| {
        Error::usage(format!("the key {} does not sign: {why}", key.display()))
            .hint("a key with a passphrase signs through the agent: ssh-add, and name the public key")
    };
    let output = run(&args, text, env, top, stop).map_err(refused)?;
    let signature = String::from_utf8(output.stdout).unwrap_or_default();
    if output.end == End::Exit(0) && signature.starts_with("-----BEGIN SSH SIGNATURE-----") {
        return Ok(signature);
    }
    Err(refused(last_line(&output.stderr)))
}

/// Checks a signature; returns who signed, as the list of signers names them.
pub(super) fn verify(
    signed: &Signed,
    signers: &[String],
    env: &Env,
    top: Option<&Path>,
    stop: &Stop,
) -> std::result::Result<String, String> {
    let file = |text: &str| -> std::io::Result<tempfile::NamedTempFile> {
        let mut file = tempfile::NamedTempFile::new()?;
        file.write_all(text.as_bytes())?;
        file.flush()?;
        Ok(file)
    };
    let unwritten = |e: std::io::Error| format!("the signature cannot be checked: {e}");
    let allowed = file(&format!("{}\n", signers.join("\n"))).map_err(unwritten)?;
    let signature = file(&signed.signature).map_err(unwritten)?;
    let paths: Vec<OsString> =
        vec!["-f".into(), allowed.path().as_os_str().to_owned(), "-s".into(), signature.path().as_os_str().to_owned()];
    let call = |further: &[&str], stdin: &[u8]| {
        let mut args: Vec<OsString> = further.iter().map(OsString::from).collect();
        args.extend(paths.iter().cloned());
        run(&args, stdin, env, top, stop)
    };
    let nobody = || "nobody signed it whom the policy names".to_owned();
    let found = call(&["-Y", "find-principals"], b"")?;
    let found = String::from_utf8(found.stdout).ok().filter(|_| found.end == End::Exit(0)).ok_or_else(nobody)?;
    // A line of several principals names one key.
    let signer = found.lines().next().and_then(|l| l.split(',').next()).map(str::trim).filter(|s| !s.is_empty());
    let signer = signer.ok_or_else(nobody)?;
    let checked = call(&["-Y", "verify", "-n", NAMESPACE, "-I", signer], signed.receipt.as_bytes())?;
    match checked.end {
        End::Exit(0) => Ok(signer.to_owned()),
        _ => Err(format!("its signature is not good ({})", last_line(&checked.stderr))),
    }
}

fn run(
    args: &[OsString],
    stdin: &[u8],
    env: &Env,
    top: Option<&Path>,
    stop: &Stop,
) -> std::result::Result<Output, String> {
    let path = find_program("ssh-keygen", env, top).map_err(|e| e.to_string())?;
    let mut vars: Vec<(OsString, OsString)> =
        PASSED.iter().filter_map(|name| Some((OsString::from(name), env.os(name)?.clone()))).collect();
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
    };
    let output = process::wait(&program, stop).map_err(|e| format!("{} cannot be run: {e}", path.display()))?;
    match output.end {
        End::Exit(_) => Ok(output),
        End::TimedOut => Err(format!("ssh-keygen took over {} s", DEADLINE.as_secs())),
        _ => Err("ssh-keygen was ended".to_owned()),
    }
}

/// Returns the last thing that a program said.
fn last_line(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let line = text.lines().rev().find(|l| !l.trim().is_empty()).unwrap_or("it does not say why");
    Inert::new(line.trim().chars().take(200).collect::<String>()).to_string()
}
