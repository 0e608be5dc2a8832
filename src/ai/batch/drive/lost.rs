//! Recorded batches without a known ID: a run ended between the submission and the record of the
//! answer. The provider's list of batches shows whether the batch exists.

use super::{BatchDriver, Flight, FlightPhase};
use crate::ai::ask::outcome::{Cause, Failure};
use crate::ai::backend::{BatchService, LostBatch};
use crate::shell;
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// Age in seconds up to which a batch that is not listed may still be listed later.
const SETTLING: i64 = 60;

impl BatchDriver<'_> {
    /// Determines the ID of a recorded batch. Returns false if the provider has no such batch.
    ///
    /// # Errors
    ///
    /// The provider could not be asked, or several batches match.
    pub(super) async fn resolve(
        &self,
        flight: &Flight,
        service: &BatchService<'_>,
    ) -> Result<bool, Failure> {
        if let Some(failure) = flight.unresolved.borrow().clone() {
            return Err(failure);
        }
        if flight.phase.get() != FlightPhase::Recorded {
            // Of a batch without an ID, only the first request is asked about.
            return Ok(flight.record.borrow().batch_id.is_some());
        }
        if flight.record.borrow().batch_id.is_none() {
            match self.search(flight, service).await {
                Ok(LostBatch::Absent) => {
                    self.forget(flight);
                    return Ok(false);
                }
                Ok(LostBatch::Proven(id)) => self.take_id(flight, id, false),
                Ok(LostBatch::Likely(id)) => self.take_id(flight, id, true),
                Err(failure) => {
                    let failure = self.unknown(flight, failure);
                    *flight.unresolved.borrow_mut() = Some(failure.clone());
                    return Err(failure);
                }
            }
        }
        flight.phase.set(FlightPhase::Working);
        flight.due.set(Instant::now());
        let count = flight.record.borrow().requests.len();
        self.show_event(flight, &format!("continued, {count} requests"));
        Ok(true)
    }

    /// Searches for the batch of a record without an ID. A recent one that is missing is searched
    /// for once more after a pause, because its submission may just have arrived.
    ///
    /// # Errors
    ///
    /// Errors of [`BatchService::find`]; the other records cannot be read.
    pub(super) async fn search(
        &self,
        flight: &Flight,
        service: &BatchService<'_>,
    ) -> Result<LostBatch, Failure> {
        let record = flight.record.borrow().clone();
        if !service.can_have(&record) {
            return Ok(LostBatch::Absent);
        }
        let taken = self.known_ids()?;
        let limits = self.run_limits();
        let found = service.find(&record, &taken, &limits).await?;
        let age = jiff::Timestamp::now().as_second() - record.created;
        if found != LostBatch::Absent || age > SETTLING {
            return Ok(found);
        }
        let pause: Duration = service.pause(0, None, fastrand::f64());
        limits.hold(sleep(pause)).await?;
        service.find(&record, &taken, &limits).await
    }

    /// Records an ID that was found.
    pub(super) fn take_id(&self, flight: &Flight, id: String, is_unproven: bool) {
        let mut record = flight.record.borrow_mut();
        record.batch_id = Some(id);
        record.is_unproven = is_unproven;
        drop(record);
        self.store(flight);
    }

    /// Removes a record whose batch does not exist.
    fn forget(&self, flight: &Flight) {
        flight.phase.set(FlightPhase::Over);
        let count = flight.record.borrow().requests.len();
        self.remark(format!(
            "an earlier run ended while it submitted a batch of {count} requests to {}: the provider does not list \
             it, so they are submitted again",
            flight.backend.borrow()
        ));
        self.remove(flight);
    }

    /// Returns the failure of requests whose batch may or may not exist.
    fn unknown(&self, flight: &Flight, failure: Failure) -> Failure {
        if matches!(failure.cause, Cause::Stopped | Cause::TimedOut) {
            return failure;
        }
        let count = flight.record.borrow().requests.len();
        let record = self.record_path(flight);
        let message = format!(
            "an earlier run ended while it submitted a batch of {count} requests, and it is not known whether the \
             batch exists: {}",
            failure.message
        );
        Failure::new(failure.cause, message).hint(format!(
            "run the same command again later, or submit the requests again, which may pay twice: rm {}",
            shell::quoted(&record)
        ))
    }

    /// Gives up an ID that was taken for the one of a record, because the batch has other requests.
    /// The questions fail, and the next run searches again.
    pub(super) fn disprove(&self, flight: &Flight) {
        let name = flight.name();
        let mut record = flight.record.borrow_mut();
        record.batch_id = None;
        record.is_unproven = false;
        drop(record);
        self.store(flight);
        let message =
            format!("{name} has other requests than the batch that an earlier run submitted");
        let failure = Failure::new(Cause::Refused, message);
        let failure = failure.hint("run the same command again, which searches for the batch");
        flight.fail(&failure, FlightPhase::Lost);
    }
}
