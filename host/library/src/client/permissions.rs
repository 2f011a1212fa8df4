//! The permission plugin: answers prompts for the sessions of a client.

use std::sync::Arc;

use crate::permission::CallbackAsker;
use crate::ports::UserAsker;
use crate::types::permission_prompt::{PermissionAnswer, PermissionPrompt};

/// Answers permission prompts. Without one, only tools run that need no prompt.
#[derive(Clone)]
pub struct PermissionPlugin(pub(crate) Arc<dyn UserAsker>);

impl PermissionPlugin {
    /// Asks a function.
    pub fn new(
        answer: impl Fn(PermissionPrompt) -> PermissionAnswer + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(CallbackAsker(move |prompt| std::future::ready(Ok(answer(prompt))))))
    }

    /// Asks in the program's own way.
    pub fn with_asker(asker: Arc<dyn UserAsker>) -> Self {
        Self(asker)
    }
}
