//! Divides the files of a tree into requests, in the order of their risk.

use super::{Chunk, Limits, affinity, imports, pack};
use crate::ai::material::Group;
use crate::ai::risk::{FileRisk, RiskBand};
use crate::symbols;
use std::cmp::Reverse;

/// Cuts all files of a tree into chunks, the ones with the riskiest files first. `risks` has the
/// risk of each file of each group.
///
/// Which files share a chunk depends on their names, contents and imports only, and not on what
/// happened to them: files of different bands are never in one chunk, and the others are packed as
/// [`super::plan`] does. So the next commit changes the order of the chunks and not the chunks, and
/// the answers to them remain usable. Of equal chunks, the first in the order of paths comes first.
pub fn by_risk(
    groups: &[Group],
    risks: &[Vec<FileRisk>],
    (symbols, limits): (&symbols::Cache, &Limits),
) -> Vec<Chunk> {
    let limits = limits.at_least_one();
    let mut chunks = Vec::new();
    for (index, group) in groups.iter().enumerate() {
        let risk_of = |file: usize| risk(risks, index, file);
        let clusters = affinity::clusters(&group.files);
        let band_of = |file: usize| risk_of(file).band;
        let clusters = imports::join(&group.files, clusters, (symbols, &band_of));
        for band in RiskBand::ALL {
            let of_band: Vec<Vec<usize>> = clusters
                .iter()
                .map(|cluster| cluster.iter().copied().filter(|f| risk_of(*f).band == band))
                .map(Iterator::collect)
                .filter(|cluster: &Vec<usize>| !cluster.is_empty())
                .collect();
            chunks.extend(pack(index, group, &of_band, &limits));
        }
    }
    chunks.sort_by_cached_key(|chunk| {
        let of_pieces = chunk.pieces.iter();
        let risks = of_pieces.map(|piece| risk(risks, chunk.group, piece.file));
        let first = chunk.pieces.first().map(|piece| piece.file);
        let riskiest = risks.map(|r| (r.band != RiskBand::Last, r.score)).max();
        (Reverse(riskiest), chunk.group, first)
    });
    chunks
}

/// Returns the risk of a file; the lowest one if it is not known.
fn risk(risks: &[Vec<FileRisk>], group: usize, file: usize) -> FileRisk {
    let of_group = risks.get(group);
    of_group
        .and_then(|r| r.get(file).copied())
        .unwrap_or_default()
}
