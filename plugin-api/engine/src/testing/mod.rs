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
    a_blob_of_another_call_is_there, an_empty_blob_is_one, blobs_are_named_by_their_content,
    invalid_media_type_is_refused, large_blobs_come_in_pieces, too_large_blobs_are_refused,
    unfinished_blob_ends_with_its_call, unknown_blob_is_reported,
};
use call_end::{
    a_cancel_drops, kept_contexts_refuse, polls_and_drops_are_elsewhere, streams_are_closed,
    waits_end_in_refusal,
};
use programs::{
    a_call_follows_the_exit_and_not_the_pipes, a_deadline_ends_a_program,
    a_program_gets_what_was_said, all_that_was_printed_is_read, input_is_closed_or_a_pipe,
    leftover_processes_can_be_ended, outputs_and_exits_are_told, programs_are_signalled_and_ended,
    programs_end_with_their_call, programs_of_another_call_are_out_of_reach,
    start_failure_is_reported, too_many_programs_are_refused,
};
use running_call::{
    answers_arrive, bad_emits_are_refused, calls_spawn_nothing, dropping_next_loses_no_bytes,
    emits_come_first, jobs_run, service_panic_is_blamed_on_the_host, services_answer,
    stream_answer_includes_its_head, streams_end,
};
use secret::{
    a_plugin_has_so_many_secrets, invalid_secret_is_refused, secrets_are_kept_and_forgotten,
};
use store::{
    a_full_store_takes_no_more_and_loses_nothing, a_value_is_replaced_where_it_is_the_expected_one,
    any_text_is_a_key, invalid_key_is_refused, person_and_workspace_are_apart,
    too_large_values_are_refused, values_are_kept_and_taken_away,
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
        let answer = answer.map_err(|error| body::frame(&error));
        Self { emitted, answer }
    }
}

/// A check of a host.
pub type HostCheck = fn(&dyn HostUnderTest);

/// All checks, by name.
pub const CHECKS: &[(&str, HostCheck)] = &[
    ("an answer and an error arrive as they are", answers_arrive),
    ("frames emitted before an immediate answer arrive", emits_come_first),
    ("a malformed frame is not emitted, and the call fails", bad_emits_are_refused),
    ("services answer, and unknown ones are refused", services_answer),
    ("a service that panics is the host's fault", service_panic_is_blamed_on_the_host),
    ("a stream gives its pieces and then its end, and nothing after close", streams_end),
    (
        "data known before a stream's first byte comes with the stream",
        stream_answer_includes_its_head,
    ),
    ("dropping a waiting next loses nothing", dropping_next_loses_no_bytes),
    ("a pool job runs in parallel to its call", jobs_run),
    ("a call's context takes no background work", calls_spawn_nothing),
    ("a context that is kept after its call refuses everything", kept_contexts_refuse),
    ("a cancelled call is dropped, not polled again", a_cancel_drops),
    ("polls and drops happen on a thread of the host", polls_and_drops_are_elsewhere),
    ("a wait resolves to a refusal after a cancel", waits_end_in_refusal),
    ("a kept stream is closed with its call", streams_are_closed),
];

/// The checks of the service `process`, by name. They start real programs, so they need a Unix
/// system.
pub const PROCESS_CHECKS: &[(&str, HostCheck)] = &[
    ("outputs and exits are reported", outputs_and_exits_are_told),
    ("a program gets directory, variables and paths, and no secret", a_program_gets_what_was_said),
    ("standard input is closed, or a pipe that the call writes", input_is_closed_or_a_pipe),
    ("a failed start is reported", start_failure_is_reported),
    ("programs are signalled and ended", programs_are_signalled_and_ended),
    ("a deadline ends a program, and its output is kept", a_deadline_ends_a_program),
    ("all output is read, even after the program has ended", all_that_was_printed_is_read),
    ("a call follows the exit, not the pipes", a_call_follows_the_exit_and_not_the_pipes),
    ("processes left by a program can be ended", leftover_processes_can_be_ended),
    ("a program ends with its call or its stream", programs_end_with_their_call),
    ("too many programs are refused", too_many_programs_are_refused),
    ("a program of another call is out of reach", programs_of_another_call_are_out_of_reach),
];

/// The checks of the services `blob.put` and `blob.get`, by name.
pub const BLOB_CHECKS: &[(&str, HostCheck)] = &[
    ("a blob is named by its content, whole or in pieces", blobs_are_named_by_their_content),
    ("an empty blob is valid", an_empty_blob_is_one),
    ("a blob that another call has put is there", a_blob_of_another_call_is_there),
    ("a missing blob is reported", unknown_blob_is_reported),
    ("an invalid media type is refused", invalid_media_type_is_refused),
    ("an unfinished blob ends with its call", unfinished_blob_ends_with_its_call),
    ("a large blob comes in pieces and is read as it was written", large_blobs_come_in_pieces),
    ("a blob that is too large is refused", too_large_blobs_are_refused),
];

/// The checks of the services `store.*`, by name. Each starts with an empty store.
pub const STORE_CHECKS: &[(&str, HostCheck)] = &[
    ("values are stored and deleted", values_are_kept_and_taken_away),
    ("person and workspace are apart", person_and_workspace_are_apart),
    ("any text is a key", any_text_is_a_key),
    ("an invalid key is refused", invalid_key_is_refused),
    (
        "a value is replaced only if it is the expected one",
        a_value_is_replaced_where_it_is_the_expected_one,
    ),
    ("a value that is too large is refused", too_large_values_are_refused),
    ("a full store takes no more and loses nothing", a_full_store_takes_no_more_and_loses_nothing),
];

/// The checks of the services `secret.*`, by name. Each starts without secrets but with the grant.
pub const SECRET_CHECKS: &[(&str, HostCheck)] = &[
    ("secrets are kept and forgotten", secrets_are_kept_and_forgotten),
    ("an invalid secret is refused", invalid_secret_is_refused),
    ("the number of a plugin's secrets is limited", a_plugin_has_so_many_secrets),
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
    struct Still;

    impl PluginRuntime for Still {
        fn sleep(&self, _time: Duration) -> BoxHostFuture<()> {
            Box::pin(std::future::pending())
        }

        fn later(&self, _time: Duration, _work: Box<dyn FnOnce() + Send>) {}
    }

    #[test]
    fn engine_passes_the_host_checks() {
        let executor = Executor::new(THREADS, Arc::new(Still), Arc::new(SilentObserver));
        let services = || Arc::new(TestServices) as Arc<dyn EngineServices>;
        run_checks(CHECKS, &EngineHost::new(executor.clone(), services));
    }
}
