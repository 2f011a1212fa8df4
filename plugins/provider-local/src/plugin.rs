//! The plugin, which connects the host's services to the thread that owns the model.

use std::path::PathBuf;

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::schemars::{self, JsonSchema};
use jaato_plugin_sdk::serde::{self, Deserialize};
use jaato_plugin_sdk::types::service::AssetAnswer;

use crate::cancel::CancelFlag;
use crate::catalog;
use crate::local::CompletionSink;
use crate::state::ModelDigest;
use crate::worker::{self, ModelWorker, WeightFiles};

/// The folder of saved states in the plugin's cache folder.
const STATE_FOLDER: &str = "prefix-states";

/// `[plugins.provider-local]`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(crate = "serde", default, deny_unknown_fields)]
#[schemars(crate = "schemars")]
pub struct Config {
    /// Maximum number of tokens in a conversation. Each takes 56 KiB of memory with the default
    /// model, whose own limit is 32768.
    #[schemars(extend("x-jaato-workspace" = true))]
    pub context_tokens: u32,
    /// Whether to keep the computed start of prompts (system text, tools, examples) on disk, at
    /// most 512 MiB.
    #[schemars(extend("x-jaato-workspace" = true))]
    pub save_states: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self { context_tokens: 32_768, save_states: true }
    }
}

/// The plugin's state. The whole host process shares one, because a model is large.
pub struct LocalProviderState {
    worker: ModelWorker,
}

impl State for LocalProviderState {
    async fn create(home: &Home, _saved: Option<Value>) -> Result<Self> {
        let home = home.clone();
        let worker = ModelWorker::start_thread(worker::load_weights, move |text| {
            home.log(LogLevel::Warn, text)
        })?;
        Ok(Self { worker })
    }

    async fn close(&self) {
        if let Some(ended) = self.worker.stop_thread() {
            // An error means that the thread ended without a message, but it has ended.
            let _ = ended.await;
        }
    }

    fn describe(description: &mut Description) {
        description.assets = catalog::weight_assets();
        description.config_schema = serde_json::to_value(schemars::schema_for!(Config)).ok();
    }
}

/// The provider `local`.
pub struct LocalProvider;

impl Provider for LocalProvider {
    type State = LocalProviderState;

    fn spec() -> ProviderSpec {
        catalog::provider_spec()
    }

    async fn complete(
        cx: &Cx<LocalProviderState>,
        mut request: CompletionRequest,
    ) -> Result<Completion> {
        if request.model.is_empty() {
            request.model = catalog::DEFAULT_MODEL.to_owned();
        }
        let weights = find_weights(cx, &request.model).await?;
        let guard = CancelCompletionOnDrop(CancelFlag::default());
        let sink = Box::new(CompletionEmitter(cx.reporter()));
        let answer = cx.state().worker.send_request(weights, request, guard.0.clone(), sink)?;
        answer.await.unwrap_or_else(|_| {
            Err(Error::new(ErrorKind::Unavailable, "the local model was shut down"))
        })
    }

    async fn count_tokens(cx: &Cx<LocalProviderState>, request: CompletionRequest) -> Result<u64> {
        let model = match request.model.as_str() {
            "" => catalog::DEFAULT_MODEL,
            model => model,
        };
        let Some(counter) = cx.state().worker.token_counter(model) else {
            let text =
                format!("`{model}` counts tokens only after its first request has loaded it");
            return Err(Error::new(ErrorKind::Unavailable, text));
        };
        // Counting a long text would block the executor for too long.
        cx.blocking(move |_| counter.count_prompt_tokens(&request)).await?
    }
}

/// Asks the host for the files and settings of a model.
async fn find_weights(cx: &Cx<LocalProviderState>, model: &str) -> Result<WeightFiles> {
    let config: Config = cx.config().await?;
    let asset = cx.asset(model).await?;
    let state_folder = if config.save_states { state_folder(cx).await } else { None };
    Ok(WeightFiles {
        model: model.to_owned(),
        digest: parse_digest(&asset)?,
        path: PathBuf::from(asset.path),
        state_folder,
        context_tokens_max: config.context_tokens.max(1) as usize,
    })
}

/// Returns the folder of saved states. Without it the model only starts more slowly, so an error is
/// only logged.
async fn state_folder(cx: &Cx<LocalProviderState>) -> Option<PathBuf> {
    match cx.cache_folder().await {
        Ok(path) => Some(PathBuf::from(path).join(STATE_FOLDER)),
        Err(error) => {
            cx.log(LogLevel::Warn, format!("cannot save states without a cache folder: {error}"));
            None
        }
    }
}

fn parse_digest(asset: &AssetAnswer) -> Result<ModelDigest> {
    let nibble =
        |hex: &u8| (*hex as char).to_digit(16).and_then(|nibble| u8::try_from(nibble).ok());
    let nibbles: Option<Vec<u8>> = asset.sha256.as_bytes().iter().map(nibble).collect();
    let bytes = nibbles.map(|nibbles| {
        nibbles
            .chunks(2)
            .map(|pair| pair.iter().fold(0, |byte, nibble| byte << 4 | nibble))
            .collect()
    });
    let is_whole = asset.sha256.len() == 2 * size_of::<ModelDigest>();
    bytes.filter(|_| is_whole).and_then(|bytes: Vec<u8>| bytes.try_into().ok()).ok_or_else(|| {
        let text = format!("invalid digest `{}` of `{}`", asset.sha256, asset.path);
        Error::new(ErrorKind::HostBug, text)
    })
}

/// Cancels the computation when the call's future is dropped, which is how the host cancels a call.
struct CancelCompletionOnDrop(CancelFlag);

impl Drop for CancelCompletionOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Sends the model's output to the call's context.
struct CompletionEmitter(Reporter);

impl CompletionSink for CompletionEmitter {
    fn send_text(&mut self, text: &str) -> bool {
        self.0.emit(&Delta::text(text.to_owned()))
    }

    fn send_call(&mut self, call: &ToolCall) {
        // The completion contains the call anyway. This event only shows it sooner.
        self.0.emit(&Delta::ToolCall(call.clone()));
    }

    fn on_first_token(&mut self) {
        // If the answer is a call, no event marks the first token. `cargo xtask bench first-answer`
        // looks for this line.
        self.0.log(LogLevel::Debug, "first token");
    }

    fn show_notice(&mut self, text: String) {
        self.0.notice(text);
    }

    fn report_progress(&mut self, read: usize, of: usize) {
        self.0.emit(&Delta::progress("reading tokens", read as u64, of as u64));
    }

    fn log(&mut self, text: String) {
        self.0.log(LogLevel::Warn, text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_valid_sha256_digest_is_accepted() {
        let asset = |sha256: &str| AssetAnswer::new("p".to_owned(), sha256.to_owned());
        assert_eq!(parse_digest(&asset(&"0f".repeat(32))), Ok([15; 32]));
        for bad in [
            "",
            "0f",
            &"0g".repeat(32),
            &"0".repeat(63),
            &"0f".repeat(33),
            &"+1".repeat(32),
            &"é".repeat(32),
        ] {
            assert!(parse_digest(&asset(bad)).is_err(), "{bad}");
        }
    }

    #[test]
    fn unknown_settings_are_refused() {
        assert!(serde_json::from_str::<Config>("{}").is_ok());
        assert!(serde_json::from_str::<Config>(r#"{"contxt_tokens": 1}"#).is_err());
    }
}
