//! Strict fakes of vendors' servers: they take a plugin's requests and return the vendor's answers.
//!
//! Pure: no network, no clock. A test on a [`FakeHost`](jaato_plugin_testkit::FakeHost) or a
//! loopback server passes requests to them. The fakes refuse what the vendor refuses, with the same
//! messages, and answer all other requests from a script.

pub mod anthropic;
mod exchange;
pub mod github;
pub mod google;
pub mod ollama;
pub mod openai;
mod talk;

pub use exchange::{VendorAnswer, VendorRequest};
pub use talk::{
    FakeVendor, ModelConversation, joined_deltas, sample_tool_results, tool_spec, unusual_history,
};

/// Lists the names of all properties that a schema describes, at any depth.
fn property_names(schema: &serde_json::Value) -> Box<dyn Iterator<Item = &str> + '_> {
    use serde_json::Value;
    let inner: Box<dyn Iterator<Item = &Value>> = match schema {
        Value::Object(map) => Box::new(map.values()),
        Value::Array(list) => Box::new(list.iter()),
        _ => return Box::new(std::iter::empty()),
    };
    let own = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    Box::new(own.map(|(name, _)| name.as_str()).chain(inner.flat_map(property_names)))
}
