//! Tools that are functions of the program.

use std::any::Any;
use std::fmt::Display;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use jaato_plugin_sdk::schemars::{JsonSchema, schema_for};
use jaato_runtime::ProgramTool;
use jaato_runtime::session_loop::{CallScope, SharedObjects};
use jaato_runtime::types::{Error, ErrorKind, Output, Result, SessionId, ToolCall, ToolSpec};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

type ToolFunction = dyn Fn(Value, ToolContext) -> BoxFuture<'static, Result<Output>> + Send + Sync;

/// A tool that a function of the program runs, on the program's own tokio runtime.
#[derive(Clone)]
pub struct Tool {
    spec: ToolSpec,
    function: Arc<ToolFunction>,
}

/// The parts of a call that a tool's function may use.
#[derive(Clone)]
pub struct ToolContext(CallScope);

impl Tool {
    /// Creates a tool from a JSON Schema of its arguments and a function. A result that is not an
    /// object reaches the model under `result`, and an error as its text. If the error is an
    /// [`Error`], its kind stays.
    pub fn new<F, A, T, E>(name: &str, description: &str, schema: Value, function: F) -> Self
    where
        F: Fn(Value, ToolContext) -> A + Send + Sync + 'static,
        A: Future<Output = Result<T, E>> + Send + 'static,
        T: Serialize,
        E: Display + 'static,
    {
        let spec = ToolSpec {
            name: name.into(),
            description: description.to_owned(),
            parameters: schema,
            ..ToolSpec::default()
        };
        let function = move |arguments, context| -> BoxFuture<'static, Result<Output>> {
            let running = function(arguments, context);
            Box::pin(async move {
                let value = running.await.map_err(|error| to_error(&error))?;
                let value = serde_json::to_value(value);
                value.map(Output::json).map_err(|error| Error::failed(error.to_string()))
            })
        };
        Self { spec, function: Arc::new(function) }
    }

    /// Like [`Tool::new`], with a type for the arguments, whose schema the model gets.
    ///
    /// ```
    /// use jaato_library::{Tool, schemars};
    /// use serde::Deserialize;
    ///
    /// #[derive(Deserialize, schemars::JsonSchema)]
    /// #[schemars(crate = "jaato_library::schemars")]
    /// struct Place {
    ///     /// The city's name.
    ///     city: String,
    /// }
    ///
    /// let weather = Tool::typed("weather", "Tells the weather.", |place: Place, _cx| async move {
    ///     Ok::<_, String>(format!("it rains in {}", place.city))
    /// });
    /// assert_eq!(weather.spec().parameters["properties"]["city"]["type"], "string");
    /// ```
    pub fn typed<I, F, A, T, E>(name: &str, description: &str, function: F) -> Self
    where
        I: DeserializeOwned + JsonSchema,
        F: Fn(I, ToolContext) -> A + Send + Sync + 'static,
        A: Future<Output = Result<T, E>> + Send + 'static,
        T: Serialize,
        E: Display + 'static,
    {
        let schema = schema_for!(I).to_value();
        let function = Arc::new(function);
        Self::new(name, description, schema, move |arguments, context| {
            let function = Arc::clone(&function);
            async move {
                let input = serde_json::from_value(arguments)
                    .map_err(|error| Error::new(ErrorKind::InvalidArguments, error.to_string()))?;
                function(input, context).await.map_err(|error| to_error(&error))
            }
        })
    }

    /// Runs without a permission prompt.
    #[must_use]
    pub fn allowed(mut self) -> Self {
        self.spec.auto_approval = true;
        self
    }

    /// Declares that the tool changes nothing. Its calls may then run at the same time as others.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.spec.annotations.read_only = true;
        self
    }

    /// Returns the spec that the model gets.
    pub fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    /// Changes the spec, for example its category.
    #[must_use]
    pub fn with_spec(mut self, change: impl FnOnce(&mut ToolSpec)) -> Self {
        change(&mut self.spec);
        self
    }
}

impl ProgramTool for Tool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call(&self, call: ToolCall, scope: CallScope) -> BoxFuture<'static, Result<Output>> {
        (self.function)(call.arguments, ToolContext(scope))
    }
}

impl ToolContext {
    /// Returns the session's id.
    pub fn session(&self) -> &SessionId {
        &self.0.session
    }

    /// Shows a piece of output while the call runs. The model does not get it.
    pub fn print(&self, text: impl Into<String>) {
        // A call that is over shows nothing, and its future is dropped anyway.
        let _ = self.0.output.write(text);
    }

    /// Shows a notice of one line.
    pub fn notice(&self, text: impl Into<String>) {
        let _ = self.0.output.emit_notice(text);
    }

    /// Shows the progress of a long step.
    pub fn progress(&self, label: &str, done: u64, total: u64) {
        let _ = self.0.output.emit_progress(label, done, total);
    }

    /// Returns the objects that tools have shown to the session's model, and the hidden ones.
    pub fn objects(&self) -> &SharedObjects {
        &self.0.objects
    }

    /// Returns true if the call was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.cancel.is_cancelled()
    }

    /// Waits until the call is cancelled. Its future is dropped then, so that only work outside of
    /// it needs to know.
    pub async fn cancelled(&self) {
        self.0.cancel.cancelled().await;
    }
}

fn to_error<E: Display + 'static>(error: &E) -> Error {
    let ours = (error as &dyn Any).downcast_ref::<Error>();
    ours.cloned().unwrap_or_else(|| Error::failed(error.to_string()))
}
