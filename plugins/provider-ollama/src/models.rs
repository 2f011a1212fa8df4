//! Reads a server's lists of installed and loaded models. Pure.

use jaato_plugin_sdk::serde_json::{self, Value};
use jaato_plugin_sdk::types::ModelInfo;
use jaato_plugin_sdk::{Error, Result};

use crate::facts::{OllamaModelFacts, read_capabilities};
use crate::refusal;

/// An installed model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledModel {
    /// The model's name, including the tag.
    pub name: String,
    title: String,
    capabilities: Option<Vec<String>>,
}

/// Reads the answer of `GET /api/tags`.
///
/// # Errors
/// `provider` if the body is not a list of models.
pub fn parse_installed(url: &str, body: &[u8]) -> Result<Vec<InstalledModel>> {
    let models = parse_model_list(url, body)?;
    let read = |model: &Value| {
        let name = model_name(model)?.to_owned();
        Some(InstalledModel {
            name,
            title: model_title(model),
            capabilities: read_capabilities(model),
        })
    };
    Ok(models.iter().filter_map(read).collect())
}

/// Reads the answer of `GET /api/ps`: the context size of each loaded model, by name.
///
/// # Errors
/// The errors of [`parse_installed`].
pub fn parse_loaded(url: &str, body: &[u8]) -> Result<Vec<(String, u64)>> {
    let models = parse_model_list(url, body)?;
    let read = |model: &Value| {
        let tokens = model["context_length"].as_u64().filter(|tokens| *tokens > 0)?;
        Some((model_name(model)?.to_owned(), tokens))
    };
    Ok(models.iter().filter_map(read).collect())
}

/// Describes a model. Returns `None` for a model that cannot answer, such as an embedding model.
pub fn model_info(
    installed: &InstalledModel,
    facts: &OllamaModelFacts,
    context_tokens: u64,
) -> Option<ModelInfo> {
    let facts = match (&facts.capabilities, &installed.capabilities) {
        (None, Some(listed)) => {
            &OllamaModelFacts { capabilities: Some(listed.clone()), ..facts.clone() }
        }
        _ => facts,
    };
    if facts.has_capability("completion") == Some(false) {
        return None;
    }
    Some(ModelInfo {
        title: installed.title.clone(),
        context_limit: Some(context_tokens),
        accepts: facts.accepted_media_types(),
        ..ModelInfo::new(&installed.name)
    })
}

/// Writes a name as the server does, with a tag.
pub fn name_with_tag(name: &str) -> String {
    let last = name.rsplit('/').next().unwrap_or(name);
    if last.contains(':') { name.to_owned() } else { format!("{name}:latest") }
}

fn parse_model_list(url: &str, body: &[u8]) -> Result<Vec<Value>> {
    let foreign = || -> Error { refusal::foreign_server_error(url) };
    let mut list: Value = serde_json::from_slice(body).map_err(|_| foreign())?;
    match list.get_mut("models").map(Value::take) {
        Some(Value::Array(models)) => Ok(models),
        // A server without models sends null.
        Some(Value::Null) => Ok(Vec::new()),
        _ => Err(foreign()),
    }
}

fn model_name(model: &Value) -> Option<&str> {
    let names = [&model["name"], &model["model"]];
    names.into_iter().filter_map(Value::as_str).find(|name| !name.is_empty())
}

/// Describes a model's size in one line: `8.2B, Q4_K_M, 5.2 GB`.
fn model_title(model: &Value) -> String {
    let detail = |key: &str| {
        let text = model["details"][key].as_str().unwrap_or_default();
        (!text.is_empty() && text != "unknown").then(|| text.to_owned())
    };
    let is_remote = model["remote_host"].as_str().is_some_and(|host| !host.is_empty());
    let place = if is_remote {
        Some("in the cloud".to_owned())
    } else {
        let bytes = model["size"].as_u64().filter(|bytes| *bytes > 0);
        bytes.map(|bytes| format!("{:.1} GB", bytes as f64 / 1e9))
    };
    let words = [detail("parameter_size"), detail("quantization_level"), place];
    words.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use jaato_plugin_sdk::ErrorKind;
    use jaato_plugin_sdk::serde_json::json;

    use super::*;

    #[test]
    fn installed_models_are_listed_with_their_sizes() {
        let body = json!({ "models": [
            { "name": "qwen3:8b", "size": 5_225_388_164_u64,
              "details": { "parameter_size": "8.2B", "quantization_level": "Q4_K_M" } },
            { "model": "big:cloud", "remote_host": "https://ollama.com", "size": 300 },
            { "name": "embed", "capabilities": ["embedding"] },
            { "name": "" },
        ] });
        let listed = parse_installed("http://h/api/tags", body.to_string().as_bytes()).unwrap();
        let infos: Vec<_> = listed
            .iter()
            .map(|it| model_info(it, &OllamaModelFacts::default(), 7).map(|it| (it.name, it.title)))
            .collect();
        let told = |name: &str, title: &str| Some((name.to_owned(), title.to_owned()));
        let expected =
            [told("qwen3:8b", "8.2B, Q4_K_M, 5.2 GB"), told("big:cloud", "in the cloud"), None];
        assert_eq!(infos, expected);
    }

    #[test]
    fn loaded_context_size_is_read_if_the_server_reports_it() {
        let body = r#"{"models":[{"name":"a:latest","context_length":4096},{"name":"b:1"}]}"#;
        assert_eq!(parse_loaded("u", body.as_bytes()).unwrap(), [("a:latest".to_owned(), 4096)]);
        assert_eq!(parse_loaded("u", br#"{"models":null}"#).unwrap(), []);
    }

    #[test]
    fn invalid_model_list_is_reported_as_not_an_ollama_server() {
        for body in ["", "<html>", "[]", "{}", r#"{"models":1}"#, r#"{"data":[]}"#] {
            let error = parse_installed("http://u:p@h/api/tags", body.as_bytes()).unwrap_err();
            let text = "`http://…@h/api/tags` does not answer like an Ollama server";
            assert_eq!((error.kind, error.message.as_str()), (ErrorKind::Provider, text), "{body}");
        }
    }

    #[test]
    fn model_name_without_a_tag_gets_latest() {
        for (name, expected) in
            [("a", "a:latest"), ("a:1", "a:1"), ("h:5000/n/a", "h:5000/n/a:latest")]
        {
            assert_eq!(name_with_tag(name), expected);
        }
    }
}
