//! Checks of a host: the required behaviour of a context while its call runs, when the call is
//! cancelled, and after its end, and the required behaviour of services.
//!
//! The checks run on the plugin's side of the boundary, but without a plugin: each check provides a
//! call's body and observes the context. [`CHECKS`] are the engine's own tests, which run in this
//! process and through a worker. They need [`TestServices`]. The checks of services run against
//! both the real services and those of the fake host, so that authors' unit tests match the real
//! host.
//!
//! Available with the feature `testing`, for tests of this crate and its dependents.

mod blobs;
mod bodies;
mod body;
mod call_end;
mod host;
mod programs;
mod running_call;
mod secret;
mod store;

use jaato_plugin_api::abi::{Answer, ContextBox};
use jaato_types::Error;

pub use bodies::{BODIES_MANIFEST, BodyPlugin};
pub use host::{EngineHost, SilentObserver, TestServices};

use blobs::{
    blob_of_another_call_is_found, blobs_are_named_by_their_content, empty_blob_is_valid,
    invalid_media_type_is_refused, large_blobs_come_in_pieces, too_large_blobs_are_refused,
    unfinished_blob_ends_with_its_call, unknown_blob_is_reported,
};
use call_end::{
    cancelled_call_is_dropped, cancelled_wait_is_refused, kept_context_refuses_calls,
    kept_stream_is_closed_with_call, polls_and_drops_run_on_host_threads,
};
use programs::{
    a_deadline_ends_a_program, all_output_is_read, call_ends_at_exit_despite_open_pipes,
    input_is_closed_or_a_pipe, leftover_processes_can_be_ended, outputs_and_exits_are_reported,
    program_gets_its_spawn_settings, programs_are_signalled_and_ended,
    programs_end_with_their_call, programs_of_other_calls_are_unreachable,
    start_failure_is_reported, too_many_programs_are_refused,
};
use running_call::{
    answers_and_errors_arrive, call_contexts_cannot_spawn, dropping_next_loses_no_bytes,
    emissions_arrive_before_answer, jobs_run_in_parallel, malformed_emission_is_refused,
    service_panic_is_blamed_on_the_host, services_answer_requests, stream_answer_includes_its_head,
    stream_ends_after_its_pieces,
};
use secret::{invalid_secret_is_refused, secret_count_is_limited, secrets_are_stored_and_deleted};
use store::{
    any_text_is_a_key, full_store_refuses_more_and_keeps_values, invalid_key_is_refused,
    only_expected_value_is_replaced, too_large_values_are_refused,
    user_and_workspace_stores_are_separate, values_are_stored_and_deleted,
};

/// The body that replaces a plugin's call. It is polled and dropped like a plugin's future.
pub type CallBody = Box<dyn FnOnce(ContextBox) -> Answer + Send>;

/// A host under test.
pub trait HostUnderTest {
    /// Starts a call.
    fn start(&self, body: CallBody) -> Box<dyn CallUnderTest>;
}

/// A call on a host under test.
pub trait CallUnderTest {
    /// Cancels the call. Returns after its future was dropped and its context has ended.
    fn cancel(self: Box<Self>);

    /// Waits for the call's end. A host that hangs must fail the test on its own.
    fn wait(self: Box<Self>) -> CallResults;
}

/// The results of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct CallResults {
    /// The frames that were emitted, in order.
    pub emitted: Vec<Vec<u8>>,
    /// The frame of the answer or of the error.
    pub answer: Result<Vec<u8>, Vec<u8>>,
}

impl CallResults {
    /// Creates the results from the host's answer.
    pub fn new(emitted: Vec<Vec<u8>>, answer: Result<Vec<u8>, Error>) -> Self {
        let answer = answer.map_err(|error| body::encode_frame(&error));
        Self { emitted, answer }
    }
}

/// A check of a host.
pub type HostCheck = fn(&dyn HostUnderTest);

/// All checks, by name.
pub const CHECKS: &[(&str, HostCheck)] = &[
    ("an answer and an error arrive as they are", answers_and_errors_arrive),
    ("frames emitted before an immediate answer arrive", emissions_arrive_before_answer),
    ("a malformed frame is not emitted, and the call fails", malformed_emission_is_refused),
    ("services answer, and unknown ones are refused", services_answer_requests),
    ("a service that panics is the host's fault", service_panic_is_blamed_on_the_host),
    (
        "a stream gives its pieces and then its end, and nothing after close",
        stream_ends_after_its_pieces,
    ),
    (
        "data known before a stream's first byte comes with the stream",
        stream_answer_includes_its_head,
    ),
    ("dropping a waiting next loses nothing", dropping_next_loses_no_bytes),
    ("a pool job runs in parallel to its call", jobs_run_in_parallel),
    ("a call's context takes no background work", call_contexts_cannot_spawn),
    ("a context that is kept after its call refuses everything", kept_context_refuses_calls),
    ("a cancelled call is dropped, not polled again", cancelled_call_is_dropped),
    ("polls and drops happen on a thread of the host", polls_and_drops_run_on_host_threads),
    ("a wait resolves to a refusal after a cancel", cancelled_wait_is_refused),
    ("a kept stream is closed with its call", kept_stream_is_closed_with_call),
];

/// The checks of the service `process`, by name. They start real programs, so they need a Unix
/// system.
pub const PROCESS_CHECKS: &[(&str, HostCheck)] = &[
    ("outputs and exits are reported", outputs_and_exits_are_reported),
    (
        "a program gets directory, variables and paths, and no secret",
        program_gets_its_spawn_settings,
    ),
    ("standard input is closed, or a pipe that the call writes", input_is_closed_or_a_pipe),
    ("a failed start is reported", start_failure_is_reported),
    ("programs are signalled and ended", programs_are_signalled_and_ended),
    ("a deadline ends a program, and its output is kept", a_deadline_ends_a_program),
    ("all output is read, even after the program has ended", all_output_is_read),
    ("a call follows the exit, not the pipes", call_ends_at_exit_despite_open_pipes),
    ("processes left by a program can be ended", leftover_processes_can_be_ended),
    ("a program ends with its call or its stream", programs_end_with_their_call),
    ("too many programs are refused", too_many_programs_are_refused),
    ("a program of another call is out of reach", programs_of_other_calls_are_unreachable),
];

/// The checks of the services `blob.put` and `blob.get`, by name.
pub const BLOB_CHECKS: &[(&str, HostCheck)] = &[
    ("a blob is named by its content, whole or in pieces", blobs_are_named_by_their_content),
    ("an empty blob is valid", empty_blob_is_valid),
    ("a blob that another call has put is there", blob_of_another_call_is_found),
    ("a missing blob is reported", unknown_blob_is_reported),
    ("an invalid media type is refused", invalid_media_type_is_refused),
    ("an unfinished blob ends with its call", unfinished_blob_ends_with_its_call),
    ("a large blob comes in pieces and is read as it was written", large_blobs_come_in_pieces),
    ("a blob that is too large is refused", too_large_blobs_are_refused),
];

/// The checks of the services `store.*`, by name. Each starts with an empty store.
pub const STORE_CHECKS: &[(&str, HostCheck)] = &[
    ("values are stored and deleted", values_are_stored_and_deleted),
    ("person and workspace are apart", user_and_workspace_stores_are_separate),
    ("any text is a key", any_text_is_a_key),
    ("an invalid key is refused", invalid_key_is_refused),
    ("a value is replaced only if it is the expected one", only_expected_value_is_replaced),
    ("a value that is too large is refused", too_large_values_are_refused),
    ("a full store takes no more and loses nothing", full_store_refuses_more_and_keeps_values),
];

/// The checks of the services `secret.*`, by name. Each starts without secrets but with the grant.
pub const SECRET_CHECKS: &[(&str, HostCheck)] = &[
    ("secrets are kept and forgotten", secrets_are_stored_and_deleted),
    ("an invalid secret is refused", invalid_secret_is_refused),
    ("the number of a plugin's secrets is limited", secret_count_is_limited),
];

/// Runs checks. Panics at the first failure, after printing the check's name.
pub fn run_checks(checks: &[(&str, HostCheck)], host: &dyn HostUnderTest) {
    for (name, check) in checks {
        eprintln!("check of a host: {name}");
        check(host);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::{BoxHostFuture, EngineServices, Executor, PluginRuntime, THREADS};

    /// Time in which no sleep ever ends.
    struct StoppedTime;

    impl PluginRuntime for StoppedTime {
        fn sleep(&self, _time: Duration) -> BoxHostFuture<()> {
            Box::pin(std::future::pending())
        }

        fn run_later(&self, _time: Duration, _work: Box<dyn FnOnce() + Send>) {}
    }

    #[test]
    fn engine_passes_the_host_checks() {
        let executor = Executor::new(THREADS, Arc::new(StoppedTime), Arc::new(SilentObserver));
        let services = || Arc::new(TestServices) as Arc<dyn EngineServices>;
        run_checks(CHECKS, &EngineHost::new(executor.clone(), services));
    }
}
