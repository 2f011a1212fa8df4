//! The object environment: objects that tools add to the model's context across a session, and
//! values that they keep hidden from it. Sessions of the host use it, and the fake host of the
//! testkit. It is pure data with value semantics: arguments are moved in, results are copies.
//!
//! Items are grouped by tool. An item has objects, and metadata that distinguishes it from the
//! tool's other items:
//!
//! ```
//! use jaato_objects::{ObjectsAddition, ItemFilter, ObjectEnvironment};
//! use serde_json::{Map, json};
//!
//! fn main() -> jaato_types::Result<()> {
//!     let mut environment = ObjectEnvironment::default();
//!     let metadata = Map::from_iter([("collection_name".to_owned(), json!("Communications"))]);
//!     let message = Map::from_iter([("author".to_owned(), json!("John"))]);
//!     environment.add("query", ObjectsAddition::new(vec![message], metadata))?;
//!
//!     let filter = ItemFilter::key("collection_name", json!("Communications"));
//!     let found = environment.get_objects("query", Some(&filter)).unwrap_or_default();
//!     assert_eq!(found[0]["author"], "John");
//!     assert_eq!(found[0]["_REF_ID"], "query_1");
//!     Ok(())
//! }
//! ```

mod changes;
mod filter;
mod hidden;
mod item;
mod json;
mod render;
pub mod service;
mod shelf;
mod store;

pub use filter::ItemFilter;
pub use hidden::{HiddenValue, HiddenValues};
pub use jaato_types::objects::{EnvironmentItem, Object, REFERENCE_KEY};
pub use render::{ObjectSelection, estimate_tokens};
pub use store::{ENVIRONMENT_BYTES_MAX, ObjectEnvironment, ObjectsAddition};
