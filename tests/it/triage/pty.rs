//! A program on a pseudo-terminal, with a screen that supports only drawing sequences.

use crate::support::{Reviewer, until};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use std::fs::File;
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Time that a test waits for a text before it fails.
const PATIENCE: Duration = Duration::from_secs(60);

/// How a program ended.
#[derive(Debug, PartialEq, Eq)]
pub enum How {
    Exit(i32),
    Signal(i32),
}

/// A program and its terminal.
pub struct Pty {
    child: Child,
    /// The user's end; `None` after it was closed.
    controller: Option<File>,
    /// The program's end, kept open so that its modes can be read.
    terminal: Option<File>,
    reader: Option<JoinHandle<()>>,
    /// Ends the reader, which has a copy of the user's end.
    is_closed: Arc<AtomicBool>,
    output: Receiver<Vec<u8>>,
    printed: Vec<u8>,
    screen: Screen,
}

impl Pty {
    /// Starts a program in its own process group, on a terminal of this size.
    pub fn start(reviewer: Reviewer, size: (u16, u16)) -> Self {
        let controller =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&controller).unwrap();
        unlockpt(&controller).unwrap();
        let name = ptsname(&controller, Vec::new())
            .unwrap()
            .into_string()
            .unwrap();
        let controller = File::from(controller);
        let open = || File::options().read(true).write(true).open(&name).unwrap();
        let terminal = open();
        set_size(&terminal, size);
        let mut command = reviewer.command();
        if !command.get_envs().any(|(name, _)| name == "TERM") {
            command.env("TERM", "xterm-256color");
        }
        command.env("LC_ALL", "C.UTF-8").process_group(0);
        command
            .stdin(Stdio::from(open()))
            .stdout(Stdio::from(open()))
            .stderr(Stdio::from(open()));
        let child = command.spawn().unwrap();
        let (sender, output) = channel();
        let is_closed = Arc::new(AtomicBool::new(false));
        let (reader, flag) = (controller.try_clone().unwrap(), Arc::clone(&is_closed));
        fcntl_setfl(&reader, OFlags::NONBLOCK).unwrap();
        let reader = std::thread::spawn(move || forward(reader, &sender, &flag));
        let (controller, terminal, printed) = (Some(controller), Some(terminal), Vec::new());
        Self {
            child,
            controller,
            terminal,
            reader: Some(reader),
            is_closed,
            output,
            printed,
            screen: Screen::new(size),
        }
    }

    /// Types keys. A key after a single Escape would count as part of a sequence: wait for the
    /// effect of the Escape first.
    pub fn send(&mut self, keys: &str) -> &mut Self {
        self.controller
            .as_mut()
            .unwrap()
            .write_all(keys.as_bytes())
            .unwrap();
        self
    }

    /// Waits until the screen shows a text.
    #[track_caller]
    pub fn until(&mut self, text: &str) -> &mut Self {
        let is_shown = self.while_output(|pty| !pty.screen.text().contains(text));
        assert!(
            is_shown,
            "no {text:?} on the screen:\n{}\n{:?}",
            self.screen.text(),
            tail(&self.printed)
        );
        self
    }

    /// Waits until the screen no longer shows a text.
    #[track_caller]
    pub fn until_gone(&mut self, text: &str) -> &mut Self {
        let is_gone = self.while_output(|pty| pty.screen.text().contains(text));
        assert!(
            is_gone,
            "{text:?} stays on the screen:\n{}",
            self.screen.text()
        );
        self
    }

    /// Waits until the alternate screen was entered this number of times, and shows a text.
    #[track_caller]
    pub fn until_entered(&mut self, times: usize, text: &str) -> &mut Self {
        assert!(
            self.while_output(|pty| pty.screen.entered < times),
            "{}",
            self.screen.text()
        );
        self.until(text)
    }

    /// Waits until the alternate screen is left.
    #[track_caller]
    pub fn until_left(&mut self) {
        assert!(
            self.while_output(|pty| pty.screen.is_alternate),
            "{}",
            self.screen.text()
        );
    }

    /// Reads output while a condition is true. Returns false if it still is when no more output
    /// arrives.
    fn while_output(&mut self, condition: impl Fn(&Self) -> bool) -> bool {
        let deadline = Instant::now() + PATIENCE;
        while condition(self) {
            let Ok(bytes) = self
                .output
                .recv_timeout(deadline.saturating_duration_since(Instant::now()))
            else {
                return false;
            };
            self.take(&bytes);
        }
        true
    }

    fn take(&mut self, bytes: &[u8]) {
        self.printed.extend_from_slice(bytes);
        self.screen.take(bytes);
    }

    /// Waits until the program has read all keys.
    pub fn until_read(&mut self) -> &mut Self {
        let terminal = self.terminal.as_ref().unwrap();
        until("the keys are read", || {
            rustix::io::ioctl_fionread(terminal).unwrap() == 0
        });
        self
    }

    pub fn resize(&mut self, size: (u16, u16)) -> &mut Self {
        set_size(self.terminal.as_ref().unwrap(), size);
        self.screen.resize(size);
        self.signal(Signal::WINCH)
    }

    pub fn signal(&mut self, signal: Signal) -> &mut Self {
        kill_process(self.pid(), signal).unwrap();
        self
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap()
    }

    /// Waits until the program is stopped.
    #[track_caller]
    pub fn wait_for_stop(&mut self) {
        let (_, status) = waitpid(Some(self.pid()), WaitOptions::UNTRACED)
            .unwrap()
            .unwrap();
        assert!(status.stopped(), "{status:?}");
    }

    /// Closes the terminal, and waits for the end of the program.
    pub fn hang_up(&mut self) -> How {
        self.terminal = None;
        self.controller = None;
        self.is_closed.store(true, Ordering::SeqCst);
        self.reader.take().unwrap().join().unwrap();
        how(&mut self.child)
    }

    /// Waits for the end of the program, and reads the rest of its output.
    pub fn end(&mut self) -> How {
        let how = how(&mut self.child);
        // The test's own copy of the terminal keeps the reader waiting, so the rest is read until
        // nothing more arrives.
        while let Ok(bytes) = self.output.recv_timeout(Duration::from_millis(300)) {
            self.take(&bytes);
        }
        how
    }

    /// Returns true if the terminal passes each key to the program at once, without echo.
    pub fn is_raw(&self) -> bool {
        let modes = tcgetattr(self.terminal.as_ref().unwrap())
            .unwrap()
            .local_modes;
        !modes.intersects(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG)
    }

    pub fn is_alternate(&self) -> bool {
        self.screen.is_alternate
    }

    pub fn has_cursor(&self) -> bool {
        self.screen.has_cursor
    }

    /// Returns all that the program printed.
    pub fn printed(&self) -> String {
        String::from_utf8_lossy(&self.printed).into_owned()
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        self.is_closed.store(true, Ordering::SeqCst);
        // A failed test leaves no process behind.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Forwards output until the program's end or the user's end is closed.
fn forward(mut reader: File, sender: &Sender<Vec<u8>>, is_closed: &AtomicBool) {
    let mut buffer = vec![0; 64 << 10];
    loop {
        match reader.read(&mut buffer) {
            Ok(n @ 1..) => {
                if sender.send(buffer[..n].to_vec()).is_err() {
                    return;
                }
            }
            Err(e) if e.kind() == ErrorKind::WouldBlock && !is_closed.load(Ordering::SeqCst) => {
                std::thread::park_timeout(Duration::from_millis(2));
            }
            // Linux reports EIO after the last program has closed its side.
            _ => return,
        }
    }
}

fn how(child: &mut Child) -> How {
    let status = child.wait().unwrap();
    status
        .code()
        .map_or_else(|| How::Signal(status.signal().unwrap()), How::Exit)
}

fn set_size(terminal: &File, (width, height): (u16, u16)) {
    let size = Winsize {
        ws_col: width,
        ws_row: height,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(terminal, size).unwrap();
}

fn tail(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(2_000)..]).into_owned()
}

/// The cells of a terminal.
struct Screen {
    cells: Vec<Vec<String>>,
    at: (usize, usize),
    rest: Vec<u8>,
    is_alternate: bool,
    /// Number of times that the alternate screen was entered.
    entered: usize,
    has_cursor: bool,
}

impl Screen {
    fn new((width, height): (u16, u16)) -> Self {
        let cells = vec![vec![" ".to_owned(); width.into()]; height.into()];
        Self {
            cells,
            at: (0, 0),
            rest: Vec::new(),
            is_alternate: false,
            entered: 0,
            has_cursor: true,
        }
    }

    fn resize(&mut self, size: (u16, u16)) {
        self.cells = Self::new(size).cells;
    }

    fn text(&self) -> String {
        self.cells
            .iter()
            .map(|row| row.concat().trim_end().to_owned() + "\n")
            .collect()
    }

    fn take(&mut self, bytes: &[u8]) {
        self.rest.extend_from_slice(bytes);
        let all = std::mem::take(&mut self.rest);
        // A character may be split between two reads.
        let end = match std::str::from_utf8(&all) {
            Ok(_) => all.len(),
            Err(e) => e.valid_up_to(),
        };
        let text = std::str::from_utf8(&all[..end]).unwrap();
        let mut left = text;
        while let Some(c) = left.chars().next() {
            if c != '\u{1b}' {
                self.put(c);
                left = &left[c.len_utf8()..];
                continue;
            }
            let Some(length) = self.sequence(left) else {
                break;
            };
            left = &left[length..];
        }
        self.rest = [left.as_bytes(), &all[end..]].concat();
    }

    fn put(&mut self, c: char) {
        match c {
            '\r' => self.at.0 = 0,
            '\n' if self.at.1 + 1 < self.cells.len() => self.at.1 += 1,
            '\n' => {
                self.cells.remove(0);
                let width = self.cells.first().map_or(0, Vec::len);
                self.cells.push(vec![" ".to_owned(); width]);
            }
            // A combining mark belongs to the character before it.
            '\u{300}'..='\u{36f}' => {
                if let Some(cell) = self
                    .at
                    .0
                    .checked_sub(1)
                    .and_then(|x| self.cells.get_mut(self.at.1)?.get_mut(x))
                {
                    cell.push(c);
                }
            }
            c => {
                assert!(
                    !c.is_control() || c == '\u{8}' || c == '\u{7f}',
                    "the program printed {c:?}"
                );
                let is_wide = matches!(u32::from(c), 0x1100..=0x115f | 0x2e80..=0xa4cf | 0xac00..=0xd7a3 | 0x1f300..=0x1faff);
                let (x, y) = self.at;
                if let Some(cell) = self.cells.get_mut(y).and_then(|row| row.get_mut(x)) {
                    *cell = c.to_string();
                }
                if is_wide
                    && let Some(cell) = self.cells.get_mut(y).and_then(|row| row.get_mut(x + 1))
                {
                    cell.clear();
                }
                self.at.0 += if is_wide { 2 } else { 1 };
            }
        }
    }

    /// Performs a sequence, and returns its length; `None` if it is incomplete. Fails for sequences
    /// that are not for drawing.
    fn sequence(&mut self, text: &str) -> Option<usize> {
        let body = text.strip_prefix("\u{1b}[").or_else(|| {
            assert!(
                text.len() < 2,
                "the program printed {:?}",
                text.get(..20.min(text.len()))
            );
            None
        })?;
        let end = body.find(|c: char| ('@'..='~').contains(&c))?;
        let (parameters, last) = (&body[..end], &body[end..=end]);
        let numbers: Vec<usize> = parameters
            .split(';')
            .map(|n| n.parse().unwrap_or(1))
            .collect();
        match (parameters, last) {
            (_, "m") => {}
            (_, "H") => self.at = (numbers.get(1).copied().unwrap_or(1) - 1, numbers[0] - 1),
            ("2", "J") => self
                .cells
                .iter_mut()
                .flatten()
                .for_each(|cell| *cell = " ".to_owned()),
            ("?1049", "h" | "l") => {
                self.is_alternate = last == "h";
                self.entered += usize::from(self.is_alternate);
                self.cells
                    .iter_mut()
                    .flatten()
                    .for_each(|cell| *cell = " ".to_owned());
                self.at = (0, 0);
            }
            ("?25", "h" | "l") => self.has_cursor = last == "h",
            ("?2004", "h" | "l") => {}
            // Used by progress lines and reports.
            (_, "K" | "A" | "G") => {}
            other => panic!("the program printed the sequence {other:?}"),
        }
        Some(2 + end + 1)
    }
}
