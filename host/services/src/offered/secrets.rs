//! The services `secret.*` for a plugin's own secrets. They need the grant `secret`.

use std::sync::Arc;

use jaato_loader::EngineServiceAnswer;
use jaato_types::secret::{
    DELETE, GET, SET, SecretDeleteAnswer, SecretGetAnswer, SecretName, SecretSetAnswer,
};
use jaato_types::{Error, Frame, PluginName};

use super::{
    Body, ServiceAnswer, bad_request_error, encode_answer, encode_answer_with_bytes,
    unknown_service_error,
};
use crate::call::ServiceCall;
use crate::secret_place::SecretStorageKind;
use crate::secrets::PluginSecrets;

// Handwritten, so that the engine can check secrets without a call.
pub(super) fn find_body(operation: &str) -> Option<Body> {
    matches!(operation, GET | SET | DELETE).then_some(answer_secrets_call)
}

fn answer_secrets_call(call: &ServiceCall, operation: &str, request: Vec<u8>) -> ServiceAnswer {
    answer_secrets_operation(&call.shared.secrets, &call.plugin, operation, request)
}

/// Answers an operation on the secrets of a plugin.
pub fn answer_secrets_operation(
    secrets: &Arc<PluginSecrets>,
    plugin: &PluginName,
    operation: &str,
    request: Vec<u8>,
) -> ServiceAnswer {
    let (secrets, plugin) = (Arc::clone(secrets), plugin.clone());
    let operation = operation.to_owned();
    Box::pin(async move { run_secrets_operation(&secrets, &plugin, &operation, &request).await })
}

async fn run_secrets_operation(
    secrets: &PluginSecrets,
    plugin: &PluginName,
    operation: &str,
    request: &[u8],
) -> Result<EngineServiceAnswer, Error> {
    let parsed = Frame::parse(request).map_err(bad_request_error)?;
    let asked: Option<SecretName> = parsed.json().map_err(bad_request_error)?;
    let SecretName { name } = asked.unwrap_or_default();
    match operation {
        GET => match secrets.get(plugin, &name).await? {
            None => encode_answer(SecretGetAnswer::new(false)),
            Some(value) => encode_answer_with_bytes((SecretGetAnswer::new(true), value)),
        },
        SET => {
            let stored = secrets.set(plugin, &name, parsed.bytes.to_vec()).await?;
            encode_answer(SecretSetAnswer::new(stored == SecretStorageKind::Tool))
        }
        DELETE => encode_answer(SecretDeleteAnswer::new(secrets.delete(plugin, &name).await?)),
        other => Err(unknown_service_error(other)),
    }
}

#[cfg(test)]
#[path = "secrets_tests.rs"]
mod tests;
