//! The only module that reads the environment.

use std::ffi::OsStr;
use std::ffi::OsString;
use std::path::PathBuf;

/// The environment variables, and the working directory.
#[derive(Clone, Debug, Default)]
pub struct Env {
    vars: Vec<(OsString, OsString)>,
    /// The working directory at the start.
    pub dir: PathBuf,
}

/// Returns the arguments of the program, its own name first.
pub fn arguments() -> Vec<OsString> {
    std::env::args_os().collect()
}

impl Env {
    /// Reads the process environment.
    #[expect(clippy::disallowed_methods, reason = "this is the one place")]
    pub fn of_process() -> std::io::Result<Self> {
        Ok(Self {
            vars: std::env::vars_os().collect(),
            dir: std::env::current_dir()?,
        })
    }

    /// Creates an environment from pairs, for tests.
    pub fn from_pairs<K: Into<OsString>, V: Into<OsString>>(
        dir: PathBuf,
        vars: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        Self {
            vars: vars
                .into_iter()
                .map(|(k, v)| (k.into(), v.into()))
                .collect(),
            dir,
        }
    }

    /// Returns a variable's raw value; an empty one counts as unset.
    pub fn os(&self, name: &str) -> Option<&OsString> {
        self.vars
            .iter()
            .find(|(k, _)| k == name)
            .map(|(_, v)| v)
            .filter(|v| !v.is_empty())
    }

    /// Returns the environment with other values of some variables.
    #[must_use]
    pub fn with<V: Into<OsString>>(
        &self,
        values: impl IntoIterator<Item = (&'static str, V)>,
    ) -> Self {
        let mut out = self.clone();
        for (name, value) in values {
            out.vars.retain(|(known, _)| known != name);
            out.vars.push((name.into(), value.into()));
        }
        out
    }

    /// Returns the environment with these folders as `PATH`.
    #[must_use]
    pub fn with_path(&self, folders: &[PathBuf]) -> Self {
        self.with([("PATH", std::env::join_paths(folders).unwrap_or_default())])
    }

    /// Returns all variables, in the order of the process.
    pub fn vars(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.vars
            .iter()
            .map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }

    /// Returns a variable's value; `None` when unset, empty or not UTF-8.
    pub fn var(&self, name: &str) -> Option<&str> {
        self.os(name).and_then(|v| v.to_str())
    }

    /// Returns the folder of the user's configuration, `~/.config` by default.
    pub fn config_home(&self) -> Option<PathBuf> {
        self.base_dir("XDG_CONFIG_HOME", ".config")
    }

    /// Returns the folder for the user's caches, `~/.cache` by default.
    pub fn cache_home(&self) -> Option<PathBuf> {
        self.base_dir("XDG_CACHE_HOME", ".cache")
    }

    /// Returns the folder for state that lasts between runs, `~/.local/state` by default.
    pub fn state_home(&self) -> Option<PathBuf> {
        self.base_dir("XDG_STATE_HOME", ".local/state")
    }

    /// Returns a folder by the rules of the XDG base directory specification: a relative path is
    /// ignored.
    fn base_dir(&self, variable: &str, below_home: &str) -> Option<PathBuf> {
        let named = self
            .os(variable)
            .map(PathBuf::from)
            .filter(|p| p.is_absolute());
        named.or_else(|| {
            let home = self.os("HOME").map(PathBuf::from)?;
            Some(home.join(below_home)).filter(|p| p.is_absolute())
        })
    }

    /// Returns the absolute path of the running program.
    pub fn program(&self) -> std::io::Result<PathBuf> {
        std::env::current_exe()
    }

    /// Returns the folders of `PATH`, in order.
    pub fn path(&self) -> Vec<PathBuf> {
        self.os("PATH")
            .map(|p| std::env::split_paths(p).collect())
            .unwrap_or_default()
    }

    /// Returns true if the locale uses UTF-8 (POSIX: `LC_ALL`, then `LC_CTYPE`, then `LANG`).
    pub fn is_utf8(&self) -> bool {
        ["LC_ALL", "LC_CTYPE", "LANG"]
            .iter()
            .find_map(|v| self.var(v))
            .is_some_and(|v| {
                let v = v.to_ascii_lowercase();
                v.contains("utf-8") || v.contains("utf8")
            })
    }

    /// Returns true if a CI system runs the program.
    pub fn is_ci(&self) -> bool {
        self.var("CI").is_some_and(|v| v != "false" && v != "0")
            || [
                "GITHUB_ACTIONS",
                "GITLAB_CI",
                "BITBUCKET_BUILD_NUMBER",
                "TF_BUILD",
                "JENKINS_URL",
            ]
            .iter()
            .any(|v| self.var(v).is_some())
    }
}
