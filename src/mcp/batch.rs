//! JSON-RPC batches: several messages on one line, in protocol versions up to 2025-03-26. Their
//! answers go on one line too.
//!
//! <https://modelcontextprotocol.io/specification/2025-03-26/basic#batching>

use rmcp::model::RequestId;

/// Batches with open requests.
#[derive(Debug, Default)]
pub(super) struct Batches(Vec<Batch>);

#[derive(Debug)]
struct Batch {
    /// Requests that are not answered yet.
    open: Vec<RequestId>,
    /// Answers, each without its line end.
    answers: Vec<Vec<u8>>,
}

impl Batches {
    /// Opens a batch with its requests and with the answers that are already known. Returns the
    /// answer line if no request is open.
    pub(super) fn begin(&mut self, open: Vec<RequestId>, answers: Vec<Vec<u8>>) -> Option<Vec<u8>> {
        self.0.push(Batch { open, answers });
        self.complete()
    }

    /// Adds an answer to its batch. Returns the answer line when the batch is complete.
    ///
    /// # Errors
    ///
    /// Returns the answer itself if it does not belong to a batch.
    pub(super) fn answer(
        &mut self,
        id: &RequestId,
        line: Vec<u8>,
    ) -> Result<Option<Vec<u8>>, Vec<u8>> {
        let Some(batch) = self.0.iter_mut().find(|b| b.open.contains(id)) else {
            return Err(line);
        };
        batch.open.retain(|o| o != id);
        batch.answers.push(line.trim_ascii_end().to_vec());
        Ok(self.complete())
    }

    /// Returns true if a request belongs to a batch.
    pub(super) fn holds(&self, id: &RequestId) -> bool {
        self.0.iter().any(|b| b.open.contains(id))
    }

    /// Removes a request that will not be answered. Returns the answer line if its batch is
    /// complete now.
    pub(super) fn forget(&mut self, id: &RequestId) -> Option<Vec<u8>> {
        self.0.iter_mut().for_each(|b| b.open.retain(|o| o != id));
        self.complete()
    }

    /// Removes a complete batch and returns its answer line; `None` if the batch has no answers.
    fn complete(&mut self) -> Option<Vec<u8>> {
        let at = self.0.iter().position(|b| b.open.is_empty())?;
        let Batch { answers, .. } = self.0.swap_remove(at);
        (!answers.is_empty()).then(|| [b"[", answers.join(&b","[..]).as_slice(), b"]\n"].concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: i64) -> RequestId {
        RequestId::Number(n)
    }

    #[test]
    fn answers_go_together_when_the_last_one_is_there() {
        let mut batches = Batches::default();
        assert_eq!(
            batches.begin(vec![id(1), id(2), id(3)], vec![b"{0}".to_vec()]),
            None
        );
        assert_eq!(
            batches.answer(&id(9), b"x\n".to_vec()),
            Err(b"x\n".to_vec())
        );
        assert_eq!(batches.answer(&id(2), b"{2}\n".to_vec()), Ok(None));
        assert_eq!(batches.forget(&id(3)), None);
        assert_eq!(
            batches.answer(&id(1), b"{1}\n".to_vec()),
            Ok(Some(b"[{0},{2},{1}]\n".to_vec()))
        );
        assert_eq!(batches.begin(Vec::new(), Vec::new()), None);
        assert!(batches.0.is_empty());
    }
}
