//! The service `http.request`: the network, with the keys that the plugin may use and never sees.

use jaato_types::http::HTTP_REQUEST;

use super::{Answer, Service};
use crate::call::Call;
use crate::http;

/// Requests over HTTP.
pub struct Http;

impl Service for Http {
    fn has(&self, operation: &str) -> bool {
        operation == HTTP_REQUEST
    }

    fn call(&self, call: &Call, _operation: &str, request: Vec<u8>) -> Answer {
        let lent = (&call.shared.http, &call.shared.requests);
        let alive = call.site.alive.clone();
        http::request(lent, &call.plugin, &call.credentials, &request, alive)
    }
}
