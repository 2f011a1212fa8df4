//! What a person says about one model: `[models."provider/model"]`. Unknown keys do not get here.

use std::collections::BTreeMap;

use crate::error::ConfigError;
use crate::file::ConfigFile;
use crate::model_id::parse_model_id;
use crate::nearest::nearest;
use crate::origin::Origin;
use crate::toml_tree::{Node, Value};

/// Section whose tables are the models.
pub(crate) const MODELS: &str = "models";
/// The one key of a model.
const CONTEXT_LIMIT: &str = "context_limit";
/// Least and most tokens of a context window. Below it not even the system text has room.
const CONTEXT_LIMITS: (i64, i64) = (256, 100_000_000);

/// What is said about one model.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelSettings {
    /// Its context window in tokens, whatever its provider says.
    pub context_limit: Option<u64>,
    /// The place of it.
    pub(crate) origin: Option<Origin>,
}

/// Lays what a later file says over what others said.
pub(crate) fn lay(
    models: &mut BTreeMap<String, ModelSettings>,
    file: &ConfigFile,
) -> Result<(), ConfigError> {
    for (model, node) in &file.models {
        let Value::Table(entries) = &node.value else {
            return Err(wrong(file, node, model, None, "a section"));
        };
        if parse_model_id(model).is_err() {
            let origin = Box::new(file.origin(node.line));
            let (key, has) = (format!("{MODELS}.{model}"), format!("`{model}`"));
            let wants = "a model as `provider/model` for a name".to_owned();
            return Err(ConfigError::WrongValue { origin, key, wants, has });
        }
        let settings = models.entry(model.clone()).or_default();
        for (name, node) in entries {
            let (least, most) = CONTEXT_LIMITS;
            let limit = match node.value {
                Value::Integer(Ok(limit)) if (least..=most).contains(&limit) => limit,
                _ => {
                    let wants = format!("a whole number from {least} to {most}");
                    return Err(wrong(file, node, model, Some(name), &wants));
                }
            };
            settings.context_limit = u64::try_from(limit).ok();
            settings.origin = Some(file.origin(node.line));
        }
    }
    Ok(())
}

/// Tells whether a model has a key of that name.
pub(crate) fn is_key(name: &str) -> bool {
    name == CONTEXT_LIMIT
}

/// Makes the error of a key that no model has.
pub(crate) fn unknown(origin: Box<Origin>, key: String, name: &str) -> ConfigError {
    let nearest = nearest(name, [CONTEXT_LIMIT].into_iter()).map(str::to_owned);
    ConfigError::UnknownKey { origin, key, nearest, known: vec![CONTEXT_LIMIT.to_owned()] }
}

fn wrong(
    file: &ConfigFile,
    node: &Node,
    model: &str,
    name: Option<&str>,
    wants: &str,
) -> ConfigError {
    let name = name.map(|name| format!(".{name}")).unwrap_or_default();
    ConfigError::WrongValue {
        origin: Box::new(file.origin(node.line)),
        key: format!("{MODELS}.\"{model}\"{name}"),
        wants: wants.to_owned(),
        has: node.value.describe(),
    }
}
