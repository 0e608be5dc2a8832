//! `serve-mcp`: the real binary, spoken to in raw lines.

pub mod client;
mod delegate;
mod fix;
mod lines;
mod menu;
mod reviews;
mod running;
mod sessions;
