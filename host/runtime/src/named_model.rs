//! Finds the provider of a model that is named without one, and prepares a model for a session.

use std::sync::Arc;

use jaato_config::{Config, NamedModel};
use jaato_session::{
    AnsweringModel, ModelCapabilities, ModelSetup, Provider, Session, SharedFacts, WindowOrigin,
};
use jaato_types::{Error, ErrorKind, ModelId, Price, RequestOptions, SessionId, ToolName};

use crate::answers;
use crate::host::RuntimeHost;
use crate::known_provider::KnownProvider;
use crate::provider::PluginProvider;
use crate::runtime::Runtime;

/// The assumed context window if it is unknown.
const CONTEXT_LIMIT_ASSUMED: u64 = 32_768;

/// The options that a provider of the embedding program gets, by their names in a request.
const REQUEST_OPTIONS: [&str; 12] = [
    "max_output_tokens",
    "temperature",
    "stream",
    "effort",
    "tool_choice",
    "output_schema",
    "stop",
    "seed",
    "session_key",
    "service_tier",
    "extra_body",
    "extra_headers",
];

/// A model that a session can use.
pub(crate) struct ReadyModel {
    pub(crate) setup: ModelSetup,
    pub(crate) answers: ReadyProvider,
    /// Maximum tokens for tools in each request, if the provider declares a limit.
    pub(crate) core_tokens_max: Option<u64>,
    /// The tools offered from the start, if the model names any.
    pub(crate) core_tools: Vec<ToolName>,
}

/// The provider of a model.
#[derive(Clone)]
pub(crate) enum ReadyProvider {
    Plugin(Arc<PluginProvider>),
    Program(Arc<dyn Provider>),
}

impl ReadyProvider {
    pub(crate) fn provider(&self) -> Arc<dyn Provider> {
        match self {
            Self::Plugin(provider) => Arc::clone(provider) as _,
            Self::Program(provider) => Arc::clone(provider),
        }
    }

    /// Sets the session's facts, which exist only after the session does.
    pub(crate) fn set_facts(&self, facts: SharedFacts) {
        match self {
            Self::Plugin(provider) => provider.set_facts(facts),
            Self::Program(_) => {}
        }
    }
}

impl ReadyModel {
    pub(crate) fn into_answering_model(self) -> AnsweringModel {
        AnsweringModel { provider: self.answers.provider(), model: self.setup }
    }
}

impl Runtime {
    /// Returns the configured model. If its name lacks the provider, adds it if it is unambiguous.
    pub fn model(&self) -> ModelId {
        self.host().model()
    }

    /// Finds a model by the user's own name for it, `provider/model`, or the model's name alone.
    ///
    /// # Errors
    /// `configuration` if no provider, or more than one, may have the model.
    pub fn model_by_name(&self, name: &str) -> Result<NamedModel, Error> {
        self.host().model_by_name(name)
    }

    /// Returns a model's provider, for requests without a session.
    ///
    /// # Errors
    /// If no provider offers the model.
    pub fn answering_model(&self, name: &str) -> Result<AnsweringModel, Error> {
        let (named, session) = (self.model_by_name(name)?, SessionId::from("program"));
        let ready = self.host().ready_model(&named, &RequestOptions::default(), &session)?;
        Ok(ready.into_answering_model())
    }

    /// Switches a conversation to another model. `request` holds the options that the session was
    /// started with. An event reports which parts of the conversation the model will not receive.
    ///
    /// # Errors
    /// As [`Runtime::open_session`]. On an error, the conversation keeps its model.
    pub fn change_model(
        &self,
        session: &mut Session,
        name: &str,
        request: &RequestOptions,
    ) -> Result<(), Error> {
        let ready = self.host().ready_model(&self.model_by_name(name)?, request, session.id())?;
        ready.answers.set_facts(session.shared_facts());
        let AnsweringModel { model, provider } = ready.into_answering_model();
        session.change_model(model, provider);
        Ok(())
    }
}

impl RuntimeHost {
    /// Returns the configured model. If its name lacks the provider, adds it if it is unambiguous.
    pub(crate) fn model(&self) -> ModelId {
        let configured = &self.setup.config.model;
        let named = NamedModel { model: configured.clone(), alias: None };
        self.add_provider(named).map_or_else(|_| configured.clone(), |named| named.model)
    }

    /// Finds a model by the user's own name for it, `provider/model`, or the model's name alone.
    ///
    /// # Errors
    /// `configuration` if no provider, or more than one, may have the model.
    pub(crate) fn model_by_name(&self, name: &str) -> Result<NamedModel, Error> {
        self.add_provider(self.setup.config.model_by_name(name.trim()))
    }

    /// Prepares a model for a session.
    pub(crate) fn ready_model(
        self: &Arc<Self>,
        named: &NamedModel,
        request: &RequestOptions,
        session: &SessionId,
    ) -> Result<ReadyModel, Error> {
        let config = &self.setup.config;
        let model = &named.model;
        if let Some(provider) = self.program_provider(model) {
            return self.ready_model_of_program(named, request, provider);
        }
        let KnownProvider {
            plugin,
            names,
            context_limit,
            price,
            answer_tokens_max,
            takes,
            has_one_conversation,
            core_tokens_max,
            core_tools,
            ..
        } = self.resolve_provider(model)?;
        let known = KnownModel { takes, context_limit, price };
        let mut setup = model_setup(config, named, request, known)?;
        setup.has_one_conversation = has_one_conversation;
        setup.answer_tokens_max = answer_tokens_max;
        let host = Arc::clone(self);
        let provider = PluginProvider::new(host, plugin, names, model.clone(), session.clone());
        let answers = ReadyProvider::Plugin(Arc::new(provider));
        Ok(ReadyModel { setup, answers, core_tokens_max, core_tools })
    }

    /// Returns the embedding program's provider of a model, if it has one.
    fn program_provider(&self, model: &ModelId) -> Option<Arc<dyn Provider>> {
        let (provider, _) = model.split()?;
        self.program.providers.get(provider).cloned()
    }

    /// Prepares a model of the embedding program. The provider itself reports which input it
    /// accepts, so it gets every option.
    fn ready_model_of_program(
        &self,
        named: &NamedModel,
        request: &RequestOptions,
        provider: Arc<dyn Provider>,
    ) -> Result<ReadyModel, Error> {
        let takes = ModelCapabilities {
            options: REQUEST_OPTIONS.map(str::to_owned).into(),
            ..ModelCapabilities::default()
        };
        let known = KnownModel { takes, context_limit: None, price: None };
        let setup = model_setup(&self.setup.config, named, request, known)?;
        let answers = ReadyProvider::Program(provider);
        Ok(ReadyModel { setup, answers, core_tokens_max: None, core_tools: Vec::new() })
    }

    fn add_provider(&self, named: NamedModel) -> Result<NamedModel, Error> {
        if named.model.split().is_some() {
            return Ok(named);
        }
        let name = named.model.as_str();
        let candidates = self.candidate_providers(name);
        if let [provider] = candidates.as_slice() {
            let model = ModelId::new(format!("{provider}/{name}"));
            return Ok(NamedModel { model, ..named });
        }
        let aliases = &self.setup.config.model_settings;
        let aliases = aliases.iter().filter(|(_, says)| says.model.is_some()).map(|(name, _)| name);
        let aliases: Vec<String> = aliases.map(|name| format!("`{name}`")).collect();
        let or = match aliases.as_slice() {
            [] => String::new(),
            aliases => format!(", or one of your names: {}", aliases.join(", ")),
        };
        let (text, hint) = match candidates.as_slice() {
            [] => (
                format!("the provider of model `{name}` is unknown: use `provider/model`{or}"),
                "`jaato model list` lists the models".to_owned(),
            ),
            [first, ..] => (
                format!("`{name}` may be a model of {}: choose one", candidates.join(", ")),
                format!("`--model {first}/{name}`, or the key `provider`"),
            ),
        };
        Err(Error::new(ErrorKind::Configuration, text).with_hint(hint))
    }

    /// Lists the providers that may have a model of this name, without asking them: those that list
    /// it, otherwise those with models of the same family. Of several, prefers those with a key.
    /// For an unknown name, returns every provider with a key.
    fn candidate_providers(&self, model: &str) -> Vec<String> {
        let registry = self.registry();
        let names = self.provider_names(&registry);
        let has_key = |name: &String| {
            let keys = self.provider(name).map(|info| info.keys).unwrap_or_default();
            keys.iter().any(|key| key.found.is_some())
        };
        let vendor = |name: &str| self.provider_vendor(name, &registry).map(|(vendor, _)| vendor);
        let lists = |name: &&String| {
            let Ok((entry, _)) = self.provider_plugin(&registry, name, None) else { return false };
            let spec = entry.description().and_then(|it| it.provider.as_ref());
            spec.is_some_and(|spec| spec.models.iter().any(|info| info.name == model))
                || vendor(name)
                    .is_some_and(|it| jaato_model_facts::find_facts(&it, model).is_some())
        };
        let family = model_family(model);
        let is_of_family = |name: &&String| {
            let vendor = vendor(name);
            let mut all = jaato_model_facts::all_models();
            vendor.is_some_and(|vendor| {
                all.any(|facts| {
                    let (of, name) = facts.id.split_once('/').unwrap_or_default();
                    of == vendor && model_family(name) == family
                })
            })
        };
        let mut found: Vec<String> = names.iter().filter(lists).cloned().collect();
        if found.is_empty() {
            found = names.iter().filter(is_of_family).cloned().collect();
        }
        if found.is_empty() {
            return names.into_iter().filter(has_key).collect();
        }
        if found.len() > 1 && found.iter().any(has_key) {
            found.retain(has_key);
        }
        found
    }
}

/// What is known about a model besides its configuration.
struct KnownModel {
    takes: ModelCapabilities,
    context_limit: Option<u64>,
    price: Option<Price>,
}

/// Returns the setup of a model. The configuration overrides what is known.
fn model_setup(
    config: &Config,
    named: &NamedModel,
    request: &RequestOptions,
    known: KnownModel,
) -> Result<ModelSetup, Error> {
    let KnownModel { takes, context_limit, price } = known;
    let says = config.settings_for_model(named);
    let window = says.context_limit.or(context_limit).unwrap_or(CONTEXT_LIMIT_ASSUMED);
    let mut setup = ModelSetup::new(named.model.clone(), window);
    setup.origin = match (says.context_limit, context_limit) {
        (Some(_), _) => WindowOrigin::Configured,
        (None, Some(_)) => WindowOrigin::Described,
        (None, None) => WindowOrigin::Assumed,
    };
    setup.options = answers::merge_request_options(config, request, &takes, named)?;
    setup.takes = takes;
    setup.is_price_configured = says.price.is_some();
    setup.price = says.price.or(price);
    Ok(setup)
}

/// The first word of a model's name: `gemini` of `gemini-2.5-flash`.
fn model_family(model: &str) -> &str {
    let end = model.find(|sign: char| !sign.is_ascii_alphabetic()).unwrap_or(model.len());
    &model[..end]
}

#[cfg(test)]
mod tests {
    use serde::de::{Deserialize as _, Deserializer, Error as _, Visitor, value};

    use super::*;

    /// Gets the names of a struct's fields from its derived code.
    struct FieldNames<'a>(&'a mut Vec<&'static str>);

    impl<'de> Deserializer<'de> for FieldNames<'_> {
        type Error = value::Error;

        fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, value::Error> {
            Err(value::Error::custom("it is not a struct"))
        }

        fn deserialize_struct<V: Visitor<'de>>(
            self,
            _: &'static str,
            fields: &'static [&'static str],
            _: V,
        ) -> Result<V::Value, value::Error> {
            self.0.extend(fields);
            Err(value::Error::custom("only the names are read"))
        }

        serde::forward_to_deserialize_any! {
            bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
            option unit unit_struct newtype_struct seq tuple tuple_struct map enum identifier
            ignored_any
        }
    }

    #[test]
    fn provider_of_the_program_gets_every_option() {
        let mut names = Vec::new();
        RequestOptions::deserialize(FieldNames(&mut names)).unwrap_err();
        assert_eq!(names, REQUEST_OPTIONS);
    }

    #[test]
    fn a_family_is_the_first_word() {
        for (model, expected) in [("gemini-2.5-flash", "gemini"), ("o3", "o"), ("gpt4", "gpt")] {
            assert_eq!(model_family(model), expected);
        }
    }
}
