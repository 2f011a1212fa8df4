//! The stored values of a fake host's plugin: the services `store.*`, in memory.

use std::collections::BTreeMap;
use std::path::Path;

use jaato_types::service::FolderAnswer;
use jaato_types::store::{
    ABSENT, BYTES_MAX, DELETE, FOLDER, GET, KEY_BYTES_MAX, KEYS_MAX, LIST, SET, StoreDelete,
    StoreDeleteAnswer, StoreFolder, StoreGet, StoreKeys, StoreList, StoreOwner, StoreSet,
    StoreSetAnswer, StoreValue, StoredKey, VALUE_BYTES_MAX,
};
use jaato_types::{Error, ErrorKind, Frame, Result};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::services::{FakeServiceReply, ServiceRequest};

/// The values of a plugin.
#[derive(Default)]
pub(crate) struct FakeStores(BTreeMap<(StoreOwner, String), Vec<u8>>);

impl FakeStores {
    /// Returns true if an operation belongs to the store.
    pub(crate) fn is_operation(operation: &str) -> bool {
        matches!(operation, GET | SET | DELETE | LIST | FOLDER)
    }

    /// Answers like the host does. Files are stored below the folder.
    pub(crate) fn answer(
        &mut self,
        request: &ServiceRequest,
        folder: &Path,
    ) -> Result<FakeServiceReply> {
        match request.operation.as_str() {
            GET => {
                let StoreGet { key, of, .. } = parse_request(request)?;
                check_key(&key)?;
                let Some(value) = self.0.get(&(of, key)) else {
                    return FakeServiceReply::from_value(&StoreValue::default());
                };
                Ok(FakeServiceReply::Bytes(
                    json!(StoreValue::found(value_digest(value))),
                    value.clone(),
                ))
            }
            SET => self.set_value(request),
            DELETE => {
                let StoreDelete { key, of, expected, .. } = parse_request(request)?;
                check_key(&key)?;
                self.check_expected_value(of, &key, expected.as_deref())?;
                FakeServiceReply::from_value(&StoreDeleteAnswer::new(
                    self.0.remove(&(of, key)).is_some(),
                ))
            }
            LIST => {
                let StoreList { prefix, of, .. } = parse_request(request)?;
                let of_place = self.0.iter().filter(|((place, _), _)| *place == of);
                let found = of_place.filter(|((_, key), _)| key.starts_with(&prefix));
                let keys = found.map(|((_, key), value)| StoredKey::new(key, value.len() as u64));
                FakeServiceReply::from_value(&StoreKeys::new(keys.collect()))
            }
            _ => {
                let StoreFolder { of, .. } = parse_request(request)?;
                let name =
                    if of == StoreOwner::Person { "store-person" } else { "store-workspace" };
                let folder = folder.join(name);
                let io = |error: std::io::Error| Error::new(ErrorKind::Io, error.to_string());
                std::fs::create_dir_all(&folder).map_err(io)?;
                FakeServiceReply::from_value(&FolderAnswer::new(folder.to_string_lossy()))
            }
        }
    }

    fn set_value(&mut self, request: &ServiceRequest) -> Result<FakeServiceReply> {
        let StoreSet { key, of, expected, .. } = parse_request(request)?;
        check_key(&key)?;
        let value = &request.bytes;
        if value.len() > VALUE_BYTES_MAX {
            let text = format!(
                "a value has at most {VALUE_BYTES_MAX} bytes, this one has {}",
                value.len()
            );
            return Err(Error::new(ErrorKind::LimitReached, text));
        }
        self.check_expected_value(of, &key, expected.as_deref())?;
        let others = self.0.iter().filter(|((place, other), _)| *place == of && *other != key);
        let (count, bytes) = others.fold((0, 0), |(count, bytes), ((_, key), value)| {
            (count + 1, bytes + disk_size(key, value))
        });
        if count >= KEYS_MAX || bytes + disk_size(&key, value) > BYTES_MAX {
            let text = format!("the store is full: {KEYS_MAX} values and {BYTES_MAX} bytes");
            return Err(Error::new(ErrorKind::LimitReached, text));
        }
        let answer = StoreSetAnswer::new(value_digest(value));
        self.0.insert((of, key), value.clone());
        FakeServiceReply::from_value(&answer)
    }

    fn check_expected_value(
        &self,
        of: StoreOwner,
        key: &str,
        expected: Option<&str>,
    ) -> Result<()> {
        let is_digest = |it: &str| it.len() == 64 && it.bytes().all(|it| it.is_ascii_hexdigit());
        let Some(expected) = expected else { return Ok(()) };
        if expected != ABSENT && !is_digest(expected) {
            let text = "`expected` is the SHA-256 of a value in hex, or `absent`";
            return Err(Error::new(ErrorKind::InvalidArguments, text));
        }
        let has = self.0.get(&(of, key.to_owned())).map(|value| value_digest(value));
        if has.as_deref().unwrap_or(ABSENT).eq_ignore_ascii_case(expected) {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Conflict, format!("`{key}` has changed")))
    }
}

fn parse_request<T: Default + serde::de::DeserializeOwned>(request: &ServiceRequest) -> Result<T> {
    Ok(request.read::<Option<T>>()?.unwrap_or_default())
}

fn check_key(key: &str) -> Result<()> {
    if key.is_empty() || key.len() > KEY_BYTES_MAX {
        let text = format!("a key has 1 to {KEY_BYTES_MAX} bytes, this one has {}", key.len());
        return Err(Error::new(ErrorKind::InvalidArguments, text));
    }
    Ok(())
}

/// Returns the size of a value as the host counts it: that of the file with the key and the value.
fn disk_size(key: &str, value: &[u8]) -> u64 {
    let head = Frame::write(key).map_or(0, |head| head.len());
    (head + value.len()) as u64
}

fn value_digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
