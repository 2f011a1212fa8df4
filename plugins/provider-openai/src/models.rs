//! Reads a server's list of models.

use jaato_plugin_sdk::serde_json::{self, Value};
use jaato_plugin_sdk::types::ModelInfo;
use jaato_plugin_sdk::{Error, ErrorKind, Result};
use jaato_plugin_sdk_provider::failure;

use crate::accepted_media;

/// The keys with which servers report a model's context window: vLLM, OpenRouter, Groq, Mistral, LM
/// Studio. The loaded size takes precedence over the possible size.
const CONTEXT_KEYS: [&str; 6] = [
    "loaded_context_length",
    "max_model_len",
    "context_length",
    "context_window",
    "max_context_length",
    "context_size",
];

/// Reads the body of `GET /models`: the models by name.
///
/// # Errors
/// `provider` if the body is not a list of models.
pub fn parse_model_list(url: &str, body: &[u8]) -> Result<Vec<ModelInfo>> {
    let wrong = || {
        let text =
            format!("`{}` did not answer with a list of models", failure::url_for_errors(url));
        Error::new(ErrorKind::Provider, text).with_hint("check the base url: most end in `/v1`")
    };
    let list: Value = serde_json::from_slice(body).map_err(|_| wrong())?;
    let models = match (&list, list.get("data")) {
        (_, Some(Value::Array(models))) => models.as_slice(),
        // A server without models sends null.
        (_, Some(Value::Null)) => &[],
        // Together sends the list without an object around it.
        (Value::Array(models), _) => models.as_slice(),
        (_, Some(_) | None) => return Err(wrong()),
    };
    let mut infos: Vec<ModelInfo> = models.iter().filter_map(parse_model_info).collect();
    if infos.is_empty() && !models.is_empty() {
        return Err(wrong());
    }
    infos.sort_by(|a, b| a.name.cmp(&b.name));
    infos.dedup_by(|a, b| a.name == b.name);
    Ok(infos)
}

fn parse_model_info(model: &Value) -> Option<ModelInfo> {
    let name = model["id"].as_str().filter(|name| !name.is_empty())?;
    let told = |key: &str| model[key].as_u64().filter(|tokens| *tokens > 0);
    let context_limit = CONTEXT_KEYS.into_iter().find_map(told);
    Some(ModelInfo {
        name: name.to_owned(),
        context_limit,
        accepts: accepted_media::media_from_list_entry(model),
        ..ModelInfo::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed_names(body: &str) -> Result<Vec<(String, Option<u64>)>> {
        let infos = parse_model_list("http://u:p@h/v1/models", body.as_bytes())?;
        Ok(infos.into_iter().map(|info| (info.name, info.context_limit)).collect())
    }

    #[test]
    fn models_are_sorted_and_unique_with_their_context_window() {
        let body = r#"{"object":"list","data":[{"id":"b"},{"id":"a","max_model_len":4096},
            {"id":""},{"x":1},{"id":"b"}]}"#;
        assert_eq!(parsed_names(body), Ok(vec![("a".into(), Some(4096)), ("b".into(), None)]));
        assert_eq!(parsed_names(r#"{"object":"list","data":null}"#), Ok(vec![]));
        assert_eq!(
            parsed_names(r#"[{"id":"b"},{"id":"a"}]"#),
            Ok(vec![("a".into(), None), ("b".into(), None)])
        );
    }

    #[test]
    fn invalid_model_list_error_hides_the_password() {
        for body in ["", "<html>", "[1]", r#"[{"x":1}]"#, r#"{"data":1}"#, r#"{"models":[]}"#] {
            let error = parsed_names(body).unwrap_err();
            let text = "`http://…@h/v1/models` did not answer with a list of models";
            assert_eq!((error.kind, error.message.as_str()), (ErrorKind::Provider, text), "{body}");
        }
    }
}
