//! Prints the patches of commits as the library makes them, for `benches/compare-diff`.
//!
//! `patches REPOSITORY < COMMITS`: one full commit id a line; each patch follows `\0commit ID`.

use claude_reviewer::diff::{ObjectId, unified};
use claude_reviewer::env::Env;
use claude_reviewer::git::Repo;
use std::error::Error;
use std::io::{BufRead as _, Write as _};

fn main() -> Result<(), Box<dyn Error>> {
    let dir = std::env::args_os()
        .nth(1)
        .ok_or("usage: patches REPOSITORY < COMMITS")?;
    // Named outright, so that a bare repository may be used.
    let env = Env::from_pairs(std::path::PathBuf::from("."), [("GIT_DIR", dir.clone())]);
    let repo = Repo::open(dir.as_ref(), &env)?;
    let mut reader = repo.reader();
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let mut patch = Vec::new();
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let id = ObjectId::from_hex(&line).ok_or_else(|| format!("no commit id: {line}"))?;
        patch.clear();
        let change = reader.commit(id, None)?;
        for index in 0..change.entries.len() {
            match reader.load(&change, index) {
                Ok(file) => unified::write(&file, &mut patch),
                Err(e) => writeln!(patch, "error: {e}")?,
            }
        }
        writeln!(out, "\0commit {line}")?;
        out.write_all(&patch)?;
    }
    Ok(out.flush()?)
}
