//! Reviews a git change and gates it. `ARCHITECTURE.md` has the map.
//!
//! The library exists for the binary, the benchmarks and the fuzz targets; nothing here is a public
//! API yet.

pub mod ai;
pub mod background;
pub mod bounded;
pub mod ci;
pub mod cli;
pub mod context;
pub mod counsel;
pub mod diff;
pub mod disposition;
pub mod doctor;
pub mod env;
pub mod error;
pub mod finding;
pub mod forge;
pub mod git;
pub mod hex;
pub mod history;
pub mod hooks;
pub mod http;
pub mod judge;
pub mod log;
pub mod mcp;
pub mod policy;
pub mod process;
pub mod progress;
pub mod receipt;
pub mod report;
pub mod request;
pub mod review;
pub mod rounds;
pub mod rules;
pub mod sandbox;
pub mod shell;
mod state_folder;
pub mod stop;
pub mod symbols;
pub mod text;
pub mod triage;
pub mod untrusted;
pub mod verdict;
pub mod wire;

/// The name of the command and of the tool in reports. The package has another name.
pub const NAME: &str = "claude-reviewer";
