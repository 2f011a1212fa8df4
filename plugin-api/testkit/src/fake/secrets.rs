//! The secrets of a fake host's plugin: the services `secret.*`, in memory.

use std::collections::BTreeMap;

use jaato_types::secret::{
    DELETE, GET, NAME_BYTES_MAX, SECRETS_MAX, SET, SecretDeleteAnswer, SecretGetAnswer, SecretName,
    SecretSetAnswer, VALUE_BYTES_MAX,
};
use jaato_types::{Error, ErrorKind, Result};
use serde_json::json;

use super::services::{FakeServiceReply, ServiceRequest};

/// The secrets of a plugin.
#[derive(Default)]
pub(crate) struct FakeSecrets(BTreeMap<String, Vec<u8>>);

impl FakeSecrets {
    /// Returns true if an operation belongs to this service.
    pub(crate) fn is_operation(operation: &str) -> bool {
        matches!(operation, GET | SET | DELETE)
    }

    /// Answers like the host does.
    pub(crate) fn answer(&mut self, request: &ServiceRequest) -> Result<FakeServiceReply> {
        let SecretName { name, .. } = request.read::<Option<_>>()?.unwrap_or_default();
        if name.is_empty() || name.len() > NAME_BYTES_MAX || name.contains(char::is_control) {
            let text = format!(
                "the name of a secret has 1 to {NAME_BYTES_MAX} bytes and no control characters"
            );
            return Err(Error::new(ErrorKind::InvalidArguments, text));
        }
        let full = |text: String| Err(Error::new(ErrorKind::LimitReached, text));
        match request.operation.as_str() {
            GET => match self.0.get(&name) {
                None => FakeServiceReply::from_value(&SecretGetAnswer::new(false)),
                Some(value) => {
                    Ok(FakeServiceReply::Bytes(json!(SecretGetAnswer::new(true)), value.clone()))
                }
            },
            SET if request.bytes.len() > VALUE_BYTES_MAX => {
                full(format!("a secret has at most {VALUE_BYTES_MAX} bytes"))
            }
            SET if self.0.len() >= SECRETS_MAX && !self.0.contains_key(&name) => {
                full(format!("a plugin has at most {SECRETS_MAX} secrets"))
            }
            SET => {
                self.0.insert(name, request.bytes.clone());
                FakeServiceReply::from_value(&SecretSetAnswer::new(false))
            }
            _ => FakeServiceReply::from_value(&SecretDeleteAnswer::new(
                self.0.remove(&name).is_some(),
            )),
        }
    }
}
