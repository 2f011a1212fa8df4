//! The services `store.*`: what a plugin keeps of its own, over sessions and updates.

use std::sync::Arc;

use jaato_loader::Served;
use jaato_types::service::FolderAnswer;
use jaato_types::store::{
    DELETE, FOLDER, GET, LIST, SET, StoreDelete, StoreDeleted, StoreFolder, StoreGet, StoreKeys,
    StoreList, StoreOf, StoreSet, StoreStored, StoreValue,
};
use jaato_types::{Error, Frame, PluginName};
use serde::de::DeserializeOwned;

use super::{Answer, Service, bad_request, frame, ready, unknown};
use crate::call::Call;
use crate::store::{Expected, StorePlace, Stores};

/// The plugin's own store.
pub struct Store;

impl Service for Store {
    fn has(&self, operation: &str) -> bool {
        matches!(operation, GET | SET | DELETE | LIST | FOLDER)
    }

    fn call(&self, call: &Call, operation: &str, request: Vec<u8>) -> Answer {
        answer(&call.shared.stores, &call.plugin, operation, request)
    }
}

/// Answers an operation on the store of a plugin.
pub fn answer(
    stores: &Arc<Stores>,
    plugin: &PluginName,
    operation: &str,
    request: Vec<u8>,
) -> Answer {
    let of = match whose(operation, &request) {
        Ok(of) => of,
        Err(error) => return ready(Err(error)),
    };
    let (stores, place, operation) =
        (Arc::clone(stores), stores.place(plugin, of), operation.to_owned());
    Box::pin(async move {
        let place = place?;
        stores.work(move || work(&place, &operation, &request)).await
    })
}

/// Reads a request far enough to know whose values are meant.
fn whose(operation: &str, request: &[u8]) -> Result<StoreOf, Error> {
    Ok(match operation {
        GET => read::<StoreGet>(request)?.of,
        SET => read::<StoreSet>(request)?.of,
        DELETE => read::<StoreDelete>(request)?.of,
        LIST => read::<StoreList>(request)?.of,
        FOLDER => read::<StoreFolder>(request)?.of,
        other => return Err(unknown(other)),
    })
}

/// Does what is asked. Blocks on files.
fn work(place: &StorePlace, operation: &str, request: &[u8]) -> Result<Served, Error> {
    match operation {
        GET => match place.get(&read::<StoreGet>(request)?.key)? {
            None => frame(&StoreValue::default()),
            Some(value) => {
                let head = StoreValue::found(value.digest);
                Frame::write_with_bytes(&head, &value.bytes)
                    .map(Served::Frame)
                    .map_err(super::host_bug)
            }
        },
        SET => {
            let StoreSet { key, expected, .. } = read(request)?;
            let value = Frame::parse(request).map_err(bad_request)?.bytes;
            let digest = place.set(&key, value, &Expected::read(expected)?)?;
            frame(&StoreStored::new(digest))
        }
        DELETE => {
            let StoreDelete { key, expected, .. } = read(request)?;
            frame(&StoreDeleted::new(place.delete(&key, &Expected::read(expected)?)?))
        }
        LIST => frame(&StoreKeys::new(place.list(&read::<StoreList>(request)?.prefix)?)),
        FOLDER => frame(&FolderAnswer::new(place.folder()?.display().to_string())),
        other => Err(unknown(other)),
    }
}

/// Reads a request; one without JSON asks for what its defaults say.
fn read<T: Default + DeserializeOwned>(request: &[u8]) -> Result<T, Error> {
    let asked: Option<T> = Frame::read(request).map_err(bad_request)?;
    Ok(asked.unwrap_or_default())
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
