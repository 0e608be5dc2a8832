//! `rules new`: writes a template for a team rule.

use super::{Context, PolicyFiles};
use crate::error::{Error, Result};
use crate::git::Repo;
use crate::rules;
use crate::shell;
use crate::untrusted::Inert;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

/// The kind of a new rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Template {
    /// A regular expression, in TOML.
    Pattern,
    /// A pattern of code, in YAML.
    Structural,
}

impl Template {
    /// Returns the template. It passes `rules test`, so that an author starts from a working rule.
    fn text(self) -> &'static str {
        match self {
            Self::Pattern => include_str!("new.toml"),
            Self::Structural => include_str!("new.yml"),
        }
    }

    fn extension(self) -> &'static str {
        match self {
            Self::Pattern => "toml",
            Self::Structural => "yml",
        }
    }
}

/// Writes the rule file. Returns the text for standard output.
///
/// # Errors
///
/// Usage: the ID is malformed or belongs to a built-in rule, the file exists, or it cannot be
/// written.
pub(super) fn write(
    context: &Context,
    id: &str,
    dir: Option<&Path>,
    template: Template,
) -> Result<String> {
    if !rules::is_id(id) {
        let error = Error::usage(format!(
            "invalid rule ID {id:?}: expected lower-case words joined by `-`"
        ));
        return Err(match suggested(id) {
            Some(better) => error.hint(format!("claude-reviewer rules new {better}")),
            None => error.hint("claude-reviewer rules new no-direct-sql"),
        });
    }
    if !rules::is_free_id(id) {
        return Err(
            Error::usage(format!("rule ID {id:?} belongs to a built-in rule"))
                .hint(format!("claude-reviewer rules new team-{id}")),
        );
    }
    let (folder, shown) = folder(context, dir)?;
    let file_name = format!("{id}.{}", template.extension());
    let (file, name) = (folder.join(&file_name), shown.join(&file_name));
    if dir.is_none() {
        refuse_links(&folder, &name)?;
    }
    std::fs::create_dir_all(&folder).map_err(|e| unwritten(&name, &e))?;
    let mut out = match std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&file)
    {
        Ok(out) => out,
        Err(e) if e.kind() == ErrorKind::AlreadyExists => {
            return Err(Error::usage(format!("{} already exists", name.display()))
                .hint("choose another ID"));
        }
        Err(e) => return Err(unwritten(&name, &e)),
    };
    out.write_all(template.text().replace("RULE_ID", id).as_bytes())
        .map_err(|e| unwritten(&name, &e))?;
    let path = Inert::new(name.to_string_lossy().as_bytes()).to_string();
    let word = shell::quoted(&path);
    Ok(format!(
        "wrote {path}\nnext: edit the rule, then run: claude-reviewer rules test {word}\n"
    ))
}

/// Returns the error about a rule file that cannot be written.
fn unwritten(name: &Path, e: &std::io::Error) -> Error {
    Error::usage(format!("cannot write {}", name.display())).caused_by(e)
}

/// Rejects a folder that is, or is below, a symbolic link: reviews do not read rules there, and the
/// link may lead out of the repository.
fn refuse_links(folder: &Path, name: &Path) -> Result<()> {
    let mut folders = folder
        .ancestors()
        .take(name.components().count().saturating_sub(1));
    match folders.find(|p| p.symlink_metadata().is_ok_and(|m| m.is_symlink())) {
        None => Ok(()),
        Some(link) => Err(Error::usage(format!(
            "{} is a symbolic link, which reviews do not follow",
            link.display()
        ))
        .hint("choose another folder: --dir DIR")),
    }
}

/// Returns the folder for rule files, and its name as the user sees it.
fn folder(context: &Context, dir: Option<&Path>) -> Result<(PathBuf, PathBuf)> {
    if let Some(dir) = dir {
        return Ok((context.dir.join(dir), dir.to_owned()));
    }
    let repo = Repo::open(&context.dir, &context.env)
        .map_err(|e| e.hint("outside a repository, choose the folder: --dir DIR"))?;
    let Some(top) = repo.worktree() else {
        return Err(
            Error::usage("a bare repository has no worktree").hint("choose a folder: --dir DIR")
        );
    };
    let policy = PolicyFiles::find(context, None)?.load(context)?.policy;
    let Some(first) = policy.rules.paths.first() else {
        return Err(
            Error::usage("rules.paths is empty in the policy").hint("choose a folder: --dir DIR")
        );
    };
    let folder = top.join(first);
    // From a folder below the top, the command of the hint needs a path that works there.
    let shown = match top == context.dir {
        true => PathBuf::from(first),
        false => folder.clone(),
    };
    Ok((folder, shown))
}

/// Returns a valid ID that is close to the given one, if it has letters or digits.
fn suggested(id: &str) -> Option<String> {
    let words: Vec<String> = id
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|w| !w.is_empty())
        .map(str::to_ascii_lowercase)
        .collect();
    let better: String = words.join("-").chars().take(64).collect();
    rules::is_id(&better).then_some(better)
}
