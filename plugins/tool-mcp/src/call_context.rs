//! The requests that a server may make to its caller during a call.

use futures_util::future::BoxFuture;
use jaato_plugin_sdk::serde_json::Value;
use rmcp::model::{ErrorData, ProgressNotificationParam};

/// The caller of a server, to which the server's requests go.
pub trait McpCallContext: Send + Sync + 'static {
    /// Shows the server's progress.
    fn show_progress(&self, progress: &ProgressNotificationParam);

    /// Returns the folders that the server may know, or `None` if the caller has no folders of its
    /// own.
    fn workspace_roots(&self) -> BoxFuture<'static, Option<Vec<String>>> {
        Box::pin(std::future::ready(None))
    }

    /// Asks the user. Takes the parameters of `elicitation/create` and returns an `ElicitResult`.
    /// Never answers without a user.
    fn elicit_from_user(&self, params: Value) -> BoxFuture<'static, Value>;

    /// Asks the model. Takes the parameters of `sampling/createMessage` and returns a
    /// `CreateMessageResult`.
    ///
    /// # Errors
    /// If the model was not asked.
    fn sample_from_model(&self, params: Value) -> BoxFuture<'static, Result<Value, ErrorData>>;
}
