//! `policy`: shows, checks, converts and trusts policy files.

mod test;

use super::Context;
use super::format::{FileFormat, Format};
use super::stdout::{eprint, print};
use crate::bounded;
use crate::diff::{FileMode, RepoPath};
use crate::error::{Error, ExitStatus, Result};
use crate::git::Repo;
use crate::policy::{
    self, Loaded, Pins, Policy, PolicyFile, PolicyProblem, ProjectFile, Sources, import, schema,
};
use crate::request::Overrides;
use crate::rules::RuleSet;
use crate::untrusted::Inert;
use std::path::{Path, PathBuf};

/// Show, check and convert the policy.
#[derive(Debug, clap::Args)]
pub(super) struct PolicyArgs {
    #[command(subcommand)]
    command: PolicyCommand,
}

#[derive(Debug, clap::Subcommand)]
enum PolicyCommand {
    /// Check the policy, and report every problem with its line
    Check {
        /// Check only this file [default: all files of the policy]
        file: Option<PathBuf>,
        /// Read the project's file from this commit, as gate mode does
        #[arg(long, value_name = "REV", conflicts_with = "file")]
        at: Option<String>,
    },
    /// Show every effective value
    Show {
        /// Show the source of each value
        #[arg(long)]
        origin: bool,
        /// Output format
        #[arg(
            long,
            default_value = "human",
            value_parser = FileFormat::parser(
                "One line for each value, with its full key",
                "JSON with the structure of the policy file",
                "A policy file that sets every value",
            )
        )]
        format: FileFormat,
        /// Read the project's file from this commit, as gate mode does
        #[arg(long, value_name = "REV")]
        at: Option<String>,
    },
    /// Print the JSON schema of the policy file, for editors
    Schema,
    /// Convert a JSON configuration (.claude-reviewer.json) to a policy file
    Import {
        /// File to convert, or - for standard input
        file: PathBuf,
    },
    /// Apply a policy to stored reviews, and list the verdicts that change
    #[command(
        after_help = "Uses stored results only. The results of new rules and of other backends are unknown \
        without a new review, and are listed as unknown."
    )]
    Test {
        /// Policy file to apply [default: the current policy]
        #[arg(long, value_name = "FILE")]
        policy: Option<PathBuf>,
        /// Number of newest sessions to use
        #[arg(long, value_name = "N", default_value_t = 50)]
        limit: usize,
        /// Treat decisions that agents propose as if they were confirmed
        #[arg(long)]
        proposals: bool,
        /// Output format
        #[arg(
            long,
            default_value = "human",
            value_parser = Format::parser("Changed verdicts, with reasons", "Every stored round")
        )]
        format: Format,
    },
    /// Trust the current content of this project's policy file
    #[command(
        after_help = "Programs, commands, keys, storage paths and endpoints in a project's file are used only \
        if you trust its content. Any change to the file revokes the trust."
    )]
    Trust {
        /// Remove the trust in this project's policy file
        #[arg(long, conflicts_with = "list")]
        remove: bool,
        /// List trusted policy files
        #[arg(long)]
        list: bool,
    },
}

pub(super) fn run(context: &Context, args: &PolicyArgs) -> Result<ExitStatus> {
    match &args.command {
        PolicyCommand::Check { file, at } => check(context, file.as_deref(), at.as_deref()),
        PolicyCommand::Show { origin, format, at } => {
            show(context, *origin, *format, at.as_deref())
        }
        PolicyCommand::Schema => print(&schema::text()),
        PolicyCommand::Import { file } => convert(context, file),
        PolicyCommand::Test {
            policy,
            limit,
            proposals,
            format,
        } => test::run(context, policy.as_deref(), (*limit, *proposals), *format),
        PolicyCommand::Trust { remove, list } => match (remove, list) {
            (true, _) => distrust(context),
            (_, true) => list_trusted(context),
            _ => trust(context),
        },
    }
}

/// The policy files that apply here.
pub(super) struct PolicyFiles {
    pub(super) user: Option<PolicyFile>,
    pub(super) project: Option<ProjectFile>,
    /// The worktree; `None` outside a repository and in a bare one.
    top: Option<PathBuf>,
}

impl PolicyFiles {
    pub(super) fn find(context: &Context, at: Option<&str>) -> Result<Self> {
        let user = PolicyFile::user(&context.env)?;
        let repo = Repo::open(&context.dir, &context.env);
        if let (Err(e), None, None) = (&repo, &context.global.config, at) {
            // Outside a repository only the user's file applies. The note prevents confusion with a
            // project's policy.
            eprint(&format!("note: no project policy: {}", line(&e.message)));
        }
        let top = repo
            .as_ref()
            .ok()
            .and_then(|r| r.worktree().map(Path::to_owned));
        let project = match (&context.global.config, at, &top) {
            (Some(path), None, _) => Some(ProjectFile::from_flag(path, &context.dir)?),
            (Some(_), Some(_), _) => {
                return Err(Error::usage("--config and --at cannot be used together"));
            }
            (None, Some(rev), _) => {
                let repo = repo?;
                let id = repo.resolve(rev)?;
                let path = RepoPath::from(policy::FILE_NAME);
                let state = repo.state_of(id)?;
                let mut reader = repo.reader();
                match reader.read(&state, &path, policy::MAX_BYTES)? {
                    Some(bytes) => Some(ProjectFile::at_base(id, bytes)),
                    None if reader.mode(&state, &path)? == Some(FileMode::Symlink) => {
                        return Err(ProjectFile::linked(&format!(
                            "{} at {}",
                            policy::FILE_NAME,
                            id.short()
                        )));
                    }
                    None => None,
                }
            }
            (None, None, Some(top)) => ProjectFile::in_worktree(top, top, &context.env)?,
            (None, None, None) => None,
        };
        Ok(Self { user, project, top })
    }

    fn check(&self, context: &Context) -> std::result::Result<Loaded, Vec<PolicyProblem>> {
        policy::check(&self.sources(context, &Overrides::default()))
    }

    /// Loads the policy of these files.
    pub(super) fn load(&self, context: &Context) -> Result<Loaded> {
        policy::load(&self.sources(context, &Overrides::default()))
    }

    fn sources<'a>(&'a self, context: &'a Context, overrides: &'a Overrides) -> Sources<'a> {
        Sources {
            user: self.user.as_ref(),
            project: self.project.as_ref(),
            env: &context.env,
            overrides,
        }
    }

    /// Returns the names of the files.
    pub(super) fn label(&self) -> String {
        let names: Vec<_> = [self.user.as_ref(), self.project.as_ref().map(|p| &p.file)]
            .into_iter()
            .flatten()
            .collect();
        match names.as_slice() {
            [] => "no policy file: defaults".to_owned(),
            names => names
                .iter()
                .map(|f| Inert::new(&f.name).to_string())
                .collect::<Vec<_>>()
                .join(", "),
        }
    }
}

fn check(context: &Context, file: Option<&Path>, at: Option<&str>) -> Result<ExitStatus> {
    let files = match file {
        // Check it as an untrusted project's file: the author sees the keys that need trust.
        Some(path) => {
            let project = ProjectFile {
                trusted: false,
                ..ProjectFile::from_flag(path, &context.dir)?
            };
            PolicyFiles {
                user: None,
                project: Some(project),
                top: None,
            }
        }
        None => PolicyFiles::find(context, at)?,
    };
    let loaded = match files.check(context) {
        Ok(loaded) => loaded,
        Err(problems) => {
            let mut text = String::new();
            for p in &problems {
                text.push_str(&line(&p.message));
                if let Some(hint) = &p.hint {
                    text.push_str(&format!("  {}", line(hint)));
                }
            }
            print(&text)?;
            return Ok(ExitStatus::Usage);
        }
    };
    unknown_rules(&loaded.policy, files.top.as_deref())?;
    let mut text = format!("ok: {}\n", files.label());
    for doubt in loaded.policy.doubts() {
        text.push_str(&format!("warning: {}", line(&doubt)));
    }
    for note in &loaded.notes {
        text.push_str(&format!("note: {}", line(&note.text)));
    }
    print(&text)
}

/// Validates the rule IDs in the policy, unless they may belong to team rules.
fn unknown_rules(policy: &Policy, top: Option<&Path>) -> Result<()> {
    let own = policy
        .rules
        .paths
        .iter()
        .any(|p| top.is_none_or(|top| top.join(p).exists()));
    if !own {
        RuleSet::new(&policy.rules, &[])?;
    }
    Ok(())
}

fn show(
    context: &Context,
    origin: bool,
    format: FileFormat,
    at: Option<&str>,
) -> Result<ExitStatus> {
    let files = PolicyFiles::find(context, at)?;
    let Loaded { policy, notes } = files.load(context)?;
    if format == FileFormat::Human && !context.global.quiet {
        for note in &notes {
            eprint(&format!("note: {}", line(&note.text)));
        }
    }
    print(&match format {
        FileFormat::Human => {
            let head = format!("# {}, hash {}\n", files.label(), policy.hash());
            head + &policy.to_text(origin)
        }
        FileFormat::Json => policy::show::json_text(&policy.to_json(origin)),
        FileFormat::Toml => policy.to_toml(origin),
    })
}

fn convert(context: &Context, path: &Path) -> Result<ExitStatus> {
    let name = path.display().to_string();
    let file = if name == "-" {
        let bytes = bounded::whole(std::io::stdin().lock(), policy::MAX_BYTES as u64)
            .map_err(|e| Error::usage("cannot read standard input").caused_by(&e))?
            .ok_or_else(|| Error::usage("standard input is larger than 1 MiB"))?;
        PolicyFile {
            name: "standard input".to_owned(),
            bytes,
        }
    } else {
        ProjectFile::from_flag(path, &context.dir)?.file
    };
    let imported = import::import(&file)?;
    for what in &imported.left_out {
        eprint(&format!("note: not imported: {}", line(what)));
    }
    print(&imported.toml)
}

fn trust(context: &Context) -> Result<ExitStatus> {
    let (pins, top) = pins(context)?;
    let Some(project) = ProjectFile::in_worktree(&top, &top, &context.env)? else {
        return Err(Error::usage(format!(
            "{} not found in {}",
            policy::FILE_NAME,
            top.display()
        )));
    };
    let values = policy::operator_values(&project)?;
    if values.is_empty() {
        return print(&format!("no value in {} needs trust\n", policy::FILE_NAME));
    }
    pins.add(&top, &project.file.bytes)?;
    let mut text = format!("trusted until {} changes:\n", policy::FILE_NAME);
    for value in values {
        text.push_str(&format!("  {}", line(&value)));
    }
    print(&text)
}

fn distrust(context: &Context) -> Result<ExitStatus> {
    let (pins, top) = pins(context)?;
    print(match pins.remove(&top)? {
        0 => "no trust to remove in this repository\n",
        _ => "removed trust in this repository\n",
    })
}

fn list_trusted(context: &Context) -> Result<ExitStatus> {
    let pins = Pins::of(&context.env).ok_or_else(no_home)?.list()?;
    let text: String = pins
        .iter()
        .map(|p| line(&format!("{}  {}", &p.content[..12], p.worktree)))
        .collect();
    print(if text.is_empty() {
        "no trusted policy files\n"
    } else {
        &text
    })
}

fn pins(context: &Context) -> Result<(Pins, PathBuf)> {
    let pins = Pins::of(&context.env).ok_or_else(no_home)?;
    let repo = Repo::open(&context.dir, &context.env)?;
    match repo.worktree() {
        Some(top) => Ok((pins, top.to_owned())),
        None => Err(Error::usage(
            "a bare repository has no policy file to trust",
        )),
    }
}

fn no_home() -> Error {
    Error::usage("no configuration folder found").hint("set HOME or XDG_CONFIG_HOME")
}

/// Returns untrusted text as one line.
fn line(text: &str) -> String {
    format!("{}\n", Inert::new(text))
}
