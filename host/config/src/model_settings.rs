//! A user's settings for one model, `[models."provider/model"]`, and aliases for models,
//! `[models.fast]`. Unknown keys are rejected before they get here.

use std::collections::BTreeMap;

use jaato_types::{Effort, ModelId, Price};
use serde_json::{Map, Value as Json};

use crate::answer_settings::{Temperature, TextList};
use crate::error::{ConfigError, ConfigWarning};
use crate::file::ConfigFile;
use crate::model_id::{is_alias, parse_model_id};
use crate::money::{PRICE, format_price, parse_price};
use crate::nearest::nearest_name;
use crate::origin::{ConfigLayer, ValueOrigin};
use crate::setting::{PathBases, Setting};
use crate::toml_tree::{TomlNode, TomlValue};

/// Section whose tables are the models.
pub(crate) const MODELS: &str = "models";
/// The keys of a model, in display order.
const KEYS: [&str; 12] = [
    "model",
    "context_limit",
    "answer_tokens_max",
    "streaming",
    "temperature",
    "effort",
    "seed",
    "stop",
    "price",
    "service_tier",
    "extra_body",
    "extra_headers",
];
/// Keys that a workspace may not set. A user's cap depends on the price. With a vendor's own
/// fields, a request may ask for something that would otherwise need the user's permission.
const PERSONS: [&str; 3] = ["price", "extra_body", "extra_headers"];
/// The smallest and largest context window, in tokens. A smaller one has no room even for the
/// system text.
const CONTEXT_LIMITS: (u64, u64) = (256, 100_000_000);

/// The settings of one model, or of an alias.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelSettings {
    /// The model of an alias.
    pub model: Option<ModelId>,
    /// Its context window in tokens. Overrides the provider's value.
    pub context_limit: Option<u64>,
    /// As `session.answer_tokens_max`, for this model.
    pub answer_tokens_max: Option<u32>,
    /// As `session.streaming`.
    pub streaming: Option<bool>,
    /// As `session.temperature`.
    pub temperature: Option<Temperature>,
    /// As `session.effort`.
    pub effort: Option<Effort>,
    /// As `session.seed`.
    pub seed: Option<u64>,
    /// As `session.stop`.
    pub stop: Option<TextList>,
    /// Its price. Overrides the provider's.
    pub price: Option<Price>,
    /// The vendor's word for the speed and price of an answer.
    pub service_tier: Option<String>,
    /// Fields that are merged into the body of each request.
    pub extra_body: Option<Map<String, Json>>,
    /// Headers that are added to each request.
    pub extra_headers: Option<BTreeMap<String, String>>,
    /// The origins of the values.
    pub(crate) origins: BTreeMap<&'static str, ValueOrigin>,
}

impl ModelSettings {
    /// Fills in missing settings from `other`.
    #[must_use]
    pub fn fill_from(self, other: &Self) -> Self {
        let other = other.clone();
        Self {
            model: self.model.or(other.model),
            context_limit: self.context_limit.or(other.context_limit),
            answer_tokens_max: self.answer_tokens_max.or(other.answer_tokens_max),
            streaming: self.streaming.or(other.streaming),
            temperature: self.temperature.or(other.temperature),
            effort: self.effort.or(other.effort),
            seed: self.seed.or(other.seed),
            stop: self.stop.or(other.stop),
            price: self.price.or(other.price),
            service_tier: self.service_tier.or(other.service_tier),
            extra_body: self.extra_body.or(other.extra_body),
            extra_headers: self.extra_headers.or(other.extra_headers),
            origins: self.origins,
        }
    }

    /// Lists the settings: key, value as a file would have it, origin.
    pub(crate) fn entries(&self) -> Vec<(&'static str, String, Option<&ValueOrigin>)> {
        let shown = |key| {
            let value = match key {
                "model" => self.model.as_ref().map(Setting::to_text),
                "context_limit" => self.context_limit.map(|it| it.to_text()),
                "answer_tokens_max" => self.answer_tokens_max.map(|it| it.to_text()),
                "streaming" => self.streaming.map(|it| it.to_text()),
                "temperature" => self.temperature.map(|it| it.to_string()),
                "effort" => self.effort.map(|_| self.effort.to_text()),
                "seed" => self.seed.map(|it| it.to_text()),
                "price" => self.price.as_ref().map(format_price),
                "service_tier" => self.service_tier.as_ref().map(|word| format!("{word:?}")),
                // Both may contain secrets.
                "extra_body" => self.extra_body.as_ref().map(|it| format_key_names(it.keys())),
                "extra_headers" => {
                    self.extra_headers.as_ref().map(|it| format_key_names(it.keys()))
                }
                _ => self.stop.as_ref().map(Setting::to_text),
            };
            Some((key, value?, self.origins.get(key)))
        };
        KEYS.into_iter().filter_map(shown).collect()
    }

    /// Sets a value.
    ///
    /// # Errors
    /// The kind of value that the key takes.
    fn set_key(
        &mut self,
        key: &str,
        value: &TomlValue,
        bases: PathBases<'_>,
    ) -> Result<(), String> {
        fn parse_setting<T: Setting>(value: &TomlValue, bases: PathBases<'_>) -> Result<T, String> {
            T::from_toml(value, bases).ok_or_else(|| T::KIND.to_owned())
        }
        match key {
            "model" => {
                let model: ModelId = parse_setting(value, bases)?;
                let whole = model.split().is_some().then_some(model);
                self.model = Some(whole.ok_or("a model as `provider/model`")?);
            }
            "context_limit" => {
                let (least, most) = CONTEXT_LIMITS;
                let limit = parse_setting::<u64>(value, bases)
                    .ok()
                    .filter(|it| it.is_within(CONTEXT_LIMITS));
                let wants = || format!("a whole number from {least} to {most}");
                self.context_limit = Some(limit.ok_or_else(wants)?);
            }
            "answer_tokens_max" => self.answer_tokens_max = Some(parse_setting(value, bases)?),
            "streaming" => self.streaming = Some(parse_setting(value, bases)?),
            "temperature" => self.temperature = parse_setting(value, bases)?,
            "effort" => self.effort = parse_setting(value, bases)?,
            "seed" => self.seed = Some(parse_setting(value, bases)?),
            "service_tier" => self.service_tier = Some(parse_setting(value, bases)?),
            "extra_body" => {
                let Some(Json::Object(body)) = value.to_json() else {
                    return Err("a section that is merged into the body of requests".to_owned());
                };
                self.extra_body = Some(body);
            }
            "extra_headers" => {
                let texts = || "a section of headers with their texts".to_owned();
                let TomlValue::Table(entries) = value else { return Err(texts()) };
                let entries = entries.iter().map(|(name, node)| match &node.value {
                    TomlValue::Text(text) => Ok((name.clone(), text.clone())),
                    _ => Err(texts()),
                });
                self.extra_headers = Some(entries.collect::<Result<_, _>>()?);
            }
            "price" => self.price = Some(parse_price(value).ok_or(PRICE)?),
            _ => self.stop = Some(parse_setting(value, bases)?),
        }
        Ok(())
    }
}

/// Shows the names of keys, without their values: `{ beta, user = … }`.
fn format_key_names<'a>(names: impl Iterator<Item = &'a String>) -> String {
    let names: Vec<String> = names.map(|name| format!("{name} = …")).collect();
    format!("{{ {} }}", names.join(", "))
}

/// Merges a later file's settings over the earlier ones.
pub(crate) fn merge_model_settings(
    models: &mut BTreeMap<String, ModelSettings>,
    file: &ConfigFile,
    warnings: &mut Vec<ConfigWarning>,
) -> Result<(), ConfigError> {
    let bases = PathBases { folder: &file.base, home: None };
    for (model, node) in &file.models {
        let TomlValue::Table(entries) = &node.value else {
            return Err(wrong_value_error(file, node, model, None, "a section"));
        };
        let is_alias = is_alias(model);
        if !is_alias && parse_model_id(model).is_err() {
            let origin = Box::new(file.value_origin(node.line));
            let (key, has) = (format!("{MODELS}.{model}"), format!("`{model}`"));
            let wants = "a model as `provider/model`, or a name of your own, for a name".to_owned();
            return Err(ConfigError::WrongValue { origin, key, wants, has });
        }
        let settings = models.entry(model.clone()).or_default();
        for (name, node) in entries {
            let Some(key) = KEYS.into_iter().find(|key| key == name) else { continue };
            if file.layer == ConfigLayer::Workspace && PERSONS.contains(&key) {
                let place = file.value_origin(node.line);
                let text = format!(
                    "`{key}` of `{model}` is not used ({place}): only your own config.toml can \
                     set it"
                );
                warnings.push(ConfigWarning { text });
                continue;
            }
            settings
                .set_key(key, &node.value, bases)
                .map_err(|wants| wrong_value_error(file, node, model, Some(name), &wants))?;
            settings.origins.insert(key, file.value_origin(node.line));
        }
        if is_alias == settings.model.is_none() {
            let (wants, has) = if is_alias {
                ("`model = \"provider/model\"`, being a name of your own", "a section without")
            } else {
                ("no `model`, which is for names of your own", "a section with one")
            };
            return Err(ConfigError::WrongValue {
                origin: Box::new(file.value_origin(node.line)),
                key: format!("{MODELS}.\"{model}\""),
                wants: wants.to_owned(),
                has: has.to_owned(),
            });
        }
    }
    Ok(())
}

/// Returns true if models have a key of this name.
pub(crate) fn is_model_key(name: &str) -> bool {
    KEYS.contains(&name)
}

/// Returns the error for an unknown key of a model.
pub(crate) fn unknown_key_error(origin: Box<ValueOrigin>, key: String, name: &str) -> ConfigError {
    let nearest = nearest_name(name, KEYS.into_iter()).map(str::to_owned);
    ConfigError::UnknownKey { origin, key, nearest, known: KEYS.map(str::to_owned).to_vec() }
}

fn wrong_value_error(
    file: &ConfigFile,
    node: &TomlNode,
    model: &str,
    name: Option<&str>,
    wants: &str,
) -> ConfigError {
    let name = name.map(|name| format!(".{name}")).unwrap_or_default();
    ConfigError::WrongValue {
        origin: Box::new(file.value_origin(node.line)),
        key: format!("{MODELS}.\"{model}\"{name}"),
        wants: wants.to_owned(),
        has: node.value.describe(),
    }
}
