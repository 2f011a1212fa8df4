//! Finds the completions URL below an endpoint as users write it, with the organization that
//! requests are attributed to.

use jaato_plugin_sdk::{Error, ErrorKind, Result};

use crate::Config;

/// GitHub's own origin.
pub(crate) const ORIGIN: &str = "https://models.github.ai";

/// The origins that GitHub used. The second no longer resolves.
const RETIRED: [&str; 2] = [ORIGIN, "https://models.inference.ai.azure.com"];

/// The path of the inference API.
const INFERENCE: &str = "/inference";

/// The path of completions, which some users paste with the endpoint.
const COMPLETIONS: &str = "/chat/completions";

/// The URL of completions.
#[derive(Debug)]
pub(crate) struct GitHubEndpoint {
    pub(crate) url: String,
    /// True if the URL contains the configured organization, or if none is configured.
    pub(crate) is_attributed: bool,
}

/// Returns the URL of completions.
///
/// # Errors
/// `configuration` for an organization that GitHub could not have.
pub(crate) fn from_config(config: &Config) -> Result<GitHubEndpoint> {
    let organization = config.organization.trim();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !organization.chars().all(is_plain) {
        let text = format!("`{organization}` is not a valid GitHub organization name");
        return Err(Error::new(ErrorKind::Configuration, text)
            .with_hint("`JAATO_GITHUB_ORGANIZATION` is the name after `https://github.com/`"));
    }
    let base = config.base_url.trim();
    let (base, query) = base.split_at(base.find('?').unwrap_or(base.len()));
    let base = base.trim_end_matches('/');
    let base = base.strip_suffix(COMPLETIONS).unwrap_or(base);
    // The plugin does not know where to add an organization to an endpoint with a path of its own.
    let has_path = base.split_once("://").is_some_and(|(_, rest)| rest.contains('/'));
    let root = base.strip_suffix(INFERENCE).or_else(|| (!has_path).then_some(base));
    let (base, is_attributed) = match root.filter(|root| !root.contains("/orgs/")) {
        Some(root) if organization.is_empty() => (format!("{root}{INFERENCE}"), true),
        Some(root) => (format!("{root}/orgs/{organization}{INFERENCE}"), true),
        None => (base.to_owned(), organization.is_empty() || base.contains("/orgs/")),
    };
    Ok(GitHubEndpoint { url: format!("{base}{COMPLETIONS}{query}"), is_attributed })
}

/// Returns true for a URL of GitHub's own service, which has ended.
pub(crate) fn is_retired_url(url: &str) -> bool {
    let rests = RETIRED.iter().filter_map(|origin| url.strip_prefix(origin));
    rests.into_iter().any(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint_for(base: &str, organization: &str) -> Result<GitHubEndpoint> {
        let (base_url, organization) = (base.to_owned(), organization.to_owned());
        from_config(&Config { base_url, organization, ..Config::default() })
    }

    #[test]
    fn base_url_variants_give_the_same_endpoint() {
        for base in [
            "https://models.github.ai/inference",
            " https://models.github.ai/inference/ ",
            "https://models.github.ai",
            "https://models.github.ai/inference/chat/completions",
        ] {
            let url = endpoint_for(base, "").unwrap().url;
            assert_eq!(url, "https://models.github.ai/inference/chat/completions", "{base}");
            let url = endpoint_for(base, "moon").unwrap().url;
            assert_eq!(url, "https://models.github.ai/orgs/moon/inference/chat/completions");
        }
        let url = endpoint_for("http://h:1/inference?x=1", "moon").unwrap().url;
        assert_eq!(url, "http://h:1/orgs/moon/inference/chat/completions?x=1");
    }

    #[test]
    fn custom_endpoint_path_is_kept_and_the_organization_left_out() {
        for (base, organization, is_attributed) in [
            ("http://h:1/v1", "", true),
            ("http://h:1/v1", "moon", false),
            ("https://models.github.ai/orgs/sun/inference", "moon", true),
        ] {
            let endpoint = endpoint_for(base, organization).unwrap();
            assert_eq!(endpoint.url, format!("{base}/chat/completions"));
            assert_eq!(endpoint.is_attributed, is_attributed, "{base}");
        }
    }

    #[test]
    fn invalid_organization_name_is_refused() {
        for name in ["a/b", "../x", "a?b", "a b", "é"] {
            let error = endpoint_for(ORIGIN, name).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Configuration, "{name}");
        }
    }

    #[test]
    fn retired_service_is_recognized_by_its_host() {
        assert!(is_retired_url(ORIGIN) && is_retired_url("https://models.inference.ai.azure.com"));
        assert!(!is_retired_url("https://models.github.ai.evil/x") && !is_retired_url("http://h"));
    }
}
