//! Reads the progress of a pull: one JSON object per line. Pure.

use std::collections::BTreeMap;

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::serde_json;
use jaato_plugin_sdk_provider::failure;

use crate::refusal;

/// The longest model name: four parts with the server's own limits.
const NAME_BYTES_MAX: usize = 350 + 3 * 80;

/// The maximum number of files in a model. Models have a dozen, so a server that sends more than
/// this may never stop.
const FILES_MAX: usize = 4096;

/// The hint for a pull that was interrupted.
pub(crate) const AGAIN: &str = "pull it again: the server continues where it stopped";

/// The server's status for a completed pull.
const SUCCESS: &str = "success";

/// A pull in progress.
#[derive(Debug)]
pub struct ModelPull {
    url: String,
    model: String,
    /// Completed and total bytes, by the digest of each file.
    files: BTreeMap<String, (u64, u64)>,
    status: String,
    is_done: bool,
}

/// Checks that a name is valid for the server: `qwen3:8b`, `hf.co/owner/model:Q4_K_M`.
///
/// # Errors
/// `invalid_arguments` if it is not.
pub fn check_model_name(model: &str) -> Result<()> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_.-:".contains(c);
    let is_part = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
            && part.chars().all(is_plain)
    };
    let is_one = model.len() <= NAME_BYTES_MAX
        && !model.ends_with([':', '/'])
        && model.split('/').count() <= 4
        && model.split('/').all(is_part);
    if is_one {
        return Ok(());
    }
    let shown: String = model.chars().filter(|c| !c.is_control()).take(100).collect();
    Err(Error::new(ErrorKind::InvalidArguments, format!("`{shown}` is not a valid model name"))
        .with_hint("a name looks like `qwen3:8b` or `hf.co/owner/model:Q4_K_M`"))
}

impl ModelPull {
    /// Creates the pull of a model with a valid name.
    pub fn new(url: &str, model: &str) -> Self {
        Self {
            url: url.to_owned(),
            model: model.to_owned(),
            files: BTreeMap::new(),
            status: String::new(),
            is_done: false,
        }
    }

    /// Reads a line and returns the deltas to show. Some gateways send several objects per line.
    ///
    /// # Errors
    /// The error that the server reports, or an error for a line that cannot be read.
    pub fn read_line(&mut self, line: &[u8]) -> Result<Vec<Delta>> {
        let mut deltas = Vec::new();
        for object in serde_json::Deserializer::from_slice(line).into_iter::<Value>() {
            let object = object.map_err(|_| refusal::foreign_server_error(&self.url))?;
            deltas.extend(self.read_progress(&object)?);
        }
        Ok(deltas)
    }

    fn read_progress(&mut self, line: &Value) -> Result<Option<Delta>> {
        if !line["error"].is_null() {
            return Err(add_missing_model_hint(failure::reported_error(&self.url, line)));
        }
        let status =
            line["status"].as_str().ok_or_else(|| refusal::foreign_server_error(&self.url))?;
        if status == SUCCESS {
            self.is_done = true;
            return Ok(None);
        }
        if let (Some(digest), Some(total)) = (line["digest"].as_str(), line["total"].as_u64()) {
            let completed = line["completed"].as_u64().unwrap_or_default().min(total);
            let is_known = self.files.contains_key(digest);
            if is_known || self.files.len() < FILES_MAX {
                self.files.insert(digest.to_owned(), (completed, total));
            }
            let sum = |of: fn(&(u64, u64)) -> u64| {
                self.files.values().map(of).fold(0, u64::saturating_add)
            };
            let label = format!("fetching {}", self.model);
            return Ok(Some(Delta::progress(label, sum(|file| file.0), sum(|file| file.1))));
        }
        let is_new = status != self.status;
        status.clone_into(&mut self.status);
        Ok(is_new.then(|| Delta::notice(failure::text_beginning(status))))
    }

    /// Returns true if the server has the model.
    pub fn is_done(&self) -> bool {
        self.is_done
    }

    /// Ends the pull.
    ///
    /// # Errors
    /// An error if the server did not report that it has the model.
    pub fn finish(self) -> Result<()> {
        if self.is_done {
            return Ok(());
        }
        let text =
            format!("`{}` stopped before it had the model", failure::url_for_errors(&self.url));
        Err(Error::new(ErrorKind::Provider, text).temporary().with_hint(AGAIN))
    }
}

/// Adds a hint if the model does not exist.
pub(crate) fn add_missing_model_hint(error: Error) -> Error {
    let said = error.message.to_lowercase();
    if said.contains("does not exist") || said.contains("not found") {
        return error.with_hint("https://ollama.com/search lists the available models");
    }
    error
}
