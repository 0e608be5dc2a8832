//! The expressions from which variables got their values.

use super::shape::{ExprId, Sym};
use std::collections::HashMap;

/// The expressions that were assigned to the variables of one function, or of the statements of
/// the file.
#[derive(Clone, Debug, Default)]
pub(super) struct Derivations {
    /// The names from which a variable's value was derived, with the kinds for which a check of
    /// the variable is a check of the name.
    pub(super) names: HashMap<Sym, Vec<(Sym, u32)>>,
    /// The check whose outcome a variable holds.
    pub(super) outcomes: HashMap<Sym, ExprId>,
}
