//! The bounds of a session: a named constant each, and a field with its name for configuration.

/// Most requests to the provider within one turn: an endless tool loop ends here.
pub const STEPS_MAX: u32 = 50;
/// Most calls of one answer that are run; the rest is answered with an error, so that one answer
/// cannot start thousands of processes.
pub const CALLS_PER_STEP_MAX: usize = 32;
/// Most calls that run side by side.
pub const PARALLEL_CALLS_MAX: usize = 8;
/// Longest output of a call that reaches the model, as JSON: one careless `cat` must not push the
/// task out of the context window.
pub const OUTPUT_BYTES_MAX: usize = 16 * 1024;
/// Longest answer of a model. A model that never stops would fill the memory.
pub const ANSWER_BYTES_MAX: usize = 1024 * 1024;
/// Most empty answers within one turn before it fails. A second try costs little; more is a loop.
pub const EMPTY_ANSWERS_MAX: u32 = 2;
/// Longest silence of a provider: no byte, no progress. A cold model on a slow disk needs its time.
pub const PROVIDER_IDLE_MS: u64 = 120_000;
/// Longest time in which a provider may keep a request open with signs of life alone: comments,
/// empty pieces. DeepSeek documents ten minutes in its queue; a server that only pings must end all
/// the same.
pub const PROVIDER_KEEP_ALIVE_MS: u64 = 900_000;
/// Longest run of a tool call.
pub const CALL_DEADLINE_MS: u64 = 600_000;
/// How long a call may keep the turn waiting before it goes on as a task, where its tool may.
pub const AUTO_BACKGROUND_THRESHOLD_MS: u64 = 10_000;
/// Most tasks that run at once; a call beyond them keeps the turn waiting.
pub const TASKS_MAX: usize = 8;
/// Most tokens of the objects that the model is shown at a time, roughly.
pub const OBJECTS_TOKENS_MAX: usize = 2_000;
/// Most attempts for one request, the first included.
pub const ATTEMPTS_MAX: u32 = 5;
/// Longest wait before the second attempt; doubles with each further one.
pub const RETRY_BASE_MS: u64 = 1_000;
/// Longest wait that the host chooses for itself.
pub const RETRY_WAIT_MS_MAX: u64 = 30_000;
/// Longest wait that a provider may ask for; a longer one fails the request at once and says so.
pub const RETRY_AFTER_MS_MAX: u64 = 120_000;

/// The bounds of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// See [`STEPS_MAX`].
    pub steps_max: u32,
    /// See [`CALLS_PER_STEP_MAX`].
    pub calls_per_step_max: usize,
    /// See [`PARALLEL_CALLS_MAX`].
    pub parallel_calls_max: usize,
    /// See [`OUTPUT_BYTES_MAX`].
    pub output_bytes_max: usize,
    /// See [`ANSWER_BYTES_MAX`].
    pub answer_bytes_max: usize,
    /// See [`EMPTY_ANSWERS_MAX`].
    pub empty_answers_max: u32,
    /// See [`PROVIDER_IDLE_MS`].
    pub provider_idle_ms: u64,
    /// See [`PROVIDER_KEEP_ALIVE_MS`].
    pub provider_keep_alive_ms: u64,
    /// See [`CALL_DEADLINE_MS`].
    pub call_deadline_ms: u64,
    /// See [`AUTO_BACKGROUND_THRESHOLD_MS`]; 0 means never.
    pub auto_background_threshold_ms: u64,
    /// See [`TASKS_MAX`].
    pub tasks_max: usize,
    /// See [`OBJECTS_TOKENS_MAX`].
    pub objects_tokens_max: usize,
    /// See [`ATTEMPTS_MAX`].
    pub attempts_max: u32,
    /// See [`RETRY_BASE_MS`].
    pub retry_base_ms: u64,
    /// See [`RETRY_WAIT_MS_MAX`].
    pub retry_wait_ms_max: u64,
    /// See [`RETRY_AFTER_MS_MAX`].
    pub retry_after_ms_max: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            steps_max: STEPS_MAX,
            calls_per_step_max: CALLS_PER_STEP_MAX,
            parallel_calls_max: PARALLEL_CALLS_MAX,
            output_bytes_max: OUTPUT_BYTES_MAX,
            answer_bytes_max: ANSWER_BYTES_MAX,
            empty_answers_max: EMPTY_ANSWERS_MAX,
            provider_idle_ms: PROVIDER_IDLE_MS,
            provider_keep_alive_ms: PROVIDER_KEEP_ALIVE_MS,
            call_deadline_ms: CALL_DEADLINE_MS,
            auto_background_threshold_ms: AUTO_BACKGROUND_THRESHOLD_MS,
            tasks_max: TASKS_MAX,
            objects_tokens_max: OBJECTS_TOKENS_MAX,
            attempts_max: ATTEMPTS_MAX,
            retry_base_ms: RETRY_BASE_MS,
            retry_wait_ms_max: RETRY_WAIT_MS_MAX,
            retry_after_ms_max: RETRY_AFTER_MS_MAX,
        }
    }
}
