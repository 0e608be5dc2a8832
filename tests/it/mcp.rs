//! Tests of `serve-mcp`: the real binary, addressed in raw lines.

mod approval;
pub mod client;
mod delegate;
mod fix;
mod guidance;
mod lines;
mod menu;
mod reviews;
mod running;
mod sessions;
