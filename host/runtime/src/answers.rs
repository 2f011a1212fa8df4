//! Merges the options for model requests and checks that the provider honours them. An unsupported
//! option is an error before the first request, even if the server would ignore it.

use jaato_config::{Config, NamedModel};
use jaato_session::ModelCapabilities;
use jaato_types::{Error, ErrorKind, ModelId, RequestOptions};
use serde_json::Value;

/// Merges the options: those given for this session override the model's configuration, which
/// overrides the general configuration.
///
/// # Errors
/// `configuration` if the provider does not list an option.
pub(crate) fn merge_request_options(
    config: &Config,
    given: &RequestOptions,
    takes: &ModelCapabilities,
    model: &NamedModel,
) -> Result<RequestOptions, Error> {
    let (session, says) = (&config.session, config.settings_for_model(model));
    let mut options = given.clone();
    let tokens = says.answer_tokens_max.unwrap_or(session.answer_tokens_max);
    let temperature = says.temperature.or(session.temperature);
    let is_whole = !says.streaming.unwrap_or(session.streaming);
    options.max_output_tokens = options.max_output_tokens.or((tokens > 0).then_some(tokens));
    options.temperature = options.temperature.or(temperature.map(|it| it.get()));
    options.effort = options.effort.or(says.effort).or(session.effort);
    options.seed = options.seed.or(says.seed).or(session.seed);
    options.stream = options.stream.or(is_whole.then_some(false));
    options.service_tier = options.service_tier.take().or(says.service_tier);
    // Merged key by key: the command line overrides the configuration.
    let mut body = says.extra_body.unwrap_or_default();
    body.append(&mut options.extra_body);
    let mut headers = says.extra_headers.unwrap_or_default();
    headers.append(&mut options.extra_headers);
    (options.extra_body, options.extra_headers) = (body, headers);
    if options.stop.is_empty() {
        options.stop = says.stop.unwrap_or_else(|| session.stop.clone()).0;
    }
    match unsupported_options_error(&options, takes) {
        Some(name) => Err(unsupported_option_error(&name, takes, &model.model)),
        None => Ok(options),
    }
}

/// Finds the first option that is set but not listed by the provider.
fn unsupported_options_error(
    options: &RequestOptions,
    takes: &ModelCapabilities,
) -> Option<String> {
    let Ok(Value::Object(set)) = serde_json::to_value(options) else { return None };
    set.into_iter().map(|(name, _)| name).find(|name| !takes.honours_option(name))
}

fn unsupported_option_error(name: &str, takes: &ModelCapabilities, model: &ModelId) -> Error {
    let provider = model.split().map_or(model.as_str(), |(provider, _)| provider);
    let text = format!("the provider `{provider}` does not accept the option `{name}`");
    let known = if takes.options.is_empty() {
        "it takes none".to_owned()
    } else {
        format!("it takes {}", takes.options.join(", "))
    };
    let (option, key) = option_names(name);
    let hint = format!("{known}; leave out `{option}` or `{key}`, or use another provider");
    Error::new(ErrorKind::Configuration, text).with_hint(hint)
}

/// Returns the names of an option on the command line and in the configuration.
fn option_names(option: &str) -> (&str, &str) {
    match option {
        "max_output_tokens" => ("--max-output-tokens", "session.answer_tokens_max"),
        "temperature" => ("--temperature", "session.temperature"),
        "stream" => ("--no-streaming", "session.streaming"),
        "effort" => ("--effort", "session.effort"),
        "stop" => ("--stop", "session.stop"),
        "seed" => ("--seed", "session.seed"),
        "service_tier" => ("--service-tier", "service_tier"),
        "extra_body" => ("--extra-body", "extra_body"),
        "extra_headers" => ("--extra-header", "extra_headers"),
        "output_schema" => ("--output-schema", "output_schema"),
        other => (other, other),
    }
}

#[cfg(test)]
mod tests {
    use jaato_config::{ModelSettings, Temperature};

    use super::*;

    fn named_model(alias: Option<&str>) -> NamedModel {
        NamedModel { model: ModelId::from("a/m"), alias: alias.map(str::to_owned) }
    }

    fn merged_options(
        config: &Config,
        given: &RequestOptions,
        options: &[&str],
    ) -> Result<Value, Error> {
        let options = options.iter().map(|name| (*name).to_owned()).collect();
        let takes = ModelCapabilities { options, ..ModelCapabilities::default() };
        let merged = merge_request_options(
            config,
            given,
            &takes,
            &named_model(config.model_alias.as_deref()),
        )?;
        Ok(serde_json::to_value(merged).unwrap())
    }

    #[test]
    fn command_line_options_override_configuration_and_unset_ones_are_omitted() {
        let mut config = Config::default();
        let none = RequestOptions::default();
        assert_eq!(merged_options(&config, &none, &[]).unwrap().to_string(), "{}");
        config.session.temperature = Temperature::new(0.5);
        config.session.streaming = false;
        config.session.seed = Some(7);
        let mut given = RequestOptions::default();
        given.temperature = Some(1.0);
        given.stop = vec!["END".to_owned()];
        let all = ["temperature", "stream", "seed", "stop"];
        assert_eq!(
            merged_options(&config, &given, &all).unwrap().to_string(),
            r#"{"temperature":1.0,"stream":false,"stop":["END"],"seed":7}"#
        );
    }

    #[test]
    fn answer_token_limit_of_zero_is_left_to_the_provider() {
        let mut config = Config::default();
        for (configured, asked) in [(0, "{}"), (1, r#"{"max_output_tokens":1}"#)] {
            config.session.answer_tokens_max = configured;
            let merged =
                merged_options(&config, &RequestOptions::default(), &["max_output_tokens"]);
            assert_eq!(merged.unwrap().to_string(), asked);
        }
    }

    #[test]
    fn model_settings_override_session_settings() {
        let mut config = Config::default();
        config.session.temperature = Temperature::new(0.5);
        config.session.answer_tokens_max = 9;
        let mut says = ModelSettings::default();
        says.temperature = Temperature::new(1.0);
        config.model_settings.insert("a/m".to_owned(), says);
        let mut named = ModelSettings::default();
        named.answer_tokens_max = Some(0);
        config.model_settings.insert("fast".to_owned(), named);
        let all = ["temperature", "max_output_tokens"];
        let options = |config: &Config| {
            merged_options(config, &RequestOptions::default(), &all).unwrap().to_string()
        };
        assert_eq!(options(&config), r#"{"max_output_tokens":9,"temperature":1.0}"#);
        config.model_alias = Some("fast".to_owned());
        assert_eq!(options(&config), r#"{"temperature":1.0}"#);
    }

    #[test]
    fn option_that_the_provider_does_not_support_is_refused_with_a_hint() {
        let mut config = Config::default();
        config.session.seed = Some(7);
        let error =
            merged_options(&config, &RequestOptions::default(), &["temperature"]).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Configuration);
        assert_eq!(error.message, "the provider `a` does not accept the option `seed`");
        assert_eq!(
            error.hint.as_deref(),
            Some(
                "it takes temperature; leave out `--seed` or `session.seed`, or use another provider"
            )
        );
    }
}
