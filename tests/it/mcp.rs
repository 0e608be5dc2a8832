//! Tests of `serve-mcp`: the real binary, addressed in raw lines.

pub mod client;
mod delegate;
mod fix;
mod lines;
mod menu;
mod reviews;
mod running;
mod sessions;
