//! What a server may ask of whoever calls it, while the call goes on.

use futures_util::future::BoxFuture;
use jaato_plugin_sdk::serde_json::Value;
use rmcp::model::{ErrorData, ProgressNotificationParam};

/// Who has called, as the server's questions reach them.
pub trait CallSite: Send + Sync + 'static {
    /// Shows how far the server is.
    fn progress(&self, progress: &ProgressNotificationParam);

    /// Returns the folders that the server may know of; nothing where the caller has none of its
    /// own.
    fn roots(&self) -> BoxFuture<'static, Option<Vec<String>>> {
        Box::pin(std::future::ready(None))
    }

    /// Asks the person: the parameters of `elicitation/create`, an `ElicitResult`. Never answered
    /// without a person.
    fn elicit(&self, params: Value) -> BoxFuture<'static, Value>;

    /// Asks the model: the parameters of `sampling/createMessage`, a `CreateMessageResult`.
    ///
    /// # Errors
    /// Why the model was not asked.
    fn sample(&self, params: Value) -> BoxFuture<'static, Result<Value, ErrorData>>;
}
