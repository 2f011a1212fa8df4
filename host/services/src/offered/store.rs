//! The services `store.*`, which keep a plugin's own values across sessions and updates.

use std::sync::Arc;

use jaato_loader::EngineServiceAnswer;
use jaato_types::service::FolderAnswer;
use jaato_types::store::{
    DELETE, FOLDER, GET, LIST, SET, StoreDelete, StoreDeleteAnswer, StoreFolder, StoreGet,
    StoreKeys, StoreList, StoreOwner, StoreSet, StoreSetAnswer, StoreValue,
};
use jaato_types::{Error, Frame, PluginName};
use serde::de::DeserializeOwned;

use super::{
    Body, ServiceAnswer, bad_request_error, encode_answer, encode_answer_with_bytes, ready_answer,
    unknown_service_error,
};
use crate::call::ServiceCall;
use crate::store::{PluginStore, PluginStores, ValueCondition};

// Handwritten, so that the engine can check the store without a call.
pub(super) fn find_body(operation: &str) -> Option<Body> {
    matches!(operation, GET | SET | DELETE | LIST | FOLDER).then_some(answer_store_call)
}

fn answer_store_call(call: &ServiceCall, operation: &str, request: Vec<u8>) -> ServiceAnswer {
    answer_store_operation(&call.shared.stores, &call.plugin, operation, request)
}

/// Answers an operation on the store of a plugin.
pub fn answer_store_operation(
    stores: &Arc<PluginStores>,
    plugin: &PluginName,
    operation: &str,
    request: Vec<u8>,
) -> ServiceAnswer {
    let of = match parse_store_owner(operation, &request) {
        Ok(of) => of,
        Err(error) => return ready_answer(Err(error)),
    };
    let (stores, place, operation) =
        (Arc::clone(stores), stores.open_store(plugin, of), operation.to_owned());
    Box::pin(async move {
        let place = place?;
        stores.run_blocking(move || run_store_operation(&place, &operation, &request)).await
    })
}

/// Parses a request far enough to know whose values it is about.
fn parse_store_owner(operation: &str, request: &[u8]) -> Result<StoreOwner, Error> {
    Ok(match operation {
        GET => parse_or_default::<StoreGet>(request)?.of,
        SET => parse_or_default::<StoreSet>(request)?.of,
        DELETE => parse_or_default::<StoreDelete>(request)?.of,
        LIST => parse_or_default::<StoreList>(request)?.of,
        FOLDER => parse_or_default::<StoreFolder>(request)?.of,
        other => return Err(unknown_service_error(other)),
    })
}

/// Runs the operation. Blocks on files.
fn run_store_operation(
    place: &PluginStore,
    operation: &str,
    request: &[u8],
) -> Result<EngineServiceAnswer, Error> {
    match operation {
        GET => match place.get(&parse_or_default::<StoreGet>(request)?.key)? {
            None => encode_answer(StoreValue::default()),
            Some(value) => encode_answer_with_bytes((StoreValue::found(value.digest), value.bytes)),
        },
        SET => {
            let StoreSet { key, expected, .. } = parse_or_default(request)?;
            let value = Frame::parse(request).map_err(bad_request_error)?.bytes;
            let digest = place.set(&key, value, &ValueCondition::parse_condition(expected)?)?;
            encode_answer(StoreSetAnswer::new(digest))
        }
        DELETE => {
            let StoreDelete { key, expected, .. } = parse_or_default(request)?;
            encode_answer(StoreDeleteAnswer::new(
                place.delete(&key, &ValueCondition::parse_condition(expected)?)?,
            ))
        }
        LIST => encode_answer(StoreKeys::new(
            place.list(&parse_or_default::<StoreList>(request)?.prefix)?,
        )),
        FOLDER => encode_answer(FolderAnswer::new(place.folder()?.display().to_string())),
        other => Err(unknown_service_error(other)),
    }
}

/// Parses a request. A request without JSON has the default values.
fn parse_or_default<T: Default + DeserializeOwned>(request: &[u8]) -> Result<T, Error> {
    let asked: Option<T> = Frame::read(request).map_err(bad_request_error)?;
    Ok(asked.unwrap_or_default())
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
