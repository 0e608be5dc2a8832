//! `init`: writes a policy file, and on request hooks and a CI file.

mod policy;

use super::{Context, hooks};
use crate::env::Env;
use crate::error::{Error, ExitStatus, Result};
use crate::git::{Repo, State};
use crate::policy::FILE_NAME;
use crate::rules;
use clap::ValueEnum as _;
use policy::RepositoryFacts;
use std::io::{BufRead as _, ErrorKind, IsTerminal as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Tracked files whose names are read, at most.
const MAX_FILES: usize = 100_000;

/// Arguments of `init`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "On a terminal, asks whether to install hooks and which CI file to write. Existing files are never \
    changed."
)]
pub(super) struct InitArgs {
    /// Write the policy file only, without questions
    #[arg(long)]
    yes: bool,
    /// Install the git hooks, as install-hooks does
    #[arg(long)]
    hooks: bool,
    /// Write the CI file of this platform
    #[arg(long, value_name = "NAME")]
    ci: Option<Platform>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Platform {
    Github,
    Gitlab,
    Bitbucket,
    Azure,
    Jenkins,
}

/// A CI file: its path in the repository, its content, and the next step as a sentence without its
/// period.
struct CiJob {
    path: &'static str,
    text: &'static str,
    next: &'static str,
}

impl CiJob {
    /// Returns true if there is any entry at the path, even a broken link.
    fn exists(&self, top: &Path) -> bool {
        top.join(self.path).symlink_metadata().is_ok()
    }
}

impl Platform {
    fn name(self) -> String {
        self.to_possible_value()
            .map_or_else(String::new, |v| v.get_name().to_owned())
    }

    fn job(self) -> CiJob {
        match self {
            Self::Github => CiJob {
                path: ".github/workflows/claude-reviewer.yml",
                text: include_str!("../../ci/examples/github/review.yml"),
                next: "in .github/workflows/claude-reviewer.yml, replace OWNER with the owner of the repository that \
                       contains the action",
            },
            Self::Gitlab => CiJob {
                path: ".gitlab/claude-reviewer.yml",
                text: include_str!("../../ci/examples/gitlab.yml"),
                next: "add .gitlab/claude-reviewer.yml to `include` in .gitlab-ci.yml, and set CLAUDE_REVIEWER_IMAGE",
            },
            Self::Bitbucket => CiJob {
                path: "bitbucket-pipelines.yml",
                text: include_str!("../../ci/examples/bitbucket-pipelines.yml"),
                next: "in bitbucket-pipelines.yml, replace the image with yours",
            },
            Self::Azure => CiJob {
                path: "azure-pipelines.yml",
                text: include_str!("../../ci/examples/azure-pipelines.yml"),
                next: "in azure-pipelines.yml, replace the image with yours, and require the pipeline in a branch policy",
            },
            Self::Jenkins => CiJob {
                path: "Jenkinsfile",
                text: include_str!("../../ci/examples/Jenkinsfile"),
                next: "in Jenkinsfile, replace the image and the credentials with yours",
            },
        }
    }

    /// Guesses the platform from the files at the top of the repository and from its remotes.
    /// Returns `None` if the CI file of that platform exists: a default answer must not lead to an
    /// error.
    fn guess(top: &Path, repo: &Repo) -> Option<Self> {
        let by_file = [
            (".github", Self::Github),
            (".gitlab-ci.yml", Self::Gitlab),
            ("bitbucket-pipelines.yml", Self::Bitbucket),
            ("azure-pipelines.yml", Self::Azure),
            ("Jenkinsfile", Self::Jenkins),
        ];
        let found = by_file
            .into_iter()
            .find(|(name, _)| top.join(name).exists())
            .map(|(_, platform)| platform);
        let urls: Vec<String> = repo
            .remotes()
            .iter()
            .flat_map(|r| repo.remote_urls(r))
            .collect();
        let by_host = [
            ("github", Self::Github),
            ("gitlab", Self::Gitlab),
            ("bitbucket", Self::Bitbucket),
        ];
        let of_remote = by_host
            .into_iter()
            .find(|(host, _)| urls.iter().any(|u| u.contains(host)))
            .map(|(_, p)| p);
        found
            .or(of_remote)
            .filter(|platform| !platform.job().exists(top))
    }
}

/// Files that `init` writes in addition to the policy.
#[derive(Clone, Copy, Debug)]
struct InitPlan {
    hooks: bool,
    ci: Option<Platform>,
}

pub(super) fn run(context: &Context, args: &InitArgs) -> Result<ExitStatus> {
    let repo = Repo::open(&context.dir, &context.env)?;
    let Some(top) = repo.worktree() else {
        return Err(
            Error::usage("a bare repository has no worktree to write to")
                .hint("run init in a clone"),
        );
    };
    let is_asked = !(args.yes || args.hooks || args.ci.is_some()) && is_interactive(&context.env);
    let plan = match is_asked {
        true => ask(Platform::guess(top, &repo))?,
        false => InitPlan {
            hooks: args.hooks,
            ci: args.ci,
        },
    };
    let job = plan.ci.map(Platform::job);
    if let Some(job) = job.as_ref().filter(|j| j.exists(top)) {
        let error = Error::usage(format!("{} already exists", job.path));
        return Err(error.hint("add the job by hand; docs/ci.md of claude-reviewer shows it"));
    }
    // Each line is printed at once: if a later step fails, the earlier ones are still reported.
    let is_quiet = context.global.quiet;
    if top.join(FILE_NAME).symlink_metadata().is_ok() {
        print(&format!("kept {FILE_NAME}, which exists already"), is_quiet);
    } else {
        write(top, FILE_NAME, &found(&repo)?.policy())?;
        print(&format!("wrote {FILE_NAME}"), is_quiet);
    }
    if let Some(job) = &job {
        write(top, job.path, job.text)?;
        print(&format!("wrote {}\nnext: {}", job.path, job.next), is_quiet);
    }
    if plan.hooks {
        hooks::install_all(context)?;
    }
    print("next: claude-reviewer review", is_quiet);
    Ok(ExitStatus::Pass)
}

fn is_interactive(env: &Env) -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal() && !env.is_ci()
}

/// Asks on the terminal.
fn ask(guess: Option<Platform>) -> Result<InitPlan> {
    let hooks = loop {
        match answer("Install git hooks that review each commit and push? [Y/n] ")?.as_deref() {
            Some("" | "y" | "yes") => break true,
            Some("n" | "no") | None => break false,
            Some(_) => {}
        }
    };
    let names: Vec<String> = Platform::value_variants()
        .iter()
        .map(|p| p.name())
        .collect();
    let usual = guess.map_or_else(|| "none".to_owned(), Platform::name);
    let ci = loop {
        let question = format!("Write a CI file? {}, or none [{usual}] ", names.join(", "));
        match answer(&question)?.as_deref() {
            Some("") => break guess,
            Some("none" | "n" | "no") | None => break None,
            Some(name) => {
                if let Ok(platform) = <Platform as clap::ValueEnum>::from_str(name, true) {
                    break Some(platform);
                }
            }
        }
    };
    Ok(InitPlan { hooks, ci })
}

/// Prints a question and reads a line, in lower case; `None` at the end of the input.
fn answer(question: &str) -> Result<Option<String>> {
    let mut err = std::io::stderr();
    err.write_all(question.as_bytes())
        .and_then(|()| err.flush())
        .map_err(|e| unread(&e))?;
    let mut line = String::new();
    let read = std::io::stdin()
        .lock()
        .read_line(&mut line)
        .map_err(|e| unread(&e))?;
    Ok((read > 0).then(|| line.trim().to_ascii_lowercase()))
}

/// Returns the error about an answer that cannot be read.
fn unread(e: &std::io::Error) -> Error {
    Error::usage("cannot read the answer").caused_by(e)
}

/// Reads the names of the tracked files.
fn found(repo: &Repo) -> Result<RepositoryFacts> {
    let (files, _) = repo.reader().files(&State::Index, MAX_FILES)?;
    let names: Vec<String> = files
        .iter()
        .map(|f| String::from_utf8_lossy(f.as_bytes()).into_owned())
        .collect();
    Ok(RepositoryFacts::of(names.iter().map(|n| {
        (n.as_str(), rules::languages_of(n.as_bytes()).collect())
    })))
}

/// Writes a new file with its directories. Follows no symbolic link below the top of the worktree.
/// The file appears complete or not at all, and an existing file is never replaced.
fn write(top: &Path, path: &str, text: &str) -> Result<()> {
    let mut folder = PathBuf::from(top);
    for part in Path::new(path).parent().into_iter().flatten() {
        folder.push(part);
        match std::fs::create_dir(&folder) {
            Err(e) if e.kind() != ErrorKind::AlreadyExists => return Err(unwritten(path, &e)),
            _ => {}
        }
        if !folder
            .symlink_metadata()
            .map_err(|e| unwritten(path, &e))?
            .is_dir()
        {
            let shown = folder.strip_prefix(top).unwrap_or(&folder).display();
            return Err(
                Error::usage(format!("cannot write {path}: {shown} is not a directory"))
                    .hint(format!("move it away: mv {shown} {shown}.old")),
            );
        }
    }
    // By default, temporary files are private. This one becomes a tracked file, so the umask
    // decides.
    let mode = std::fs::Permissions::from_mode(0o666);
    let mut file = tempfile::Builder::new()
        .permissions(mode)
        .tempfile_in(&folder)
        .map_err(|e| unwritten(path, &e))?;
    file.write_all(text.as_bytes())
        .and_then(|()| file.as_file().sync_all())
        .map_err(|e| unwritten(path, &e))?;
    file.persist_noclobber(top.join(path))
        .map_err(|e| unwritten(path, &e.error))?;
    Ok(())
}

/// Returns the error about a file that cannot be written.
fn unwritten(path: &str, e: &std::io::Error) -> Error {
    Error::usage(format!("cannot write {path}")).caused_by(e)
}

fn print(line: &str, is_quiet: bool) {
    if !is_quiet {
        // A closed stdout leaves no way to report the error.
        let _ = writeln!(std::io::stdout(), "{line}");
    }
}
