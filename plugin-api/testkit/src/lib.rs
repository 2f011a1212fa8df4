//! A fake host and conformance suites for plugins, for `[dev-dependencies]`.
//!
//! ```
//! use jaato_plugin_sdk::prelude::*;
//! use jaato_plugin_testkit::FakeHost;
//!
//! /// Counts the words in a text.
//! #[derive(ToolInput)]
//! #[tool(read_only, example("how many words has 'a b c'?", text = "a b c"))]
//! struct WordCount {
//!     /// Text to count.
//!     text: String,
//! }
//!
//! impl Tool for WordCount {
//!     type State = ();
//!
//!     async fn call(self, _cx: &Cx) -> Result<Output> {
//!         Ok(Output::json(json!({ "words": self.text.split_whitespace().count() })))
//!     }
//! }
//!
//! tool!(WordCount);
//! export_plugin! { state: (), tools }
//!
//! fn main() -> Result<()> {
//!     let host = FakeHost::new(__jaato::MODULE);
//!     let output = host.call("word_count", json!({ "text": "a b c" }))?;
//!     assert_eq!(output.content["words"], 3);
//!     Ok(())
//! }
//! ```
//!
//! - [`FakeHost`]: runs a plugin, linked into its test, on a host in memory;
//! - [`conformance!`]: the requirements for all plugins, as tests;

pub mod conformance;
mod fake;
mod schema;
mod skip;

pub use fake::{
    EXECUTOR_THREAD, FakeClockMode, FakeHost, FakeHttpAnswer, FakeHttpRequest, FakeInstance,
    FakeRunningCall, FakeServiceReply, FakeStream, FinishedCall, LiveObjectCounts, LogLine,
    PIECE_BYTES_MAX, POOL_THREAD, PluginUnderTest, ServiceRequest,
};
pub use jaato_objects::{HiddenValue, HiddenValues, ObjectEnvironment};
pub use jaato_plugin_sdk::__private::Module;
pub use jaato_types::PluginKind;
pub use schema::check_arguments;
pub use skip::skip;
