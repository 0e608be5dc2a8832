//! Keys: their headers, the command that prints one, and masking.
//!
//! A key leaves this module only as a header that is marked sensitive, or as a secret for git. Text
//! of a server passes through [`Key::mask`] before any other use.

use super::{Cause, Failure};
use crate::env::Env;
use crate::process;
use crate::stop::Stop;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::HeaderValue;
use secrecy::{ExposeSecret as _, SecretString};
use std::collections::HashSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tokio::sync::OnceCell;

/// Time limit of a command that prints a key: long enough for a person to unlock something.
const COMMAND_TIME: Duration = Duration::from_secs(60);
/// Bytes of a key, at most.
const MAX_KEY: usize = 16 << 10;
/// Consecutive bytes of a key that reveal it.
const TELLING: usize = 8;

/// A key, or the password of a proxy.
#[derive(Clone, Debug)]
pub struct Key(SecretString);

impl Key {
    /// Creates a key; `None` if it is not a valid header value.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        let fits =
            !text.is_empty() && text.len() <= MAX_KEY && text.bytes().all(|b| b.is_ascii_graphic());
        fits.then(|| Self(SecretString::from(text.to_owned())))
    }

    /// Returns a password that is not sent in a header, for masking; `None` if it is empty.
    pub fn of_password(password: SecretString) -> Option<Self> {
        (!password.expose_secret().is_empty()).then_some(Self(password))
    }

    /// Returns the value of a header that carries the key.
    pub fn header(&self, prefix: &str) -> Option<HeaderValue> {
        let mut value =
            HeaderValue::from_str(&format!("{prefix}{}", self.0.expose_secret())).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    /// Returns a name and a password encoded for `Basic`; `None` without a colon.
    pub fn pair(&self) -> Option<Self> {
        let text = self.0.expose_secret();
        text.contains(':')
            .then(|| Self(SecretString::from(STANDARD.encode(text))))
    }

    /// Returns the key for another program that connects to the same server.
    pub fn secret(&self) -> &SecretString {
        &self.0
    }

    /// Masks the key in a text, and every part of it of at least 8 characters, in any case.
    pub fn mask(&self, text: &str) -> String {
        let key = self.0.expose_secret().to_ascii_lowercase();
        let (key, bytes) = (key.as_bytes(), text.to_ascii_lowercase());
        let length = TELLING.min(key.len());
        let pieces: HashSet<&[u8]> = key.windows(length).collect();
        let mut hidden = vec![false; bytes.len()];
        for (i, window) in bytes.as_bytes().windows(length).enumerate() {
            if pieces.contains(window) {
                hidden[i..i + length].fill(true);
            }
        }
        let mut out = String::with_capacity(text.len());
        let mut last = false;
        for (i, c) in text.char_indices() {
            match (hidden[i], last) {
                (true, false) => out.push_str("***"),
                (true, true) => {}
                (false, _) => out.push(c),
            }
            last = hidden[i];
        }
        out
    }
}

/// The source of a key.
#[derive(Debug)]
pub enum KeySource {
    /// The server needs no key.
    Keyless,
    Known(Key),
    Command(Box<KeyCommand>),
}

/// A command that prints the key; it runs once, when the key is needed.
#[derive(Debug)]
pub struct KeyCommand {
    setting: &'static str,
    line: String,
    shell: PathBuf,
    env: Vec<(OsString, OsString)>,
    dir: PathBuf,
    key: OnceCell<Key>,
}

impl KeySource {
    /// Returns a source that runs a command and reads the key from its output. `setting` is its key
    /// in the policy.
    ///
    /// The command gets the operator's environment without the `GIT_*` variables of hooks. It runs
    /// in the home folder, which the change does not control.
    ///
    /// # Errors
    ///
    /// `Setup`: no shell was found outside of the repository (`top`).
    pub fn command(
        setting: &'static str,
        line: &str,
        env: &Env,
        top: Option<&Path>,
    ) -> Result<Self, Failure> {
        KeyCommand::new(setting, line, env, top).map(|command| Self::Command(Box::new(command)))
    }

    /// Returns the key, if any. Runs its command on first use.
    ///
    /// # Errors
    ///
    /// `Setup`: the command failed, or did not print a key. `Stopped`: the run was stopped.
    pub async fn get(&self, deadline: Instant, stop: &Stop) -> Result<Option<&Key>, Failure> {
        match self {
            Self::Keyless => Ok(None),
            Self::Known(key) => Ok(Some(key)),
            Self::Command(command) => command
                .key
                .get_or_try_init(|| command.run(deadline, stop))
                .await
                .map(Some),
        }
    }

    /// Returns the key, if it is known without running a command.
    pub fn known(&self) -> Option<&Key> {
        match self {
            Self::Keyless => None,
            Self::Known(key) => Some(key),
            Self::Command(command) => command.key.get(),
        }
    }

    /// Masks the key in a text, if the key is known.
    pub fn mask(&self, text: String) -> String {
        self.known().map(|key| key.mask(&text)).unwrap_or(text)
    }
}

/// Runs a command that prints a secret of several lines, such as a private key. The secret is not
/// a header, and is never shown.
///
/// # Errors
///
/// Like [`KeySource::get`].
pub async fn print_secret(
    setting: &'static str,
    line: &str,
    env: &Env,
    top: Option<&Path>,
    deadline: Instant,
    stop: &Stop,
) -> Result<String, Failure> {
    let command = KeyCommand::new(setting, line, env, top)?;
    let printed = command.printed(deadline, stop).await?;
    String::from_utf8(printed).map_err(|_| command.fails("did not print text"))
}

impl KeyCommand {
    /// Prepares a command; see [`KeySource::command`].
    fn new(
        setting: &'static str,
        line: &str,
        env: &Env,
        top: Option<&Path>,
    ) -> Result<Self, Failure> {
        let shell = process::find_program("sh", env, top)
            .map_err(|e| Failure::new(Cause::Setup, format!("{setting} needs a shell: {e}")))?;
        let env_of = env
            .vars()
            .filter(|(name, _)| !name.as_encoded_bytes().starts_with(b"GIT_"));
        let env_of = env_of
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let home = env
            .os("HOME")
            .map(PathBuf::from)
            .filter(|h| h.is_absolute() && h.is_dir());
        let dir = home.unwrap_or_else(|| PathBuf::from("/"));
        let line = line.to_owned();
        Ok(Self {
            setting,
            line,
            shell,
            env: env_of,
            dir,
            key: OnceCell::new(),
        })
    }

    /// Runs the command and reads the key from its output.
    async fn run(&self, deadline: Instant, stop: &Stop) -> Result<Key, Failure> {
        let printed = self.printed(deadline, stop).await?;
        let key = std::str::from_utf8(&printed).ok().and_then(Key::new);
        key.ok_or_else(|| self.fails("did not print a key"))
    }

    /// Runs the command. Its output is never shown, because it may contain the key.
    async fn printed(&self, deadline: Instant, stop: &Stop) -> Result<Vec<u8>, Failure> {
        let args = [OsString::from("-c"), OsString::from(&self.line)];
        let program = process::Program {
            path: &self.shell,
            args: &args,
            env: &self.env,
            dir: &self.dir,
            stdin: b"",
            deadline: deadline.min(Instant::now() + COMMAND_TIME),
            max_stdout: MAX_KEY,
            max_stderr: 0,
            max_memory: None,
        };
        let output = process::run(&program, stop)
            .await
            .map_err(|e| self.fails(&format!("failed to start: {e}")))?;
        match output.end {
            process::End::Exit(0) => {}
            process::End::Stopped(_) => {
                return Err(Failure::new(Cause::Stopped, "the run was stopped"));
            }
            process::End::Exit(code) => {
                return Err(self.fails(&format!("failed with exit code {code}")));
            }
            process::End::Signal(n) => return Err(self.fails(&format!("was killed by signal {n}"))),
            process::End::TimedOut => return Err(self.fails("timed out")),
            process::End::TooMuch | process::End::OutOfMemory | process::End::Ended => {
                return Err(self.fails("printed too much for a key"));
            }
        }
        Ok(output.stdout)
    }

    /// Returns the failure of the command.
    fn fails(&self, why: &str) -> Failure {
        Failure::new(Cause::Setup, format!("{} {why}", self.setting))
            .hint("run the command in a shell to see its error")
    }
}

#[cfg(test)]
mod tests {
    use super::Key;

    fn key() -> Key {
        Key::new("canary-0123456789-abcdefghij").unwrap()
    }

    #[test]
    fn sec_03_a_key_and_every_longer_piece_of_it_is_masked() {
        for (text, masked) in [
            ("Bearer canary-0123456789-abcdefghij.", "Bearer ***."),
            ("CANARY-0123456789-ABCDEFGHIJ", "***"),
            ("a 0123456789-a b", "a *** b"),
            ("cana\u{e9}ry-01234 canary-0", "cana\u{e9}*** ***"),
            ("01234567", "***"),
            ("0123456 is too short", "0123456 is too short"),
            ("", ""),
        ] {
            assert_eq!(key().mask(text), masked, "{text}");
        }
        assert_eq!(Key::new("abc").unwrap().mask("xabcx"), "x***x");
    }

    #[test]
    fn a_name_and_a_password_are_one_header() {
        let pair = Key::new("name:word").unwrap().pair().unwrap();
        assert_eq!(pair.header("Basic ").unwrap(), "Basic bmFtZTp3b3Jk");
        assert!(key().pair().is_none());
    }

    #[test]
    fn sec_04_no_debug_output_shows_a_key() {
        let shown = format!("{:?} {:?}", key(), key().header("Bearer ").unwrap());
        assert!(!shown.contains("canary"), "{shown}");
    }

    #[test]
    fn what_no_header_can_hold_is_no_key() {
        for bad in ["", " \n", "a b", "a\nb", "a\u{7f}", "k\u{e9}y"] {
            assert!(Key::new(bad).is_none(), "{bad:?}");
        }
        assert!(Key::new("key\n").is_some());
    }
}
