//! Chooses the server and builds URLs. Pure.

use jaato_plugin_sdk::{Error, ErrorKind, Result};

use crate::config::Config;

/// AI Studio's server.
pub const STUDIO: &str = "https://generativelanguage.googleapis.com";

/// Vertex AI's server for the location `global` and for requests without a project.
pub const VERTEX: &str = "https://aiplatform.googleapis.com";

/// The default location of a project's models. Newer models exist only there.
pub const GLOBAL: &str = "global";

/// Multi-region locations, whose servers have a different form of name.
const MULTI_REGIONS: [&str; 2] = ["eu", "us"];

/// Path endings that some users append to the server's root.
const ENDS: [&str; 3] = ["/v1beta1", "/v1beta", "/v1"];

/// The service to use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GoogleBackend {
    /// AI Studio, with an API key.
    Studio,
    /// Vertex AI, with a token and a project's account.
    Vertex {
        /// The project's id.
        project: String,
        /// The location in which to use models.
        location: String,
    },
    /// Vertex AI with an API key, which also identifies the project.
    Express,
}

/// A server and its service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GoogleEndpoint {
    /// The service to use.
    pub backend: GoogleBackend,
    /// The server's root.
    root: String,
}

impl GoogleEndpoint {
    /// Chooses the endpoint by the settings. If they name a project, the default is Vertex AI.
    ///
    /// # Errors
    /// `configuration` for a setting that cannot be part of a URL.
    pub fn from_config(config: &Config) -> Result<Self> {
        let is_vertex = config.vertex.unwrap_or_else(|| !config.project.trim().is_empty());
        let project = first_non_blank(&config.project, &config.default_project);
        let location = first_non_blank(&config.location, GLOBAL);
        let backend = match (is_vertex, project) {
            (false, _) => GoogleBackend::Studio,
            (true, "") => GoogleBackend::Express,
            (true, project) => GoogleBackend::Vertex {
                project: check_url_setting("project", project, ":.-_")?,
                location: check_url_setting("location", location, "-")?,
            },
        };
        let given = config.base_url.trim();
        let root = if given.is_empty() { backend.vendor_root_url() } else { root_url(given) };
        Ok(Self { backend, root })
    }

    /// Returns the URL at which a model generates an answer, streamed or complete.
    ///
    /// # Errors
    /// `configuration` for a model name that cannot be part of a URL.
    pub fn generation_url(&self, model: &str, streams: bool) -> Result<String> {
        let path = self.model_path(model)?;
        let method = if streams { "streamGenerateContent?alt=sse" } else { "generateContent" };
        Ok(format!("{}/{path}:{method}", self.versioned_root()))
    }

    /// Returns the URL that counts a request's tokens.
    ///
    /// # Errors
    /// The errors of [`GoogleEndpoint::generation_url`].
    pub fn token_count_url(&self, model: &str) -> Result<String> {
        Ok(format!("{}/{}:countTokens", self.versioned_root(), self.model_path(model)?))
    }

    /// Returns the URL of a page of the list of models.
    pub fn model_list_url(&self, page: &str, page_models: usize) -> String {
        let path = match self.backend {
            GoogleBackend::Studio => "models",
            GoogleBackend::Vertex { .. } | GoogleBackend::Express => "publishers/google/models",
        };
        let mut url = format!("{}/{path}?pageSize={page_models}", self.versioned_root());
        if !page.is_empty() {
            url.push_str(&format!("&pageToken={}", encode_for_url(page)));
        }
        url
    }

    /// Returns true for Vertex AI, which refuses call ids.
    pub fn is_vertex(&self) -> bool {
        self.backend != GoogleBackend::Studio
    }

    fn versioned_root(&self) -> String {
        let version = if self.is_vertex() { "v1beta1" } else { "v1beta" };
        format!("{}/{version}", self.root)
    }

    /// Returns the path of a model. A name without a slash is one of Google's own models, and any
    /// other name contains its path.
    fn model_path(&self, model: &str) -> Result<String> {
        let model = model.trim_matches('/');
        let model = model.strip_prefix("models/").unwrap_or(model);
        let is_own = !model.contains('/');
        if !model.is_empty() && model.split('/').any(|name| matches!(name, "" | "." | "..")) {
            let text = format!("the model name `{model}` cannot be part of a URL");
            return Err(Error::new(ErrorKind::Configuration, text));
        }
        let name = model.split('/').map(encode_for_url).collect::<Vec<_>>().join("/");
        Ok(match (&self.backend, is_own) {
            (GoogleBackend::Studio, true) => format!("models/{name}"),
            (GoogleBackend::Express, true) => format!("publishers/google/models/{name}"),
            (GoogleBackend::Studio | GoogleBackend::Express, false) => name,
            (GoogleBackend::Vertex { .. }, false) if name.starts_with("projects/") => name,
            (GoogleBackend::Vertex { project, location }, is_own) => {
                let google = if is_own { "publishers/google/models/" } else { "" };
                format!("projects/{project}/locations/{location}/{google}{name}")
            }
        })
    }
}

impl GoogleBackend {
    fn vendor_root_url(&self) -> String {
        match self {
            Self::Studio => STUDIO.to_owned(),
            Self::Express => VERTEX.to_owned(),
            Self::Vertex { location, .. } if location == GLOBAL => VERTEX.to_owned(),
            Self::Vertex { location, .. } if MULTI_REGIONS.contains(&location.as_str()) => {
                format!("https://aiplatform.{location}.rep.googleapis.com")
            }
            Self::Vertex { location, .. } => {
                format!("https://{location}-aiplatform.googleapis.com")
            }
        }
    }
}

/// Returns the first text that is not blank.
fn first_non_blank<'a>(one: &'a str, other: &'a str) -> &'a str {
    if one.trim().is_empty() { other.trim() } else { one.trim() }
}

/// Returns the root of a base URL as users write it.
fn root_url(base: &str) -> String {
    let base = base.trim_end_matches('/');
    let root = ENDS.iter().find_map(|end| base.strip_suffix(end)).unwrap_or(base);
    root.trim_end_matches('/').to_owned()
}

/// Checks a setting that becomes part of a URL or its host. Otherwise a setting could send a
/// conversation to any server.
fn check_url_setting(key: &str, text: &str, marks: &str) -> Result<String> {
    let begins_well = text.starts_with(|c: char| c.is_ascii_alphanumeric());
    if begins_well && text.chars().all(|c| c.is_ascii_alphanumeric() || marks.contains(c)) {
        return Ok(text.to_owned());
    }
    let text = format!("`{text}` is not a valid Google Cloud {key}");
    Err(Error::new(ErrorKind::Configuration, text).with_hint(
        "`gcloud projects list` shows your projects; a location looks like `us-central1`",
    ))
}

/// Encodes a text as a part of a URL.
fn encode_for_url(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~@".contains(&byte);
    let written = |byte: u8| {
        if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }
    };
    text.bytes().map(written).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_endpoint(
        base: &str,
        project: &str,
        location: &str,
        vertex: Option<bool>,
    ) -> GoogleEndpoint {
        let [base_url, project, location] = [base, project, location].map(str::to_owned);
        let config = Config { base_url, project, location, vertex, ..Config::default() };
        GoogleEndpoint::from_config(&config).unwrap()
    }

    fn generation_url_for(
        base: &str,
        project: &str,
        location: &str,
        vertex: Option<bool>,
    ) -> String {
        parse_endpoint(base, project, location, vertex).generation_url("m", true).unwrap()
    }

    #[test]
    fn a_project_leads_to_vertex_unless_the_settings_say_otherwise() {
        const METHOD: &str = "models/m:streamGenerateContent?alt=sse";
        let studio = format!("https://generativelanguage.googleapis.com/v1beta/{METHOD}");
        assert_eq!(generation_url_for("", "", "", None), studio);
        assert_eq!(generation_url_for("", "p", "us-central1", Some(false)), studio);
        let vertex = |host: &str, location: &str| {
            format!(
                "https://{host}/v1beta1/projects/p/locations/{location}/publishers/google/{METHOD}"
            )
        };
        assert_eq!(
            generation_url_for("", "p", "", None),
            vertex("aiplatform.googleapis.com", "global")
        );
        assert_eq!(
            generation_url_for("", " p ", "global", None),
            vertex("aiplatform.googleapis.com", "global")
        );
        assert_eq!(
            generation_url_for("", "p", "europe-west4", Some(true)),
            vertex("europe-west4-aiplatform.googleapis.com", "europe-west4")
        );
        assert_eq!(
            generation_url_for("", "p", "eu", None),
            vertex("aiplatform.eu.rep.googleapis.com", "eu")
        );
        assert_eq!(
            generation_url_for("", "", "", Some(true)),
            format!("https://aiplatform.googleapis.com/v1beta1/publishers/google/{METHOD}")
        );
    }

    #[test]
    fn default_project_is_used_only_if_vertex_is_requested() {
        let backend = |vertex, project: &str| {
            let (project, default_project) = (project.to_owned(), "d".to_owned());
            let config = Config { vertex, project, default_project, ..Config::default() };
            GoogleEndpoint::from_config(&config).unwrap().backend
        };
        let vertex = |project: &str| {
            let (project, location) = (project.to_owned(), GLOBAL.to_owned());
            GoogleBackend::Vertex { project, location }
        };
        assert_eq!(
            (backend(None, ""), backend(Some(false), "p")),
            (GoogleBackend::Studio, GoogleBackend::Studio)
        );
        assert_eq!((backend(Some(true), ""), backend(None, "p")), (vertex("d"), vertex("p")));
    }

    #[test]
    fn base_url_variants_give_the_same_endpoint() {
        for base in ["http://h:1/x", "http://h:1/x/", " http://h:1/x/v1beta/ ", "http://h:1/x/v1"] {
            assert_eq!(
                generation_url_for(base, "", "", None),
                "http://h:1/x/v1beta/models/m:streamGenerateContent?alt=sse"
            );
            assert!(
                generation_url_for(base, "p", "l", None)
                    .starts_with("http://h:1/x/v1beta1/projects/p/")
            );
        }
    }

    #[test]
    fn model_name_may_hold_a_path_inside_the_endpoint() {
        let (studio, vertex) =
            (parse_endpoint("http://h", "", "", None), parse_endpoint("http://h", "p", "l", None));
        let of = |endpoint: &GoogleEndpoint, model: &str| {
            let url = endpoint.generation_url(model, false).unwrap();
            url.strip_prefix("http://h/v1beta").unwrap().to_owned()
        };
        assert_eq!(of(&studio, "models/m"), "/models/m:generateContent");
        assert_eq!(of(&studio, "tunedModels/m"), "/tunedModels/m:generateContent");
        assert_eq!(of(&studio, "a:b?c#d"), "/models/a%3Ab%3Fc%23d:generateContent");
        let place = "1/projects/p/locations/l";
        assert_eq!(
            of(&vertex, "gemini@001"),
            format!("{place}/publishers/google/models/gemini@001:generateContent")
        );
        assert_eq!(of(&vertex, "endpoints/7"), format!("{place}/endpoints/7:generateContent"));
        assert_eq!(
            of(&vertex, "projects/q/locations/l/endpoints/7"),
            "1/projects/q/locations/l/endpoints/7:generateContent"
        );
        for bad in ["..", "a/../b", "a//b", "."] {
            assert_eq!(
                studio.generation_url(bad, true).unwrap_err().kind,
                ErrorKind::Configuration
            );
        }
    }

    #[test]
    fn model_list_url_has_page_size_and_page_token() {
        let studio = parse_endpoint("http://h", "", "", None);
        assert_eq!(studio.model_list_url("", 9), "http://h/v1beta/models?pageSize=9");
        assert_eq!(
            studio.model_list_url("a=b", 9),
            "http://h/v1beta/models?pageSize=9&pageToken=a%3Db"
        );
        let vertex = parse_endpoint("http://h", "p", "l", None);
        assert_eq!(
            vertex.model_list_url("", 9),
            "http://h/v1beta1/publishers/google/models?pageSize=9"
        );
    }

    #[test]
    fn a_setting_cannot_name_another_server() {
        for (project, location) in
            [("p", "evil.example/"), ("p", "a.b"), ("a/b", ""), ("p?", ""), ("..", ""), ("p", "-")]
        {
            let (project, location) = (project.to_owned(), location.to_owned());
            let config = Config { project, location, ..Config::default() };
            assert_eq!(
                GoogleEndpoint::from_config(&config).unwrap_err().kind,
                ErrorKind::Configuration
            );
        }
    }
}
