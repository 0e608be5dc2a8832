"""A terminal for a test: a shell in tmux that is given keys, and whose screens are compared with recorded ones.

A recorded screen is a text file. `UPDATE=1` rewrites it. What differs between two runs has a placeholder in it; VARYING
lists all of them. Places of a test's own, such as ports, are given as `places`.
"""
import difflib
import glob
import os
import re
import subprocess
import time

TOOLS, WORK = os.environ["THIRD_PARTY"], os.environ["WORK"]
TMUX = os.path.join(TOOLS, "tmux/usr/bin/tmux")
LIBRARIES = glob.glob(os.path.join(TOOLS, "tmux/usr/lib/*-linux-gnu"))[0]
PATIENCE = 120

# What differs between two runs, and the placeholder for it. In a full-screen program a placeholder has the width of what
# it replaces, so that borders stay in line: dates and IDs of reviews do. Durations and ages occur in printed lines only.
VARYING = [
    # Findings so far, which a review prints only if it takes longer than half a second.
    (r"(?m)^(the change as a whole|[^\s:]+:\d+): (critical|major|minor|suggestion) .*\n", ""),
    (r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "YYYY-MM-DDThh:mm:ssZ"),
    (r"\b\d{4}-\d\d-\d\d\b", "YYYY-MM-DD"),  # also the first part of the ID of a review
    (r"\b\d+(\.\d+)? (ms|s)\b", "N ms"),
    (r"\b(just now|\d+ (second|minute)s? ago)\b", "N minutes ago"),
    # A policy that names ports, a commit, a state of the store. Fingerprints of findings (32 digits) stay.
    (r"\b([0-9a-f]{16}|[0-9a-f]{40}|[0-9a-f]{64})\b", lambda match: "H" * len(match[0])),
]


class Terminal:
    """A shell in tmux. Use it as a context manager: the end of the block ends the shell."""

    def __init__(self, name, folder, environment, size=(120, 40), places=None):
        """Starts a shell in a folder with only this environment. `places` maps further texts that differ to placeholders;
        screens are recorded in the folder `name` beside this file."""
        self.name, self.places = name, places or {}
        self.recorded = os.path.join(os.path.dirname(os.path.abspath(__file__)), name)
        environment = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "TERM": "tmux-256color", "PS1": "$ ", **environment}
        shell = ["env", "-i", *(f"{key}={value}" for key, value in environment.items()), "bash", "--norc"]
        columns, rows = size
        self.tmux("new-session", "-d", "-s", "work", "-x", str(columns), "-y", str(rows), "-c", folder, *shell)
        self.await_text("$")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.tmux("kill-server")

    def tmux(self, *args):
        env = {**os.environ, "LD_LIBRARY_PATH": LIBRARIES, "TMUX_TMPDIR": WORK}
        command = [TMUX, "-L", self.name, "-f", "/dev/null", *args]
        return subprocess.run(command, env=env, check=True, text=True, capture_output=True).stdout

    def press(self, *keys):
        """Presses keys by their names in tmux."""
        self.tmux("send-keys", "-t", "work", *keys)

    def type(self, text):
        """Types a text as it is."""
        self.tmux("send-keys", "-t", "work", "-l", text)

    def run(self, command):
        """Runs a command at the prompt of the shell, on an empty screen."""
        self.type("clear")
        self.press("Enter")
        self.await_that(lambda: self.screen().strip() == "$", "the screen is not empty")
        self.tmux("clear-history", "-t", "work")
        self.type(command)
        self.press("Enter")

    def screen(self, lines_above=0):
        """Returns what the screen shows, and lines that were scrolled off its top. A line that is wider than the screen, and
        goes on in the next row, is one line."""
        return self.tmux("capture-pane", "-p", "-J", "-t", "work", "-S", f"-{lines_above}")

    def await_that(self, is_so, otherwise):
        end = time.monotonic() + PATIENCE
        while not is_so():
            assert time.monotonic() < end, f"{otherwise}:\n{self.screen()}"
            time.sleep(0.05)

    def await_text(self, text):
        """Waits until the screen shows a text, and returns the screen. Line ends count as blanks."""
        self.await_that(lambda: text in " ".join(self.screen().split()), f"no {text!r} on the screen")
        return self.screen()

    def await_end(self):
        """Waits for the prompt of the shell."""
        self.await_that(lambda: self.screen().rstrip().split("\n")[-1] == "$", "the command does not end")

    def gone(self, text):
        """Waits until the screen no longer shows a text."""
        self.await_that(lambda: text not in " ".join(self.screen().split()), f"{text!r} stays on the screen")

    def masked(self, text):
        """Returns a text with placeholders for what differs between two runs."""
        for place, placeholder in self.places.items():
            text = text.replace(place, placeholder)
        for pattern, placeholder in VARYING:
            text = re.sub(pattern, placeholder, text)
        return "\n".join(line.rstrip() for line in text.rstrip().split("\n")) + "\n"

    def same(self, step, lines_above=0):
        """Compares the screen with a recorded one, which it may take a moment to become."""
        path = os.path.join(self.recorded, f"{step}.txt")
        if os.environ.get("UPDATE") == "1":
            os.makedirs(self.recorded, exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(self.masked(self.settled(lines_above)))
            return
        with open(path, encoding="utf-8") as file:
            expected = file.read()
        end = time.monotonic() + 10
        while (shown := self.masked(self.screen(lines_above))) != expected:
            if time.monotonic() > end:
                lines = [text.split("\n") for text in (expected, shown)]
                raise AssertionError("\n".join(difflib.unified_diff(*lines, f"{step}.txt", "the screen", lineterm="")))
            time.sleep(0.05)

    def settled(self, lines_above):
        """Returns the screen once it has not changed for a while."""
        shown, since = None, time.monotonic()
        while time.monotonic() < since + 0.7:
            now = self.screen(lines_above)
            if now != shown:
                shown, since = now, time.monotonic()
            time.sleep(0.05)
        return shown
