//! Selects the host's variables for programs: those that neither hold nor look like a secret. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;

use jaato_config::{EnvironmentVariables, is_secret_name};
use jaato_registry::{PluginEntry, PluginStatus, Registry};

/// Lists the variables that plugins in use declare as secrets.
pub fn declared_secrets(registry: &Registry) -> BTreeSet<String> {
    let active = registry.plugins().iter().filter(|entry| entry.status == PluginStatus::Active);
    let variables = active.filter_map(PluginEntry::description).flat_map(|description| {
        let own = description.credentials.iter().map(|credential| &credential.variable);
        let presets = description.provider.iter().flat_map(|provider| &provider.presets);
        own.chain(presets.map(|preset| &preset.variable))
    });
    variables.filter(|name| !name.is_empty()).cloned().collect()
}

/// Returns the variables for programs.
///
/// `credentials` are the names that providers declare, `pass` the user's exceptions.
pub fn cleaned_variables(
    variables: &EnvironmentVariables,
    credentials: &BTreeSet<String>,
    pass: &[String],
) -> BTreeMap<OsString, OsString> {
    let is_kept = |name: &str| {
        let is_secret = credentials.contains(name) || is_secret_name(name);
        !is_secret || pass.iter().any(|passed| passed == name)
    };
    let kept = variables.iter().filter(|(name, _)| is_kept(name));
    kept.map(|(name, value)| (name.into(), value.clone())).collect()
}

#[cfg(test)]
mod tests {
    use jaato_registry::{PluginCandidate, PluginFileTrust, RegistryRules};
    use jaato_types::{CredentialSpec, Description, Manifest, ProviderPreset, ProviderSpec};

    use super::*;

    #[test]
    fn only_variables_that_enabled_plugins_declare_count_as_secrets() {
        let candidate = |name: &str, variable: &str| {
            let manifest = format!(
                r#"{{"v":1,"name":"{name}","version":"1","api":"1.0.0","kinds":["provider"]}}"#
            );
            let credential = CredentialSpec {
                variable: variable.to_owned(),
                scheme: "bearer".to_owned(),
                ..CredentialSpec::default()
            };
            let preset = ProviderPreset {
                name: format!("{name}-preset"),
                base_url: "https://mare.example".to_owned(),
                variable: variable.replace("ACCESS", "PRESET"),
                ..ProviderPreset::default()
            };
            let provider = ProviderSpec {
                name: name.to_owned(),
                presets: vec![preset],
                ..ProviderSpec::default()
            };
            let (credentials, provider) = (vec![credential], Some(provider));
            PluginCandidate {
                path: format!("/{name}.so").into(),
                place: "user",
                trust: PluginFileTrust::Shipped,
                manifest: Manifest::parse(manifest.as_bytes()).unwrap(),
                description: Some(Ok(Description {
                    credentials,
                    provider,
                    ..Description::default()
                })),
            }
        };
        let candidates =
            [candidate("provider-moon", "MOON_ACCESS"), candidate("provider-sun", "SUN_ACCESS")];
        let plugins_disabled = vec!["provider-sun".to_owned()];
        let registry = Registry::build(
            candidates,
            &RegistryRules { plugins_disabled, ..RegistryRules::default() },
        );
        let expected = ["MOON_ACCESS", "MOON_PRESET"].map(str::to_owned);
        assert_eq!(declared_secrets(&registry), BTreeSet::from(expected));
    }

    #[track_caller]
    fn check_variables(given: &[&str], pass: &[&str], expected: &[&str]) {
        let variables: EnvironmentVariables = given.iter().map(|name| (*name, "value")).collect();
        let credentials = BTreeSet::from(["MOON_ACCESS".to_owned()]);
        let pass: Vec<_> = pass.iter().map(|name| (*name).to_owned()).collect();
        let kept = cleaned_variables(&variables, &credentials, &pass);
        let names: Vec<_> = kept.keys().map(|name| name.to_string_lossy()).collect();
        assert_eq!(names, expected);
    }

    #[test]
    fn names_that_look_like_secrets_are_left_out_in_any_case() {
        let secrets = [
            "OPENAI_API_KEY",
            "github_token",
            "MySecretThing",
            "PGPASSWORD",
            "ROOT_PASSWD",
            "AWS_CREDENTIALS_FILE",
            "PROXY_AUTHORIZATION",
        ];
        check_variables(&secrets, &[], &[]);
        check_variables(
            &["HOME", "PATH", "LC_ALL", "SSH_AUTH_SOCK", "TOKENIZERS_PARALLELISM"],
            &[],
            &["HOME", "LC_ALL", "PATH", "SSH_AUTH_SOCK", "TOKENIZERS_PARALLELISM"],
        );
    }

    #[test]
    fn variable_declared_by_a_provider_is_left_out_whatever_its_name() {
        check_variables(&["MOON_ACCESS", "MOON"], &[], &["MOON"]);
    }

    #[test]
    fn user_can_pass_a_secret_variable_by_its_exact_name() {
        check_variables(
            &["A_KEY", "B_KEY", "MOON_ACCESS"],
            &["A_KEY", "MOON_ACCESS"],
            &["A_KEY", "MOON_ACCESS"],
        );
        check_variables(&["A_KEY"], &["a_key", "KEY"], &[]);
    }

    #[test]
    fn an_empty_variable_stays_empty() {
        let variables: EnvironmentVariables = [("EMPTY", "")].into_iter().collect();
        assert_eq!(
            cleaned_variables(&variables, &BTreeSet::new(), &[])[&OsString::from("EMPTY")],
            ""
        );
    }
}
