//! A fake of GitHub Models as documented until its retirement: its paths, headers and limits in
//! front of OpenAI's chat completions.

use jaato_types::Error;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::openai::{FakeOpenAi, OpenAiTurn};
use super::{VendorAnswer, VendorRequest};
use jaato_plugin_testkit::{FakeHttpAnswer, FakeHttpRequest};

/// The version of the API.
const VERSION: &str = "2022-11-28";

/// The treatment of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GitHubRequestHandling {
    /// The request is answered.
    Open,
    /// The token has no permission.
    Forbidden,
    /// The request has more tokens than the plan allows.
    TooLarge,
    /// A limit was reached: its name, and the seconds until its reset, sent in `retry-after` or in
    /// a special header.
    Limited(&'static str, u64),
    /// The service was retired.
    Retired,
}

/// The fake vendor.
pub struct FakeGitHub {
    models: FakeOpenAi,
    ways: Mutex<Vec<GitHubRequestHandling>>,
    paths: Mutex<Vec<String>>,
}

impl FakeGitHub {
    /// Creates the vendor with these answers, one for each accepted request.
    pub fn new(script: impl IntoIterator<Item = OpenAiTurn>) -> Self {
        Self { models: FakeOpenAi::new(script), ways: Mutex::default(), paths: Mutex::default() }
    }

    /// Reduces the context window of all models.
    #[must_use]
    pub fn with_window(self, tokens: u64) -> Self {
        Self { models: self.models.with_window(tokens), ..self }
    }

    /// Sets the treatment of the next requests.
    #[must_use]
    pub fn with_request_handling(
        self,
        ways: impl IntoIterator<Item = GitHubRequestHandling>,
    ) -> Self {
        let mut ways: Vec<GitHubRequestHandling> = ways.into_iter().collect();
        ways.reverse();
        Self { ways: Mutex::new(ways), ..self }
    }

    /// Returns the bodies of the accepted requests, in order.
    pub fn accepted_requests(&self) -> Vec<Value> {
        self.models.accepted_requests()
    }

    /// Returns the paths of the requests.
    pub fn request_paths(&self) -> Vec<String> {
        self.paths.lock().clone()
    }

    /// Answers a request.
    pub fn answer(&self, asked: &VendorRequest) -> VendorAnswer {
        self.paths.lock().push(asked.path.clone());
        let way = self.ways.lock().pop().unwrap_or(GitHubRequestHandling::Open);
        if let Some(refused) = configured_refusal(&way).or_else(|| check_required_headers(asked)) {
            return refused;
        }
        let mut body: Value = serde_json::from_slice(&asked.body).unwrap_or(Value::Null);
        let name = body["model"].as_str().unwrap_or_default();
        let Some(name) = name.strip_prefix("openai/").map(str::to_owned) else {
            let text = format!("Unknown model: {name}");
            return refusal_answer(404, "unknown_model", &text, &[]);
        };
        body["model"] = json!(name);
        let inner = VendorRequest {
            path: "/v1/chat/completions".to_owned(),
            body: body.to_string().into_bytes(),
            ..asked.clone()
        };
        self.models.answer(&inner)
    }

    /// Answers a plugin's request instead of a fake host, which adds the token.
    pub fn answer_plugin(&self, request: &FakeHttpRequest) -> Result<FakeHttpAnswer, Error> {
        let head = &request.head;
        let mut headers = head.headers.clone();
        let with_credential = head.credential.as_deref() == Some("GITHUB_TOKEN");
        if with_credential {
            headers.push(("authorization".to_owned(), "Bearer token".to_owned()));
        }
        let rest = head.url.split_once("://").map_or(head.url.as_str(), |(_, rest)| rest);
        let path = rest.find('/').map_or("/", |at| &rest[at..]).to_owned();
        let (method, body) = (head.method.clone(), request.body.clone());
        Ok(self
            .answer(&VendorRequest { method, path, headers, body })
            .into_plugin_answer(with_credential))
    }
}

/// Checks the requirements of the documentation for each request.
fn check_required_headers(asked: &VendorRequest) -> Option<VendorAnswer> {
    let of_organization = asked.path.strip_prefix("/orgs/").and_then(|rest| rest.split_once('/'));
    let path = match of_organization {
        Some((name, rest)) if !name.is_empty() => rest,
        _ => asked.path.strip_prefix('/').unwrap_or_default(),
    };
    let authorization = asked.header("authorization").unwrap_or_default();
    let accepts = asked.header("accept").unwrap_or_default();
    let (status, code, message) = if asked.method != "POST" || path != "inference/chat/completions"
    {
        (404, "not_found", "Not Found")
    } else if !authorization.starts_with("Bearer ") {
        (401, "unauthorized", "Bad credentials")
    } else if !accepts.contains("application/vnd.github+json") {
        (406, "not_acceptable", "Must accept 'application/json'")
    } else if asked.header("x-github-api-version") != Some(VERSION) {
        (400, "bad_version", "The version of the API is not known")
    } else {
        return None;
    };
    Some(refusal_answer(status, code, message, &[]))
}

fn configured_refusal(way: &GitHubRequestHandling) -> Option<VendorAnswer> {
    let (status, code, message) = match way {
        GitHubRequestHandling::Open => return None,
        GitHubRequestHandling::Forbidden => (403, "no_access", "No access to model: openai/gpt-4o"),
        GitHubRequestHandling::TooLarge => {
            (413, "tokens_limit_reached", "Request body too large for gpt-4o model.")
        }
        GitHubRequestHandling::Retired => {
            (410, "retirement_brownout", "GitHub Models is being retired.")
        }
        GitHubRequestHandling::Limited(kind, seconds) => {
            let seconds = seconds.to_string();
            let wait = if *kind == "UserByModelByDay" { "retry-after" } else { "x-other" };
            let headers = [
                ("x-ratelimit-type", *kind),
                ("x-ratelimit-timeremaining", &seconds),
                (wait, &seconds),
            ];
            return Some(refusal_answer(429, "RateLimitReached", "Rate limit exceeded.", &headers));
        }
    };
    Some(refusal_answer(status, code, message, &[]))
}

fn refusal_answer(
    status: u16,
    code: &str,
    message: &str,
    headers: &[(&str, &str)],
) -> VendorAnswer {
    let error = json!({ "code": code, "message": message, "details": message });
    let own = [("content-type", "application/json")];
    let headers = own.iter().chain(headers);
    VendorAnswer {
        status,
        headers: headers.map(|(name, value)| ((*name).into(), (*value).into())).collect(),
        body: json!({ "error": error }).to_string().into_bytes(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn github_accepts_only_posts_to_completions() {
        let refused = |method: &str, path: &str| {
            let (method, path) = (method.to_owned(), path.to_owned());
            let asked = VendorRequest { method, path, headers: Vec::new(), body: Vec::new() };
            check_required_headers(&asked).map(|answered| answered.status)
        };
        for (method, path, status) in [
            ("POST", "/inference/chat/completions", 401),
            ("POST", "/orgs/moon/inference/chat/completions", 401),
            ("GET", "/inference/chat/completions", 404),
            ("POST", "/orgs//inference/chat/completions", 404),
            ("POST", "//inference/chat/completions", 404),
            ("POST", "/inference/models", 404),
        ] {
            assert_eq!(refused(method, path), Some(status), "{method} {path}");
        }
    }
}
