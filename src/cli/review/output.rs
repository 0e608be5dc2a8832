//! The outputs of a review: files and standard output, and the errors about reports that cannot be
//! written.

use super::Options;
use crate::cli::style::style;
use crate::cli::{Context, print_error};
use crate::env::Env;
use crate::error::{Error, ExitStatus, Result};
use crate::report::jsonl::JsonLinesPrinter;
use crate::report::{self, ReportFormat, Style};
use crate::request::Authority;
use crate::review::Review;
use crate::verdict::Verdict;
use std::io::{Read as _, Seek as _, Write};
use std::path::{Path, PathBuf};

/// Rejects two reports with the same file, because the second would replace the first, and `-` as a
/// file.
pub(in crate::cli) fn refuse_shared_targets(context: &Context, o: &Options) -> Result<()> {
    let mut targets: Vec<PathBuf> = Vec::new();
    let further = o.report.iter().map(|(format, file)| (*format, file));
    for (format, file) in further.chain(o.output.iter().map(|file| (o.format, file))) {
        if file.as_os_str() == "-" {
            return Err(Error::usage("cannot write a report to -: not a file")
                .hint(format!(
                    "for standard output: --format {} without --output",
                    format.name()
                ))
                .hint("for a file of that name: ./-"));
        }
        let path = context.dir.join(file);
        if std::fs::metadata(&path).is_ok_and(|m| !m.is_file()) {
            // A device or pipe can take several reports in sequence.
            continue;
        }
        let target = real(&path);
        if targets.contains(&target) {
            return Err(Error::usage(format!(
                "two reports would be written to {}",
                file.display()
            ))
            .hint("name a file for each --report, and another one for --output"));
        }
        targets.push(target);
    }
    Ok(())
}

/// Returns the canonical path of a file that need not exist.
fn real(path: &Path) -> PathBuf {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return path.to_owned();
    };
    let real = path
        .canonicalize()
        .or_else(|_| folder.canonicalize().map(|folder| folder.join(name)));
    real.unwrap_or_else(|_| path.to_owned())
}

/// Returns the exit code after a report was not written: that of the review, unless the review
/// passed.
pub(super) fn after(exit: ExitStatus, unwritten: Option<ExitStatus>) -> ExitStatus {
    if exit == ExitStatus::Pass {
        unwritten.unwrap_or(exit)
    } else {
        exit
    }
}

/// Writes all reports that can be written, and prints why the others cannot. Returns the exit code
/// of the first that was not written.
/// `printer` has printed a part of the report on standard output.
pub(super) fn write_reports(
    context: &Context,
    (o, printer): (&Options, Option<&JsonLinesPrinter>),
    authority: Authority,
    review: &Review,
) -> Option<ExitStatus> {
    let mut style = style(context, &context.env);
    style.dispositioned = o.show_dispositioned;
    let terse = is_terse(o, review);
    let rest = printer.map(|printer| || printer.finish(review));
    let printed = Printed {
        exit: review.exit,
        is_gate: authority == Authority::Base,
        render: &|format, style, out| report::render(review, format, style, out),
        rest: rest.as_ref().map(|rest| rest as &WriteRest<'_>),
    };
    write_all(context, o, (style, terse), &printed)
}

/// The output of a command: a review, or several.
pub(in crate::cli) struct Printed<'a> {
    pub(in crate::cli) exit: ExitStatus,
    /// Suppression comments in the change do not count: the base of the change governs.
    pub(in crate::cli) is_gate: bool,
    pub(in crate::cli) render: &'a Render<'a>,
    /// Prints the rest of a report on standard output whose first lines are printed.
    pub(in crate::cli) rest: Option<&'a WriteRest<'a>>,
}

/// Writes a report in a format.
type Render<'a> = dyn Fn(ReportFormat, &Style, &mut dyn Write) -> std::io::Result<()> + 'a;

/// Prints the rest of a report on standard output.
type WriteRest<'a> = dyn Fn() -> std::io::Result<()> + 'a;

/// Writes the reports that `--format`, `--output` and `--report` ask for, as [`write_reports`].
/// Returns the exit code of the command.
pub(in crate::cli) fn write_printed(
    context: &Context,
    o: &Options,
    printed: &Printed<'_>,
) -> ExitStatus {
    let style = style(context, &context.env);
    after(printed.exit, write_all(context, o, (style, false), printed))
}

/// Writes all reports. A terse one has only its last line on standard output.
fn write_all(
    context: &Context,
    o: &Options,
    (mut style, is_terse): (Style, bool),
    printed: &Printed<'_>,
) -> Option<ExitStatus> {
    style.in_ci |= printed.is_gate;
    let plain = Style {
        color: false,
        links: None,
        width: 100,
        ..style
    };
    let files = o.report.iter().map(|(format, file)| (*format, file));
    let files = files.chain(o.output.iter().map(|file| (o.format, file)));
    let mut failed = None;
    for (format, file) in files {
        if let Err(e) = write_file(
            &context.env,
            &context.dir.join(file),
            printed,
            format,
            &plain,
        ) {
            print_error(&e);
            failed = failed.or(Some(e.status()));
        }
    }
    if o.output.is_none() {
        style.quiet |= is_terse;
        // `-q` prints nothing if the exit code is 0. A document for a program is always printed.
        if context.global.quiet
            && o.format == ReportFormat::Human
            && printed.exit == ExitStatus::Pass
        {
            return failed;
        }
        if let Err(e) = print_report(printed, o.format, &style) {
            // A closed pipe (`| head`) need not be reported next to a verdict that already fails.
            if !(e.is_broken_pipe && printed.exit != ExitStatus::Pass) {
                print_error(&e.error);
            }
            failed = failed.or(Some(e.error.status()));
        }
    }
    failed
}

/// Returns a printer of findings as they come, if standard output gets them in that form.
pub(super) fn printer(o: &Options) -> Option<JsonLinesPrinter> {
    let is_printed = o.format == ReportFormat::Jsonl && o.output.is_none();
    is_printed.then(JsonLinesPrinter::default)
}

/// Returns true for a hook's review that passed without notes: it prints one line instead of a
/// report.
pub(super) fn is_terse(o: &Options, review: &Review) -> bool {
    o.hook.is_some() && review.verdict == Verdict::Pass && review.notes.is_empty()
}

/// A report that could not be written to standard output.
struct Unprinted {
    error: Error,
    /// The pipe is closed.
    is_broken_pipe: bool,
}

/// Prints a report, or the rest of one whose first lines are printed.
fn print_report(
    printed: &Printed<'_>,
    format: ReportFormat,
    style: &Style,
) -> std::result::Result<(), Unprinted> {
    let written = match printed.rest {
        Some(rest) => rest(),
        None => {
            let mut out = std::io::BufWriter::new(std::io::stdout().lock());
            (printed.render)(format, style, &mut out).and_then(|()| out.flush())
        }
    };
    written.map_err(|e| Unprinted {
        error: Error::incomplete("cannot write the report to standard output").caused_by(&e),
        is_broken_pipe: e.kind() == std::io::ErrorKind::BrokenPipe,
    })
}

/// Writes a report to a temporary file and renames it, so that no reader gets a partial report.
///
/// Follows a link; writes directly to a device or pipe. A new file gets the default mode of the
/// umask, an existing one keeps its mode. Files that other programs hold are not replaced: the
/// report is appended to a file that the runner collects, as all steps do, and an empty file, one
/// with several links, and one of another user are written in place.
fn write_file(
    env: &Env,
    path: &Path,
    printed: &Printed<'_>,
    format: ReportFormat,
    style: &Style,
) -> Result<()> {
    let mut bytes = Vec::new();
    (printed.render)(format, style, &mut bytes).map_err(|e| unwritten(path, &e))?;
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let old = std::fs::metadata(&target).ok();
    if old.as_ref().is_some_and(|m| !m.is_file()) {
        return std::fs::write(&target, &bytes).map_err(|e| unwritten(path, &e));
    }
    if is_collected(env, &target) {
        return add_to(&target, &bytes).map_err(|e| unwritten(path, &e));
    }
    if old.as_ref().is_some_and(|m| m.len() == 0 || is_held(m)) {
        return std::fs::write(&target, &bytes).map_err(|e| unwritten(path, &e));
    }
    let mut file = tempfile::Builder::new();
    file.prefix(".claude-reviewer-");
    #[cfg(unix)]
    let mode = <std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o666);
    #[cfg(unix)]
    file.permissions(mode);
    let mut file = file
        .tempfile_in(target.parent().unwrap_or(Path::new(".")))
        .map_err(|e| unwritten(path, &e))?;
    file.write_all(&bytes).map_err(|e| unwritten(path, &e))?;
    if let Some(old) = old {
        file.as_file()
            .set_permissions(old.permissions())
            .map_err(|e| unwritten(path, &e))?;
    }
    file.persist(&target)
        .map_err(|e| unwritten(path, &e.error))?;
    Ok(())
}

/// Returns the error about a report that cannot be written.
fn unwritten(path: &Path, e: &std::io::Error) -> Error {
    Error::usage(format!("cannot write the report {}", path.display())).caused_by(e)
}

/// Returns true if GitHub's runner collects the output of steps in this file.
fn is_collected(env: &Env, target: &Path) -> bool {
    let files = ["GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT"]
        .into_iter()
        .filter_map(|name| env.os(name));
    files
        .filter_map(|f| Path::new(f).canonicalize().ok())
        .any(|f| f == target)
}

/// Appends to a file, starting on a new line.
fn add_to(target: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = std::fs::OpenOptions::new()
        .read(true)
        .append(true)
        .open(target)?;
    let mut last = [b'\n'];
    if file.metadata()?.len() > 0 {
        file.seek(std::io::SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
    }
    let gap: &[u8] = if last == *b"\n" { b"" } else { b"\n" };
    file.write_all(&[gap, bytes].concat())
}

/// Returns true if a file has several links or belongs to another user: replacing it would leave
/// theirs unchanged.
#[cfg(unix)]
fn is_held(file: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    file.nlink() > 1 || file.uid() != rustix::process::geteuid().as_raw()
}

#[cfg(not(unix))]
fn is_held(_: &std::fs::Metadata) -> bool {
    false
}
