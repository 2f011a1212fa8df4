//! Backends as data: how to ask a search service, and where its answer has the results.

use std::collections::BTreeMap;

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::serde_json;
use url::Url;

/// The backends that are built in, in the same form as those of the configuration.
const BUILT_IN: &str = include_str!("../data/backends.json");

/// The longest query, in characters. Services cut longer ones.
pub const QUERY_LETTERS_MAX: usize = 400;

/// A search service.
#[tool_type]
#[derive(Clone, Default, PartialEq)]
#[serde(default)]
pub struct Backend {
    /// Its name for users.
    pub title: String,
    /// The URL that is asked. `{searxng_url}` is that setting.
    pub url: String,
    /// The variable of its API key: `BRAVE_API_KEY`, `TAVILY_API_KEY` or `WEB_SEARCH_API_KEY`.
    pub key: String,
    /// Parameters of the URL. In all values, `{query}` is the query and `{count}` the wanted number
    /// of results.
    pub query: BTreeMap<String, String>,
    /// The fields of a form, sent by POST.
    pub form: BTreeMap<String, String>,
    /// A JSON body, sent by POST.
    pub body: BTreeMap<String, String>,
    /// Additional headers.
    pub headers: BTreeMap<String, String>,
    /// Whether the answer is a page instead of JSON. The texts below are then CSS selectors instead
    /// of JSON pointers.
    pub html: bool,
    /// Where the results are.
    pub results: String,
    /// Where each result has its parts.
    pub fields: ResultFields,
    /// Where JSON lists engines that did not answer.
    pub failed_engines: String,
    /// What occurs in a page that checks whether a human reads it.
    pub blocked: String,
    /// How URLs of advertisements begin.
    pub advertisements: String,
    /// The parameter of a result's URL that contains the real URL.
    pub unwrap: String,
}

/// Where a result has its parts.
#[tool_type]
#[derive(Clone, Default, PartialEq)]
#[serde(default)]
pub struct ResultFields {
    /// The title.
    pub title: String,
    /// The URL.
    pub url: String,
    /// A part of the page's text.
    pub snippet: String,
    /// The date of the page.
    pub date: String,
}

/// A request to a backend.
#[derive(Debug, PartialEq, Eq)]
pub struct SearchRequest {
    pub method: &'static str,
    pub url: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// Returns the backends that are built in, by name.
pub fn built_in_backends() -> Result<BTreeMap<String, Backend>> {
    serde_json::from_str(BUILT_IN)
        .map_err(|error| Error::failed(format!("built-in backends: {error}")))
}

impl Backend {
    /// Builds the request for a query. `base` replaces scheme, host and port.
    pub fn build_request(
        &self,
        query: &str,
        count: usize,
        searxng_url: &str,
        base: Option<&str>,
    ) -> Result<SearchRequest> {
        let wrong = |why: String| {
            let text = format!("the URL of the search backend `{}` is wrong: {why}", self.title);
            Error::new(ErrorKind::Configuration, text)
        };
        let whole = self.url.replace("{searxng_url}", searxng_url.trim_end_matches('/'));
        let mut url = Url::parse(&whole).map_err(|error| wrong(error.to_string()))?;
        if let Some(base) = base {
            let base = Url::parse(base).map_err(|error| wrong(error.to_string()))?;
            let path = format!("{}{}", base.path().trim_end_matches('/'), url.path());
            url = base.join(&path).map_err(|error| wrong(error.to_string()))?;
        }
        let fill =
            |text: &str| text.replace("{count}", &count.to_string()).replace("{query}", query);
        if !self.query.is_empty() {
            let mut pairs = url.query_pairs_mut();
            for (name, value) in &self.query {
                pairs.append_pair(name, &fill(value));
            }
        }
        let mut headers: Vec<_> =
            self.headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        let mut body = Vec::new();
        if !self.form.is_empty() {
            let mut form = url::form_urlencoded::Serializer::new(String::new());
            form.extend_pairs(self.form.iter().map(|(name, value)| (name, fill(value))));
            body = form.finish().into_bytes();
            let kind = "application/x-www-form-urlencoded".to_owned();
            headers.push(("content-type".to_owned(), kind));
        } else if !self.body.is_empty() {
            let field = |value: &String| match value.as_str() {
                "{count}" => Value::from(count),
                other => Value::from(fill(other)),
            };
            let fields = self.body.iter().map(|(name, value)| (name.clone(), field(value)));
            body = Value::Object(fields.collect()).to_string().into_bytes();
            headers.push(("content-type".to_owned(), "application/json".to_owned()));
        }
        let method = if body.is_empty() { "GET" } else { "POST" };
        Ok(SearchRequest { method, url: url.into(), headers, body })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request_of_backend(name: &str, searxng_url: &str, base: Option<&str>) -> SearchRequest {
        built_in_backends().unwrap()[name].build_request("a b&c", 5, searxng_url, base).unwrap()
    }

    #[test]
    fn built_in_backends_are_asked_in_their_own_form() {
        let searxng = request_of_backend("searxng", "https://s.example/x/", None);
        assert_eq!(
            (searxng.method, searxng.url.as_str()),
            ("GET", "https://s.example/x/search?format=json&q=a+b%26c")
        );
        let brave = request_of_backend("brave", "", None);
        assert_eq!(brave.url, "https://api.search.brave.com/res/v1/web/search?count=5&q=a+b%26c");
        let tavily = request_of_backend("tavily", "", Some("http://127.0.0.1:8/"));
        assert_eq!((tavily.method, tavily.url.as_str()), ("POST", "http://127.0.0.1:8/search"));
        assert_eq!(tavily.body, br#"{"max_results":5,"query":"a b&c"}"#);
        let duckduckgo = request_of_backend("duckduckgo", "", None);
        assert_eq!(duckduckgo.body, b"b=&kl=wt-wt&q=a+b%26c");
    }

    #[test]
    fn wrong_url_is_a_configuration_error() {
        let backend =
            Backend { title: "x".into(), url: "{searxng_url}/s".into(), ..Backend::default() };
        let error = backend.build_request("q", 1, "nothing", None).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Configuration);
    }
}
