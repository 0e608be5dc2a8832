//! Parses, calls, returns the exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    claude_reviewer::cli::main()
}
