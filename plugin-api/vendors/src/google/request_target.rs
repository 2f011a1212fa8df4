//! The server and model of a URL, and the credentials that it requires.

use super::models::{self, FakeGoogleModel};
use super::{BAD_KEY, GoogleCheckResult, GoogleRequestFault, VendorRequest};

/// Locations that serve models of the third generation and later.
const NEW_LOCATIONS: [&str; 3] = ["global", "us", "eu"];

/// The target of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct GoogleRequestTarget<'a> {
    server: FakeGoogleServer<'a>,
    model: &'a str,
    pub(super) streams: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FakeGoogleServer<'a> {
    Studio,
    Vertex { location: &'a str },
    Express,
}

impl<'a> GoogleRequestTarget<'a> {
    /// Parses the path of a request to generate.
    pub(super) fn parse_path(path: &'a str) -> Option<Self> {
        let (path, method) = path.rsplit_once(':')?;
        let streams = match method {
            "generateContent" => false,
            "streamGenerateContent" => true,
            _ => return None,
        };
        let studio = ["/v1beta/models/", "/v1/models/"];
        let (server, model) = match studio.iter().find_map(|begin| path.strip_prefix(begin)) {
            Some(model) => (FakeGoogleServer::Studio, model),
            None => {
                let (before, model) = path.split_once("/publishers/google/models/")?;
                match before.strip_prefix("/v1beta1")?.split('/').collect::<Vec<_>>().as_slice() {
                    [""] => (FakeGoogleServer::Express, model),
                    ["", "projects", project, "locations", location] if !project.is_empty() => {
                        (FakeGoogleServer::Vertex { location }, model)
                    }
                    _ => return None,
                }
            }
        };
        Some(Self { server, model, streams })
    }

    pub(super) fn is_studio(&self) -> bool {
        self.server == FakeGoogleServer::Studio
    }

    /// Returns true if calls have ids. Vertex AI sends none and accepts none.
    pub(super) fn has_call_ids(&self) -> bool {
        self.is_studio()
    }

    pub(super) fn check_credential(&self, asked: &VendorRequest) -> GoogleCheckResult {
        match self.server {
            FakeGoogleServer::Studio | FakeGoogleServer::Express => check_api_key(asked),
            FakeGoogleServer::Vertex { .. } => check_access_token(asked),
        }
    }

    /// Finds the model, if this server has it.
    pub(super) fn requested_model(&self) -> GoogleCheckResult<&'static FakeGoogleModel> {
        let found = models::find_model(self.model);
        match (self.server, found) {
            (FakeGoogleServer::Vertex { location }, Some(model))
                if model.generation.0 >= 3 && !NEW_LOCATIONS.contains(&location) =>
            {
                Err(GoogleRequestFault::new(
                    404,
                    "NOT_FOUND",
                    format!(
                        "Publisher Model `publishers/google/models/{}` was not found or your project does not have access to it.",
                        self.model
                    ),
                ))
            }
            (_, Some(model)) => Ok(model),
            (_, None) => Err(GoogleRequestFault::new(
                404,
                "NOT_FOUND",
                format!(
                    "models/{} is not found for API version v1beta, or is not supported for generateContent. Call ListModels to see the list of available models and their supported methods.",
                    self.model
                ),
            )),
        }
    }
}

/// Checks a key like AI Studio does, where a wrong key is an invalid argument.
pub(super) fn check_api_key(asked: &VendorRequest) -> GoogleCheckResult {
    match (asked.header("x-goog-api-key"), asked.header("authorization")) {
        (Some(BAD_KEY | ""), None) => {
            let text = "API key not valid. Please pass a valid API key.";
            Err(super::invalid_request(text).with_reason("API_KEY_INVALID"))
        }
        (Some(_), None) => Ok(()),
        _ => {
            let text = "Method doesn't allow unregistered callers (callers without established identity). Please use API Key or other form of API consumer identity to call this API.";
            Err(GoogleRequestFault::new(403, "PERMISSION_DENIED", text))
        }
    }
}

/// Checks a token.
pub(super) fn check_access_token(asked: &VendorRequest) -> GoogleCheckResult {
    let token = asked.header("authorization").and_then(|value| value.strip_prefix("Bearer "));
    if token.is_some_and(|token| !token.is_empty()) && asked.header("x-goog-api-key").is_none() {
        return Ok(());
    }
    let text = "Request is missing required authentication credential. Expected OAuth 2 access token, login cookie or other valid authentication credential.";
    Err(GoogleRequestFault::new(401, "UNAUTHENTICATED", text).with_reason("CREDENTIALS_MISSING"))
}
