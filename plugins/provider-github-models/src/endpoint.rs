//! The URL of completions: below an endpoint as people write it, with the organization to which
//! requests are attributed.

use jaato_plugin_sdk::{Error, ErrorKind, Result};

use crate::config::Config;

/// The hosts that GitHub had. The second is not found any more.
const RETIRED: [&str; 2] = ["https://models.github.ai", "https://models.inference.ai.azure.com"];

/// The path below which models are asked.
const INFERENCE: &str = "/inference";

/// The path of completions, which some people paste with the endpoint.
const COMPLETIONS: &str = "/chat/completions";

/// Where a request goes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
    pub(crate) url: String,
    /// Whether the organization that is set has a place in the URL.
    pub(crate) is_attributed: bool,
}

/// Finds it.
///
/// # Errors
/// `configuration` for an organization that GitHub could not have.
pub(crate) fn of_config(config: &Config) -> Result<Endpoint> {
    let organization = config.organization.trim();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !organization.chars().all(is_plain) {
        let text = format!("`{organization}` is no name of an organization of GitHub's");
        return Err(Error::new(ErrorKind::Configuration, text)
            .with_hint("`JAATO_GITHUB_ORGANIZATION` is what stands behind `https://github.com/`"));
    }
    let base = config.base_url.trim();
    let (base, query) = base.split_at(base.find('?').unwrap_or(base.len()));
    let base = base.trim_end_matches('/');
    let base = base.strip_suffix(COMPLETIONS).unwrap_or(base);
    // Of an endpoint with a path of its own nobody knows where an organization would stand.
    let root = base.strip_suffix(INFERENCE).or_else(|| (!has_path(base)).then_some(base));
    let root = root.filter(|root| !root.contains("/orgs/"));
    Ok(match root {
        Some(root) if !organization.is_empty() => Endpoint {
            url: format!("{root}/orgs/{organization}{INFERENCE}{COMPLETIONS}{query}"),
            is_attributed: true,
        },
        Some(root) => {
            Endpoint { url: format!("{root}{INFERENCE}{COMPLETIONS}{query}"), is_attributed: true }
        }
        None => Endpoint {
            url: format!("{base}{COMPLETIONS}{query}"),
            is_attributed: organization.is_empty() || base.contains("/orgs/"),
        },
    })
}

/// Tells whether a URL is of GitHub's own service, which is no more.
pub(crate) fn is_retired(url: &str) -> bool {
    RETIRED.iter().any(|host| {
        url.strip_prefix(host).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}

fn has_path(base: &str) -> bool {
    base.split_once("://").is_some_and(|(_, rest)| rest.contains('/'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::VENDOR;

    fn of(base: &str, organization: &str) -> Result<Endpoint> {
        let (base_url, organization) = (base.to_owned(), organization.to_owned());
        of_config(&Config { base_url, organization, ..Config::default() })
    }

    #[test]
    fn what_people_write_leads_to_the_same_place() {
        for base in [
            "https://models.github.ai/inference",
            " https://models.github.ai/inference/ ",
            "https://models.github.ai",
            "https://models.github.ai/inference/chat/completions",
        ] {
            let url = of(base, "").unwrap().url;
            assert_eq!(url, "https://models.github.ai/inference/chat/completions", "{base}");
            let url = of(base, "moon").unwrap().url;
            assert_eq!(url, "https://models.github.ai/orgs/moon/inference/chat/completions");
        }
        let url = of("http://h:1/inference?x=1", "moon").unwrap().url;
        assert_eq!(url, "http://h:1/orgs/moon/inference/chat/completions?x=1");
    }

    #[test]
    fn an_endpoint_with_a_path_of_its_own_keeps_it() {
        for (base, organization, is_attributed) in [
            ("http://h:1/v1", "", true),
            ("http://h:1/v1", "moon", false),
            ("https://models.github.ai/orgs/sun/inference", "moon", true),
        ] {
            let endpoint = of(base, organization).unwrap();
            assert_eq!(endpoint.url, format!("{base}/chat/completions"));
            assert_eq!(endpoint.is_attributed, is_attributed, "{base}");
        }
    }

    #[test]
    fn a_name_that_would_lead_elsewhere_is_none() {
        for name in ["a/b", "../x", "a?b", "a b", "é"] {
            let error = of(VENDOR, name).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Configuration, "{name}");
        }
    }

    #[test]
    fn the_service_that_is_no_more_is_told_by_its_host() {
        assert!(is_retired(VENDOR) && is_retired("https://models.inference.ai.azure.com"));
        assert!(!is_retired("https://models.github.ai.evil/x") && !is_retired("http://h"));
    }
}
