//! The frames that a call emits, until its session has read them. Closed before the call's answer
//! is sent.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use jaato_types::Error;

use crate::call::CallResultSink;

/// The maximum number of emitted bytes that wait for the session. This is the channel's only limit:
/// it never drops a delta, and stops a plugin that is this far ahead of its reader with an error.
pub const EMITTED_BYTES_MAX: usize = 32 * 1024 * 1024;

/// A queue of frames with one reader, or a connection to an outlet.
pub(super) struct Emissions {
    outlet: Option<Arc<dyn CallResultSink>>,
    queue: VecDeque<Vec<u8>>,
    bytes: usize,
    /// Whether the reader has a frame that it may not have processed yet.
    in_hand: bool,
    open: bool,
    reader: Option<Waker>,
    fault: Option<Error>,
}

/// The result of pushing a frame.
pub(super) enum EmissionOutcome {
    /// The frame was taken. If a reader waits, it must be woken.
    Yes(Option<Waker>),
    /// Nothing reads the frame: the call has ended, the context is an instance's, or an earlier
    /// frame did not fit.
    Closed,
    /// The frame does not fit into the queue.
    Full,
}

impl Emissions {
    pub(super) fn new(open: bool) -> Self {
        Self {
            outlet: None,
            queue: VecDeque::new(),
            bytes: 0,
            in_hand: false,
            open,
            reader: None,
            fault: None,
        }
    }

    /// Sends further frames to an outlet instead of the queue.
    pub(super) fn set_outlet(&mut self, outlet: Arc<dyn CallResultSink>) {
        self.outlet = Some(outlet);
    }

    /// Takes a frame. Copies it, because the buffer belongs to a plugin.
    pub(super) fn push(&mut self, frame: &[u8]) -> EmissionOutcome {
        if !self.open || self.fault.is_some() {
            return EmissionOutcome::Closed;
        }
        if let Some(outlet) = &self.outlet {
            return if outlet.on_emission(frame) {
                EmissionOutcome::Yes(None)
            } else {
                EmissionOutcome::Full
            };
        }
        if self.bytes + frame.len() > EMITTED_BYTES_MAX {
            return EmissionOutcome::Full;
        }
        self.bytes += frame.len();
        self.queue.push_back(frame.to_vec());
        EmissionOutcome::Yes(self.reader.take())
    }

    /// Records the first fault. No frame is taken after it.
    pub(super) fn record_fault(&mut self, fault: Error) {
        if self.open {
            self.fault.get_or_insert(fault);
        }
    }

    pub(super) fn take_fault(&mut self) -> Option<Error> {
        self.fault.take()
    }

    /// Closes the queue. Returns the reader to wake, and the outlet, which must be dropped without
    /// a lock.
    pub(super) fn close(&mut self) -> (Option<Waker>, Option<Arc<dyn CallResultSink>>) {
        self.open = false;
        (self.reader.take(), self.outlet.take())
    }

    /// Returns true if the reader has processed everything that was emitted so far.
    pub(super) fn is_processed(&self) -> bool {
        let has_reader = self.open && self.outlet.is_none();
        !has_reader || (self.queue.is_empty() && !self.in_hand)
    }

    /// Returns the next frame. A further call means that the reader has processed the previous
    /// frame.
    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Vec<u8>>> {
        self.in_hand = false;
        if let Some(frame) = self.queue.pop_front() {
            self.bytes -= frame.len();
            self.in_hand = true;
            return Poll::Ready(Some(frame));
        }
        if !self.open {
            return Poll::Ready(None);
        }
        self.reader = Some(cx.waker().clone());
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn emissions_with_bytes(bytes: usize) -> Emissions {
        let mut emissions = Emissions::new(true);
        assert!(matches!(emissions.push(&vec![0; bytes]), EmissionOutcome::Yes(None)));
        emissions
    }

    #[test]
    fn emitted_frames_fit_up_to_the_byte_limit() {
        let mut emissions = emissions_with_bytes(EMITTED_BYTES_MAX - 4);
        assert!(matches!(emissions.push(&[0; 5]), EmissionOutcome::Full));
        assert!(matches!(emissions.push(&[0; 4]), EmissionOutcome::Yes(None)));
    }

    #[test]
    fn reading_emissions_frees_space() {
        let mut emissions = emissions_with_bytes(EMITTED_BYTES_MAX);
        let mut cx = Context::from_waker(Waker::noop());
        assert!(matches!(emissions.poll_next(&mut cx), Poll::Ready(Some(_))));
        assert!(matches!(emissions.push(&vec![0; EMITTED_BYTES_MAX]), EmissionOutcome::Yes(None)));
    }

    #[test]
    fn closed_emissions_return_queued_frames_and_accept_no_more() {
        let mut emissions = emissions_with_bytes(7);
        emissions.close();
        assert!(matches!(emissions.push(&[0; 4]), EmissionOutcome::Closed));
        let mut cx = Context::from_waker(Waker::noop());
        assert_eq!(emissions.poll_next(&mut cx), Poll::Ready(Some(vec![0; 7])));
        assert_eq!(emissions.poll_next(&mut cx), Poll::Ready(None));
    }

    #[test]
    fn frame_counts_as_processed_when_the_reader_polls_again() {
        let mut emissions = Emissions::new(true);
        assert!(emissions.is_processed());
        emissions.push(&[0; 4]);
        assert!(!emissions.is_processed());
        let mut cx = Context::from_waker(Waker::noop());
        assert!(emissions.poll_next(&mut cx).is_ready());
        assert!(!emissions.is_processed());
        assert!(emissions.poll_next(&mut cx).is_pending());
        assert!(emissions.is_processed());
        emissions.push(&[0; 4]);
        emissions.close();
        assert!(emissions.is_processed(), "it is over");
    }

    #[test]
    fn the_first_fault_stays_and_stops_the_rest() {
        let mut emissions = Emissions::new(true);
        emissions.record_fault(Error::failed("first"));
        emissions.record_fault(Error::failed("second"));
        assert!(matches!(emissions.push(&[]), EmissionOutcome::Closed));
        assert_eq!(emissions.take_fault(), Some(Error::failed("first")));
    }
}
