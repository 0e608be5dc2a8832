//! The terminal of a full-screen command: raw mode, the alternate screen, keys and signals, and
//! their restoration.
//!
//! However the command ends, the terminal is restored: at a normal end, after a panic, Ctrl-C,
//! `SIGTERM`, `SIGHUP`, Ctrl-Z and `SIGTSTP`, and while another program has the terminal.

mod events;

pub(super) use events::{Event, Events};

use super::Context;
use crate::env::Env;
use crate::error::{Error, ExitStatus, Result};
use crate::process::{End, Foreground};
use crate::stop::Signal;
use crate::triage::Size;
use crate::triage::paper::Theme;
use crate::triage::state::Leave;
use crate::untrusted::Inert;
use ratatui::backend::{Backend, CrosstermBackend};
use ratatui::buffer::Buffer;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use ratatui::crossterm::execute;
use ratatui::crossterm::style::ResetColor;
use ratatui::crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use std::ffi::OsString;
use std::io::{IsTerminal as _, Stdout, Write as _};
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, set_hook, take_hook};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// True while the terminal is in raw mode and shows the alternate screen.
static IS_OPEN: AtomicBool = AtomicBool::new(false);

/// Default size for a terminal that does not report one.
const USUAL: Size = Size {
    width: 80,
    height: 24,
};

/// A terminal that shows the alternate screen.
pub(super) struct Screen {
    backend: CrosstermBackend<Stdout>,
    events: Events,
    /// Content of the terminal; `None`: unknown.
    shown: Option<Buffer>,
    pub(super) theme: Theme,
    /// Environment and folder of programs that get the terminal.
    env: Vec<(OsString, OsString)>,
    program: PathBuf,
    dir: PathBuf,
    /// Global options for commands of this program.
    options: Vec<OsString>,
}

/// Why a wait for the terminal ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    Signal(Signal),
    /// The terminal is closed.
    Closed,
}

/// Returns true if a full-screen command can run: standard input and output are a terminal that
/// supports cursor movement.
pub(super) fn is_possible(env: &Env) -> bool {
    let is_capable = env.var("TERM").is_some_and(|term| term != "dumb");
    is_capable && std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

/// Runs work on the alternate screen. Afterwards the terminal is restored.
///
/// # Errors
/// Errors of the work. Incomplete: the terminal cannot be set up, or the work panicked.
pub(super) fn with<T>(context: &Context, work: impl FnOnce(&mut Screen) -> Result<T>) -> Result<T> {
    let mut screen = Screen::new(context)?;
    guarded(restore, || {
        screen.enter()?;
        work(&mut screen)
    })
}

/// Runs work and then restores the terminal, also after a panic: before the panic message is
/// printed, which belongs on the normal screen.
fn guarded<T>(
    restore: impl Fn() + Clone + Send + Sync + 'static,
    work: impl FnOnce() -> Result<T>,
) -> Result<T> {
    let before: Arc<dyn Fn(&PanicHookInfo<'_>) + Send + Sync> = Arc::from(take_hook());
    let (during, give_back) = (Arc::clone(&before), restore.clone());
    set_hook(Box::new(move |info| {
        give_back();
        (*during)(info);
    }));
    let done = catch_unwind(AssertUnwindSafe(work));
    restore();
    set_hook(Box::new(move |info| (*before)(info)));
    done.unwrap_or_else(|_| {
        Err(Error::incomplete(
            "an internal error stopped the program; decisions up to here are stored",
        )
        .hint("report the lines above as a bug"))
    })
}

/// Restores the terminal. Has no effect if it is restored already.
fn restore() {
    if IS_OPEN.swap(false, Ordering::SeqCst) {
        let mut out = std::io::stdout();
        // A closed terminal needs no restoration.
        let _ = execute!(
            out,
            DisableBracketedPaste,
            ResetColor,
            Show,
            LeaveAlternateScreen
        );
        let _ = disable_raw_mode();
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

fn failed(e: &std::io::Error) -> Error {
    Error::incomplete("the terminal cannot be used").caused_by(e)
}

impl Screen {
    fn new(context: &Context) -> Result<Self> {
        let choice = match context.global.color {
            super::ColorChoice::Always => Some(true),
            super::ColorChoice::Never => Some(false),
            super::ColorChoice::Auto => None,
        };
        let color = crate::report::terminal::has_color(&context.env, choice, true);
        ratatui::crossterm::style::force_color_output(color);
        Ok(Self {
            backend: CrosstermBackend::new(std::io::stdout()),
            events: Events::new().map_err(|e| failed(&e))?,
            shown: None,
            theme: Theme {
                color,
                unicode: context.env.is_utf8(),
            },
            env: context
                .env
                .vars()
                .map(|(k, v)| (k.to_owned(), v.to_owned()))
                .collect(),
            program: context.env.program().map_err(|e| failed(&e))?,
            dir: context.env.dir.clone(),
            options: options(context),
        })
    }

    /// Puts the terminal into raw mode and shows the alternate screen.
    fn enter(&mut self) -> Result<()> {
        self.events.listen().map_err(|e| failed(&e))?;
        IS_OPEN.store(true, Ordering::SeqCst);
        let mut out = std::io::stdout();
        let entered = enable_raw_mode().and_then(|()| {
            execute!(
                out,
                EnterAlternateScreen,
                Hide,
                EnableBracketedPaste,
                Clear(ClearType::All)
            )
        });
        self.shown = None;
        entered.map_err(|e| failed(&e))
    }

    /// Returns the size of the terminal.
    pub(super) fn size(&self) -> Size {
        match terminal_size::terminal_size() {
            Some((w, h)) if w.0 > 0 && h.0 > 0 => Size {
                width: w.0,
                height: h.0,
            },
            _ => USUAL,
        }
    }

    /// Discards the known content of the terminal, so that all of it is drawn again.
    pub(super) fn forget(&mut self) {
        self.shown = None;
    }

    /// Shows a buffer. Sends only cells that changed. [`Self::next`] reports a closed terminal.
    pub(super) fn show(&mut self, next: Buffer) {
        let is_same_size = self.shown.as_ref().is_some_and(|b| b.area == next.area);
        let before = match self.shown.take().filter(|_| is_same_size) {
            Some(before) => before,
            None => {
                let _ = execute!(std::io::stdout(), ResetColor, Clear(ClearType::All));
                Buffer::empty(next.area)
            }
        };
        let _ = self.backend.draw(before.diff(&next).into_iter());
        let _ = Backend::flush(&mut self.backend);
        self.shown = Some(next);
    }

    /// Waits for the next event.
    pub(super) fn next(&mut self) -> Event {
        self.events.next()
    }

    /// Stops this process and its group until they are continued, with the terminal restored. Has
    /// no effect if no shell could continue them.
    pub(super) fn suspend(&mut self) -> Result<()> {
        restore();
        events::stop_group();
        self.enter()
    }

    /// Runs a command of this program on the normal screen, and waits for Enter unless it is a
    /// full-screen one that succeeded.
    ///
    /// # Errors
    /// Incomplete: the terminal cannot be used.
    pub(super) fn command(&mut self, words: &[String]) -> Result<std::result::Result<(), Ended>> {
        let mut args = self.options.clone();
        args.extend(words.iter().map(OsString::from));
        let shown: Vec<String> = words.iter().map(|w| crate::shell::quoted(w)).collect();
        let (program, dir) = (self.program.clone(), self.dir.clone());
        restore();
        say(&format!(
            "\n$ {} {}",
            crate::NAME,
            Inert::new(shown.join(" "))
        ));
        let end = self.run(&program, &args, &dir);
        let is_quiet =
            words.first().is_some_and(|w| w == "triage") && matches!(end, Ok(End::Exit(0)));
        let ended = match end {
            Ok(End::Stopped(signal)) => return Ok(Err(Ended::Signal(signal))),
            _ if is_quiet => Ok(()),
            end => {
                say(&format!("\n[{}] press Enter to go on", outcome(end)));
                self.events.wait_for_line()
            }
        };
        if ended.is_ok() {
            self.enter()?;
        }
        Ok(ended)
    }

    /// Runs an editor on the normal screen. Returns how it ended.
    ///
    /// # Errors
    /// Incomplete: the terminal cannot be used.
    pub(super) fn editor(
        &mut self,
        path: &Path,
        args: &[OsString],
        dir: &Path,
    ) -> Result<std::io::Result<End>> {
        restore();
        let end = self.run(path, args, dir);
        self.enter()?;
        Ok(end)
    }

    /// Runs work on the normal screen that prints and can be interrupted. Ctrl-C ends the work, not
    /// the program.
    ///
    /// # Errors
    /// Incomplete: the terminal cannot be used.
    pub(super) fn aside<T>(&mut self, title: &str, work: impl FnOnce() -> T) -> Result<T> {
        restore();
        say(&format!("\n$ {}", Inert::new(title)));
        let done = work();
        self.enter()?;
        Ok(done)
    }

    fn run(&mut self, path: &Path, args: &[OsString], dir: &Path) -> std::io::Result<End> {
        let env = self.env.clone();
        self.events.run(&Foreground {
            path,
            args,
            env: &env,
            dir,
        })
    }
}

/// Returns the global options that commands of this program inherit.
fn options(context: &Context) -> Vec<OsString> {
    let mut out = Vec::new();
    let global = &context.global;
    if let Some(dir) = &global.dir {
        out.extend(["-C".into(), dir.into()]);
    }
    if let Some(file) = &global.config {
        out.extend(["--config".into(), file.into()]);
    }
    match global.color {
        super::ColorChoice::Always => out.push("--color=always".into()),
        super::ColorChoice::Never => out.push("--color=never".into()),
        super::ColorChoice::Auto => {}
    }
    out
}

fn outcome(end: std::io::Result<End>) -> String {
    match end {
        Ok(End::Exit(0)) => "done".to_owned(),
        Ok(End::Exit(code)) => format!("exit code {code}"),
        Ok(End::Signal(signal)) => format!("ended by signal {signal}"),
        Ok(_) => "stopped".to_owned(),
        Err(e) => format!("cannot start: {}", Inert::new(e.to_string())),
    }
}

fn say(line: &str) {
    // A closed terminal leaves no way to report the error.
    let _ = std::io::stdout().write_all(format!("{line}\n").as_bytes());
}

/// Returns the exit code of a full-screen command.
pub(super) fn exit(leave: Leave) -> ExitStatus {
    match leave {
        Leave::Done => ExitStatus::Pass,
        Leave::Interrupted => ExitStatus::Interrupted,
    }
}

impl Ended {
    pub(super) fn exit(self) -> ExitStatus {
        match self {
            Self::Signal(signal) => signal.into(),
            Self::Closed => ExitStatus::Terminated,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn dsp_06_a_panic_restores_the_terminal_before_its_message_is_printed() {
        static RESTORED: AtomicUsize = AtomicUsize::new(0);
        static AT_MESSAGE: AtomicUsize = AtomicUsize::new(0);
        let usual = take_hook();
        set_hook(Box::new(|_| {
            AT_MESSAGE.store(RESTORED.load(Ordering::SeqCst), Ordering::SeqCst);
        }));
        let done: Result<()> = guarded(
            || {
                RESTORED.fetch_add(1, Ordering::SeqCst);
            },
            || panic!("a bug"),
        );
        set_hook(usual);
        assert!(done.unwrap_err().message.contains("internal error"));
        assert!(AT_MESSAGE.load(Ordering::SeqCst) >= 1);
        assert_eq!(guarded(|| (), || Ok(7)).unwrap(), 7);
    }

    #[test]
    fn a_dumb_terminal_is_not_used() {
        for vars in [&[("TERM", "dumb")][..], &[]] {
            assert!(!is_possible(&Env::from_pairs(
                PathBuf::from("/"),
                vars.iter().copied()
            )));
        }
    }
}
