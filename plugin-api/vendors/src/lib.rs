//! Strict fakes of vendors' servers: what a plugin sends goes in, what the vendor would answer
//! comes out.
//!
//! Pure: no network, no clock. A test on a [`FakeHost`](jaato_plugin_testkit::FakeHost) or a server
//! on loopback passes requests on. What a vendor refuses is refused, in its words; what it accepts
//! is answered by a script.

pub mod anthropic;
mod exchange;
pub mod github;
pub mod google;
pub mod ollama;
pub mod openai;
mod talk;

pub use exchange::{Answered, Asked};
pub use talk::{Talk, Vendor, look, results, said, strange_history};

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
