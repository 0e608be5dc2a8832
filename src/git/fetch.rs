//! The only module that gets objects from a remote.
//!
//! The `git` program fetches, but in a private repository (`.git/claude-reviewer/…`) instead of the
//! user's, with which it shares only the object store. So it ignores everything that the user's
//! repository configures: credential helpers, ssh and proxy commands, `url.….insteadOf`,
//! `uploadpack` programs, hooks. The user's repository does not change, except that the store has
//! more objects: not a reference, not `FETCH_HEAD`, not the index, not the worktree, not the depth
//! of a shallow clone. The references to fetched commits (`refs/claude-reviewer/…`) belong to the
//! private repository and are removed with it. So is its list of shallow commits, with which
//! [`Fetched::open`] reads the user's repository.
//!
//! The operator's configuration applies: helpers, ssh, proxies and certificates of the system, the
//! user and the environment, and the program in its `GIT_ASKPASS`. Two values of the repository's
//! own configuration are used, and neither is a program: the address of the remote, and headers for
//! one address (`http.<address>.extraHeader`), by which CI authenticates a checkout, whether they
//! are in `.git/config` or in an included file.

mod address;
mod place;
mod words;

use super::program;
use super::reach::{Joined, is_partial, joined};
use super::{Repo, gix_id, open, own, refs};
use crate::diff::ObjectId;
use crate::env::Env;
use crate::error::{Error, Result};
use crate::process::{self, End, Output};
use crate::request::Fetch;
use crate::stop::Stop;
use address::FetchAddress;
use place::FetchFolder;
use secrecy::ExposeSecret as _;
use std::collections::HashSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Time limit for all fetches of one review.
const DEADLINE: Duration = Duration::from_secs(15 * 60);
/// Bytes of the program's standard output, at most. The output is not used.
const MAX_STDOUT: usize = 1 << 20;
/// Bytes of the program's error messages that are kept.
const MAX_STDERR: usize = 16 << 10;
/// The first git version that reads configuration from the environment.
const SINCE: (u32, u32) = (2, 31);
/// Commits from each tip in a shallow clone: increasing, and finally all (git's own number for
/// that).
const DEPTHS: [u32; 4] = [64, 512, 4096, 0x7fff_ffff];
/// References of the user's repository that are announced to the remote, so that it sends only new
/// objects.
const MAX_HAVE: usize = 20_000;
/// Configuration pairs that are accepted from the environment, at most.
const MAX_CONFIG: usize = 1000;
/// Length of a tip's name, at most: longer than any reference in practice.
const MAX_TIP: usize = 1024;

/// Name of the private remote.
const REMOTE: &str = "claude-reviewer";
/// Prefix of the private references.
const PREFIX: &str = "refs/claude-reviewer/";

/// Environment variables that are passed on: the operator's configuration and credentials, and
/// network settings. Includes the variables of the forges' own credential helpers; the repository
/// has no access to them.
const PASSED: &[&str] = &[
    "HOME",
    "XDG_CONFIG_HOME",
    "XDG_CACHE_HOME",
    "XDG_RUNTIME_DIR",
    "TMPDIR",
    "USER",
    "LOGNAME",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_SSH_VARIANT",
    "GIT_SSL_CAINFO",
    "GIT_SSL_CAPATH",
    "GIT_SSL_CERT",
    "GIT_SSL_KEY",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "SSH_AUTH_SOCK",
    "KRB5CCNAME",
    "DBUS_SESSION_BUS_ADDRESS",
    "http_proxy",
    "https_proxy",
    "HTTPS_PROXY",
    "all_proxy",
    "ALL_PROXY",
    "no_proxy",
    "NO_PROXY",
    "GH_TOKEN",
    "GH_ENTERPRISE_TOKEN",
    "GH_CONFIG_DIR",
    "GITHUB_TOKEN",
    "GITLAB_TOKEN",
];

/// Environment variables that are set.
const SET: &[(&str, &str)] = &[
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_ASKPASS", ""),
    ("SSH_ASKPASS_REQUIRE", "force"),
    ("SSH_ASKPASS", "/bin/false"),
    ("GCM_INTERACTIVE", "never"),
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    ("GIT_PAGER", "cat"),
    ("LC_ALL", "C"),
];

/// Configuration that overrides all other.
const PINNED: &[&str] = &[
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.askPass=",
    "protocol.allow=never",
    "http.followRedirects=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "fetch.writeCommitGraph=false",
    "fetch.recurseSubmodules=false",
    "fetch.prune=false",
    "fetch.pruneTags=false",
    "fetch.all=false",
    "transfer.bundleURI=false",
    "submodule.recurse=false",
    "color.ui=never",
    "advice.fetchShowForcedUpdates=false",
];

/// Configuration that prevents newer git versions from prompting.
const SILENT: &str = "credential.interactive=false";

/// Variable with the program that git asks for a user name and a password.
const ASKPASS: &str = "GIT_ASKPASS";
/// Variables that Jenkins' program reads. Passed on only together with that program.
const ASKED: &[&str] = &["GIT_USERNAME", "GIT_PASSWORD"];

/// The result of a fetch. While it exists, the objects can be read to the depth of the fetch.
#[derive(Debug)]
pub struct Fetched {
    place: FetchFolder,
    call: GitCall,
    /// Commits of the tips, in the same order.
    ids: Vec<ObjectId>,
    /// Index in [`DEPTHS`]; `None` if the history was complete before.
    depth: Option<usize>,
    hash: gix::hash::Kind,
    /// Arguments to open the repository again.
    dir: PathBuf,
    env: Env,
}

/// The common arguments of all calls of the program.
struct GitCall {
    program: PathBuf,
    git_dir: PathBuf,
    env: Vec<(OsString, OsString)>,
    /// Whether a program of the operator answers prompts.
    asks: bool,
    remote: NamedRemote,
    deadline: Instant,
    stop: Stop,
}

impl std::fmt::Debug for GitCall {
    /// Omits the environment, which contains credentials.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GitCall")
            .field("program", &self.program)
            .field("remote", &self.remote)
            .finish_non_exhaustive()
    }
}

/// A remote, as shown to the user.
#[derive(Clone, Debug)]
struct NamedRemote {
    /// Its name, or its address without a password.
    shown: String,
    address: FetchAddress,
    /// Whether the repository has a setting of this kind, which is not used.
    own_ssh: bool,
    own_helper: bool,
}

/// The result of a fetch that the remote answered.
enum Got {
    All,
    /// The remote lacks the requested object; the error has its message.
    NotThere(Error),
}

impl Repo {
    /// Fetches tips of a remote. `dir` and `env` are the arguments with which the repository was
    /// opened.
    ///
    /// If the user's clone is shallow, the fetch includes as much history as usually suffices; see
    /// [`Fetched::connect`].
    ///
    /// # Errors
    /// Usage: unknown remote or unsupported address. Incomplete: git's own messages, without
    /// passwords.
    pub fn fetch(&self, dir: &Path, env: &Env, fetch: &Fetch, stop: &Stop) -> Result<Fetched> {
        let local = self.local();
        for tip in &fetch.tips {
            check(tip)?;
        }
        let remote = NamedRemote::find(self, &local, &fetch.remote)?;
        let inside: Vec<PathBuf> = self
            .worktree()
            .into_iter()
            .chain([local.common_dir(), local.git_dir()])
            .map(super::real)
            .collect();
        let program = program::locate(env, &inside).ok_or_else(|| {
            Error::usage("git not found on PATH").hint(format!(
                "install git {}.{} or newer, and add its folder to PATH",
                SINCE.0, SINCE.1
            ))
        })?;
        let place = FetchFolder::make(&super::real(local.common_dir()))?;
        let is_shallow = prepare(&place, self, &local)?;
        let partial = is_partial(&local);
        let mut vars: Vec<(OsString, OsString)> = PASSED
            .iter()
            .filter_map(|k| Some((OsString::from(k), env.os(k)?.clone())))
            .collect();
        vars.extend(
            SET.iter()
                .map(|(k, v)| (OsString::from(k), OsString::from(v))),
        );
        let askpass = askpass(env, &inside);
        if let Some(program) = &askpass {
            vars.retain(|(name, _)| name != ASKPASS);
            vars.push((ASKPASS.into(), program.clone()));
            vars.extend(
                ASKED
                    .iter()
                    .filter_map(|k| Some((OsString::from(k), env.os(k)?.clone()))),
            );
        }
        vars.push(("PATH".into(), address::clean_path(&env.path(), &inside)));
        vars.push((
            "GIT_OBJECT_DIRECTORY".into(),
            super::real(local.common_dir()).join("objects").into(),
        ));
        vars.push((
            "GIT_ALLOW_PROTOCOL".into(),
            remote.address.scheme.allowed().into(),
        ));
        // In a partial clone, git gets the objects that a delta needs from the same remote.
        vars.push((
            "GIT_NO_LAZY_FETCH".into(),
            if partial { "0" } else { "1" }.into(),
        ));
        if env.os("GIT_SSL_CAINFO").is_none()
            && let Some(file) = env.os("CI_SERVER_TLS_CA_FILE")
        {
            vars.push(("GIT_SSL_CAINFO".into(), file.clone()));
        }
        if !is_ssh_chosen(&local, env) {
            vars.push(("GIT_SSH_COMMAND".into(), "ssh -oBatchMode=yes".into()));
        }
        vars.extend(configuration(&local, env, fetch, &remote.address)?);
        let call = GitCall {
            program,
            git_dir: place.dir().to_owned(),
            env: vars,
            asks: askpass.is_some(),
            remote,
            deadline: Instant::now() + DEADLINE,
            stop: stop.clone(),
        };
        call.require_version()?;
        let depth = is_shallow.then_some(0);
        let (dir, env) = (dir.to_owned(), env.clone());
        let mut fetched = Fetched {
            place,
            call,
            ids: Vec::new(),
            depth,
            hash: local.object_hash(),
            dir,
            env,
        };
        fetched.ids = fetched.tips(&fetch.tips)?;
        Ok(fetched)
    }
}

impl Fetched {
    /// Returns the commits of the tips, in the requested order.
    pub fn ids(&self) -> &[ObjectId] {
        &self.ids
    }

    /// Opens the repository with the fetched objects, and with history to the depth of the fetch.
    pub fn open(&self) -> Result<Repo> {
        open::open_cut_off_at(&self.dir, &self.env, &self.place.dir().join("shallow"))
    }

    /// Fetches one more tip, or returns `None` if the remote does not have it.
    ///
    /// # Errors
    /// As [`Repo::fetch`].
    pub fn also(&mut self, tip: &str) -> Result<Option<ObjectId>> {
        check(tip)?;
        let tips = [tip.to_owned()];
        match self.get(&tips)? {
            Got::All => Ok(self.read(&tips)?.pop()),
            Got::NotThere(_) => Ok(None),
        }
    }

    /// Deepens a shallow history until the merge base of two commits is certain, and all commits
    /// between it and them exist. Returns the merge base, or `None` if they have no common commit.
    ///
    /// # Errors
    /// As [`Repo::fetch`].
    pub fn connect(&mut self, one: ObjectId, other: ObjectId) -> Result<Option<ObjectId>> {
        loop {
            let repo = self.open()?;
            match (joined(&repo, one, other)?, self.depth) {
                (Joined::At(bases), _) => return Ok(bases.first().copied()),
                (Joined::Never, _) => return Ok(None),
                (Joined::Perhaps, None) => return repo.merge_base(one, other),
                (Joined::Perhaps, Some(at)) if at + 1 == DEPTHS.len() => {
                    return repo.merge_base(one, other);
                }
                (Joined::Perhaps, Some(at)) => {
                    self.depth = Some(at + 1);
                    self.tips(&[one.to_string(), other.to_string()])?;
                }
            }
        }
    }

    /// Fetches the complete history of a commit, if the clone is shallow.
    ///
    /// # Errors
    /// As [`Repo::fetch`].
    pub fn whole(&mut self, head: ObjectId) -> Result<()> {
        if self.depth.is_some() {
            self.depth = Some(DEPTHS.len() - 1);
            self.tips(&[head.to_string()])?;
        }
        Ok(())
    }

    /// Fetches objects by their IDs, which a partial clone lacks.
    ///
    /// # Errors
    /// As [`Repo::fetch`].
    pub fn objects(&mut self, ids: &[ObjectId]) -> Result<()> {
        if ids.is_empty() {
            return Ok(());
        }
        let lines: String = ids.iter().map(|id| format!("{id}\n")).collect();
        // As git itself fetches missing objects: by ID, without negotiation.
        let args = [
            "-c",
            "fetch.negotiationAlgorithm=noop",
            "fetch",
            "--filter=blob:none",
            "--stdin",
        ];
        let out = self
            .call
            .run(&with(&args, &[REMOTE.to_owned()]), lines.as_bytes())?;
        match self.call.end(
            &out,
            &format!(
                "{} object{}",
                ids.len(),
                if ids.len() == 1 { "" } else { "s" }
            ),
        )? {
            Got::All => Ok(()),
            Got::NotThere(error) => Err(error),
        }
    }

    /// Removes everything but the objects. Dropping does the same and ignores errors.
    pub fn remove(self) -> Result<()> {
        let dir = self.place.dir().to_owned();
        drop(self);
        match dir.symlink_metadata() {
            Err(_) => Ok(()),
            Ok(_) => Err(Error::incomplete(format!(
                "cannot remove {}",
                dir.display()
            ))),
        }
    }

    fn tips(&mut self, tips: &[String]) -> Result<Vec<ObjectId>> {
        match self.get(tips)? {
            Got::All => self.read(tips),
            Got::NotThere(error) => Err(error),
        }
    }

    /// Fetches each tip into a private reference.
    fn get(&self, tips: &[String]) -> Result<Got> {
        if tips.is_empty() {
            return Ok(Got::All);
        }
        let mut args = vec!["fetch", "--update-shallow", "--no-show-forced-updates"];
        let depth = self.depth.map(|at| format!("--depth={}", DEPTHS[at]));
        args.extend(depth.as_deref());
        let specs = tips.iter().map(|tip| format!("+{tip}:{}", private(tip)));
        let out = self.call.run(
            &with(&args, &[vec![REMOTE.to_owned()], specs.collect()].concat()),
            b"",
        )?;
        self.call.end(&out, &tips.join(", "))
    }

    /// Reads the commits of private references, following tags.
    fn read(&self, tips: &[String]) -> Result<Vec<ObjectId>> {
        let repo = self.open()?;
        let local = repo.local();
        tips.iter()
            .map(|tip| {
                let text = std::fs::read(self.place.dir().join(private(tip))).unwrap_or_default();
                let id = gix::ObjectId::from_hex(text.trim_ascii())
                    .ok()
                    .filter(|id| id.kind() == self.hash);
                let id = id.ok_or_else(|| {
                    Error::incomplete(format!(
                        "git fetched {tip} from {} but stored no object",
                        self.call.remote.shown
                    ))
                })?;
                refs::peel(&local, id, tip).map(|id| own(&id))
            })
            .collect()
    }
}

impl GitCall {
    /// Fails if git is too old: an older version ignores the address in the environment.
    fn require_version(&self) -> Result<()> {
        let out = self.run(&with(&["version"], &[]), b"")?;
        let text = String::from_utf8_lossy(&out.stdout).trim().to_owned();
        if program::version(&text) >= SINCE {
            return Ok(());
        }
        Err(Error::usage(format!(
            "{text} ({}) is too old for fetching",
            self.program.display()
        ))
        .hint(format!("install git {}.{} or newer", SINCE.0, SINCE.1)))
    }

    /// Runs git in the private repository, in a process group of its own that ends with the run.
    fn run(&self, args: &[OsString], stdin: &[u8]) -> Result<Output> {
        let mut all: Vec<OsString> = vec![
            "--git-dir".into(),
            self.git_dir.clone().into(),
            "--no-pager".into(),
        ];
        all.extend(
            PINNED
                .iter()
                .flat_map(|value| ["-c".into(), OsString::from(value)]),
        );
        if !self.asks {
            all.extend(["-c".into(), OsString::from(SILENT)]);
        }
        all.extend_from_slice(args);
        let program = process::Program {
            path: &self.program,
            args: &all,
            env: &self.env,
            dir: &self.git_dir,
            stdin,
            deadline: self.deadline,
            max_stdout: MAX_STDOUT,
            max_stderr: MAX_STDERR,
            max_memory: None,
        };
        // A separate thread, because the caller may already be in a runtime.
        std::thread::scope(|s| {
            let running = s.spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build()?;
                runtime.block_on(process::run(&program, &self.stop))
            });
            match running.join() {
                Ok(out) => out.map_err(|e| {
                    Error::usage(format!("cannot run {}", self.program.display())).caused_by(&e)
                }),
                Err(_) => Err(Error::incomplete("internal error: the fetch panicked")),
            }
        })
    }

    fn end(&self, out: &Output, what: &str) -> Result<Got> {
        let from = &self.remote.shown;
        let why = match out.end {
            End::Exit(0) => return Ok(Got::All),
            End::TimedOut => {
                format!(
                    "timed out after {} minutes: fetching {what} from {from}",
                    DEADLINE.as_secs() / 60
                )
            }
            End::Stopped(_) => format!("fetching {what} from {from} was interrupted"),
            End::Exit(_) | End::Signal(_) | End::TooMuch | End::OutOfMemory | End::Ended => {
                format!("cannot fetch {what} from {from}")
            }
        };
        let said = words::of(&out.stderr);
        let mut error = Error::incomplete(why);
        error.hints = words::hints(&said, &self.remote);
        error.causes.clone_from(&said);
        Ok(if words::not_there(&said) {
            Got::NotThere(error)
        } else {
            return Err(error);
        })
    }
}

impl NamedRemote {
    /// Finds a configured remote by its name. Any other text is parsed as an address.
    fn find(repo: &Repo, local: &gix::Repository, name: &str) -> Result<Self> {
        let config = local.config_snapshot();
        let known = repo.remotes();
        let url = known
            .iter()
            .any(|n| n == name)
            .then(|| config.string(format!("remote.{name}.url").as_str()));
        let top = repo.worktree().unwrap_or(repo.git_dir());
        let (shown, address) = match url {
            Some(Some(url)) => (name.to_owned(), FetchAddress::parse(&url.to_string(), top)?),
            Some(None) => return Err(Error::usage(format!("remote {name} has no URL"))),
            None if !name.contains([':', '/']) => {
                let error = Error::usage(format!("remote {name} not found"));
                return Err(match known.is_empty() {
                    true => error.hint("add a remote: git remote add origin URL"),
                    false => error.hint(format!("use one of the remotes: {}", known.join(", "))),
                });
            }
            None => (
                address::without_password(name),
                FetchAddress::parse(name, top)?,
            ),
        };
        let own_ssh = is_set_by_repository(&config, "core", "sshCommand");
        let own_helper = is_set_by_repository(&config, "credential", "helper");
        Ok(Self {
            shown,
            address,
            own_ssh,
            own_helper,
        })
    }
}

/// Returns true if the repository's own configuration has a key in one of the sections of a name.
fn is_set_by_repository(config: &gix::config::Snapshot<'_>, section: &str, key: &str) -> bool {
    let mut sections = config
        .plumbing()
        .sections_by_name(section)
        .into_iter()
        .flatten();
    sections.any(|s| is_repositorys(s.meta()) && s.value(key).is_some())
}

/// Returns true if a value is in the repository's own configuration, or in a file that it includes.
fn is_repositorys(meta: &gix::config::file::Metadata) -> bool {
    matches!(
        meta.source,
        gix::config::Source::Local | gix::config::Source::Worktree
    )
}

/// Returns the password program that the operator's environment names, as Jenkins sets it. The path
/// must be absolute and outside of the repository, both as written and after links are resolved.
fn askpass(env: &Env, inside: &[PathBuf]) -> Option<OsString> {
    let named = env.os(ASKPASS)?;
    let path = Path::new(named);
    let real = path
        .canonicalize()
        .ok()
        .filter(|real| path.is_absolute() && real.is_file())?;
    let beside = path.parent()?.canonicalize().ok()?;
    let is_inside = [real, beside]
        .iter()
        .any(|path| inside.iter().any(|top| path.starts_with(top)));
    (!is_inside).then(|| named.clone())
}

/// Returns true if the operator configures how ssh is run.
fn is_ssh_chosen(local: &gix::Repository, env: &Env) -> bool {
    let config = local.config_snapshot();
    let mut sections = config
        .plumbing()
        .sections_by_name("core")
        .into_iter()
        .flatten();
    ["GIT_SSH_COMMAND", "GIT_SSH"]
        .iter()
        .any(|v| env.os(v).is_some())
        || sections.any(|s| !is_repositorys(s.meta()) && s.value("sshCommand").is_some())
}

/// Writes the private repository. Returns true if the user's repository is shallow.
fn prepare(place: &FetchFolder, repo: &Repo, local: &gix::Repository) -> Result<bool> {
    let mut config =
        "[core]\n\trepositoryformatversion = 1\n\tbare = true\n[extensions]\n".to_owned();
    if local.object_hash() != gix::hash::Kind::Sha1 {
        config.push_str(&format!("\tobjectformat = {}\n", local.object_hash()));
    }
    if is_partial(local) {
        config.push_str(&format!(
            "\tpartialclone = {REMOTE}\n[remote \"{REMOTE}\"]\n\tpromisor = true\n"
        ));
    }
    place.write("config", config.as_bytes())?;
    place.write("HEAD", b"ref: refs/heads/none\n")?;
    place.write("objects/.keep", b"")?;
    place.write("refs/.keep", b"")?;
    let cut = local
        .shallow_commits()
        .map_err(|e| Error::incomplete("cannot read the list of shallow commits").caused_by(&e))?;
    if let Some(cut) = &cut {
        let lines: String = cut.iter().map(|id| format!("{id}\n")).collect();
        place.write("shallow", lines.as_bytes())?;
    }
    // The remote omits what these references reach. Without them it only sends more.
    let mut have: Vec<gix::ObjectId> = repo
        .head()
        .ok()
        .flatten()
        .map(|id| gix_id(&id))
        .into_iter()
        .collect();
    for prefix in ["refs/remotes/", "refs/heads/", "refs/tags/"] {
        have.extend(repo.refs.tips(local, prefix).unwrap_or_default());
    }
    let mut seen = HashSet::new();
    have.retain(|id| seen.insert(*id) && local.has_object(*id));
    have.truncate(MAX_HAVE);
    let lines: String = have
        .iter()
        .enumerate()
        .map(|(i, id)| format!("{id} refs/have/{i:06}\n"))
        .collect();
    place.write("packed-refs", lines.as_bytes())?;
    Ok(cut.is_some())
}

/// Returns configuration for the environment, which process listings do not show: the operator's
/// own, the address, and the authentication header.
fn configuration(
    local: &gix::Repository,
    env: &Env,
    fetch: &Fetch,
    address: &FetchAddress,
) -> Result<Vec<(OsString, OsString)>> {
    let mut pairs: Vec<(OsString, OsString)> = Vec::new();
    let count = env
        .var("GIT_CONFIG_COUNT")
        .and_then(|n| n.parse().ok())
        .unwrap_or(0)
        .min(MAX_CONFIG);
    for i in 0..count {
        let key = env.os(&format!("GIT_CONFIG_KEY_{i}"));
        let value = env
            .os(&format!("GIT_CONFIG_VALUE_{i}"))
            .cloned()
            .unwrap_or_default();
        pairs.extend(key.map(|key| (key.clone(), value)));
    }
    pairs.push((
        format!("remote.{REMOTE}.url").into(),
        address.url.clone().into(),
    ));
    if let Some(c) = &fetch.credential
        && c.url
            .chars()
            .chain(c.header.expose_secret().chars())
            .any(char::is_control)
    {
        return Err(Error::usage(
            "the credential for the remote contains control characters",
        ));
    }
    // A job's credential is for the job's own server. The remote may be another one, with its own
    // credential.
    let credential = fetch
        .credential
        .as_ref()
        .filter(|c| address.is_below(&c.url));
    if let Some(c) = credential {
        pairs.push(extra_header(&c.url, c.header.expose_secret()));
    } else if let Some(basic) = &address.basic {
        pairs.push(extra_header(&address.url, basic));
    }
    let is_proven = credential.is_some() || address.basic.is_some();
    let config = local.config_snapshot();
    for section in config
        .plumbing()
        .sections_by_name("http")
        .into_iter()
        .flatten()
    {
        let Some(url) = section
            .header()
            .subsection_name()
            .filter(|_| is_repositorys(section.meta()))
        else {
            continue;
        };
        let values = section.values("extraHeader");
        pairs.extend(
            values
                .iter()
                .filter(|_| !is_proven)
                .map(|v| extra_header(&url.to_string(), &v.to_string())),
        );
        if let Some(proxy) = section
            .value("proxy")
            .map(|v| v.to_string())
            .filter(|p| address::is_on_this_machine(p))
        {
            pairs.push((format!("http.{url}.proxy").into(), proxy.into()));
        }
    }
    let mut vars = vec![(
        OsString::from("GIT_CONFIG_COUNT"),
        OsString::from(pairs.len().to_string()),
    )];
    for (i, (key, value)) in pairs.into_iter().enumerate() {
        vars.push((format!("GIT_CONFIG_KEY_{i}").into(), key));
        vars.push((format!("GIT_CONFIG_VALUE_{i}").into(), value));
    }
    Ok(vars)
}

/// Returns the setting that adds a header to the requests below an address.
fn extra_header(url: &str, value: &str) -> (OsString, OsString) {
    (format!("http.{url}.extraHeader").into(), value.into())
}

/// Rejects text that is neither the full name of a reference nor an object ID.
fn check(tip: &str) -> Result<()> {
    let full =
        tip == "HEAD" || tip.starts_with("refs/") && gix::refs::FullName::try_from(tip).is_ok();
    if tip.len() <= MAX_TIP && (full || ObjectId::from_hex(tip).is_some_and(|id| !id.is_null())) {
        return Ok(());
    }
    let shown: String = tip.chars().take(60).collect();
    Err(Error::usage(format!(
        "expected the full name of a reference or an object ID, got {shown:?}"
    )))
}

/// Returns the private reference of a tip: its own name below a prefix.
fn private(tip: &str) -> String {
    format!("{PREFIX}{}", tip.strip_prefix("refs/").unwrap_or(tip))
}

/// Returns the arguments of a call.
fn with(args: &[&str], rest: &[String]) -> Vec<OsString> {
    let mut all: Vec<OsString> = args.iter().map(OsString::from).collect();
    if args.contains(&"fetch") {
        all.extend(
            [
                "--no-tags",
                "--no-write-fetch-head",
                "--no-recurse-submodules",
                "--no-auto-gc",
            ]
            .map(Into::into),
        );
        all.extend(["--quiet", "--end-of-options"].map(Into::into));
    }
    all.extend(rest.iter().map(OsString::from));
    all
}
