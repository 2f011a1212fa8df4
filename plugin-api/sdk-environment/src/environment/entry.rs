//! The entry through which the sdk reaches an environment.

use std::any::TypeId;
use std::sync::Arc;

use jaato_plugin_sdk::__private::EnvironmentEntry;
use jaato_types::execution::EnvironmentPart;

use super::dispatch;
use super::files::NoFiles;
use super::handle_table::EnvironmentHandleTable;
use super::shell::NoShell;
use super::terminals::NoTerminals;
use super::traits::ExecutionEnvironment;

/// Returns the entry of an environment. `export_plugin!` calls it.
pub fn entry<E: ExecutionEnvironment>() -> EnvironmentEntry<E::State> {
    EnvironmentEntry {
        spec: E::spec,
        lacks: list_missing_parts::<E>,
        desk: |home| Arc::new(EnvironmentHandleTable::<E>::new(home)),
        call: |cx, desk, operation, frame| {
            let Some(desk) = desk.downcast_ref::<EnvironmentHandleTable<E>>() else {
                unreachable!("made by the same entry")
            };
            Box::pin(dispatch::answer_operation(cx, desk, operation, frame))
        },
    }
}

/// Lists the parts that an environment lacks, by its types.
fn list_missing_parts<E: ExecutionEnvironment>() -> Vec<EnvironmentPart> {
    let parts = [
        (TypeId::of::<E::Files>() == TypeId::of::<NoFiles>(), EnvironmentPart::Files),
        (TypeId::of::<E::Shell>() == TypeId::of::<NoShell>(), EnvironmentPart::Shell),
        (TypeId::of::<E::Terminals>() == TypeId::of::<NoTerminals>(), EnvironmentPart::Terminals),
    ];
    parts.into_iter().filter_map(|(is_none, part)| is_none.then_some(part)).collect()
}
