//! Counts the tokens of a text or a request for a model.

use jaato_types::Result;
use jaato_types::count::{TokenCountAnswer, TokenCountInput};

use crate::context::Reporter;

impl Reporter {
    jaato_types::count_operations!(methods []);

    /// Counts the tokens of a text for the session's model. If the model's provider cannot count,
    /// the answer is an estimate and reports it.
    ///
    /// ```
    /// # use jaato_plugin_sdk::prelude::*;
    /// # async fn fits(cx: &Cx, text: &str) -> Result<bool> {
    /// Ok(cx.count_text(text).await?.tokens <= 1000)
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Reporter::service`].
    pub async fn count_text(&self, text: impl Into<String> + Send) -> Result<TokenCountAnswer> {
        self.count(&TokenCountInput { text: Some(text.into()), ..TokenCountInput::default() }).await
    }
}
