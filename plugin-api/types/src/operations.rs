//! The table of the services. Each operation that the host offers to plugins is one row.
//!
//! The rows are in `service_operations!`, in the modules with the request and answer types. A row
//! looks like this:
//!
//! ```text
//! /// A summary, for authors and for docs/services.md.
//! [reads] body CONSTANT "name": Request + bytes => Answer + bytes, sdk [(&Request).field: Type];
//! ```
//!
//! `[reads]`, `+ bytes`, `+ stream` and `sdk` are optional:
//!
//! - `[reads]` allows the operation in a context that only reads. `[hooks]` allows it in a hook
//!   whose plugin has the grant for it.
//! - `body` is the name of the host's function and of the sdk's method.
//! - `+ bytes` means that raw bytes follow the JSON, and `+ stream` that the answer opens a stream.
//!   `()` means no JSON. A plugin may omit an `(Option<Request>)`.
//! - `sdk` generates the sdk's method. The method takes the request, `(&Request)` or `(Request)`,
//!   some of its fields, `{ name: &str }`, or nothing, `()`. It returns the answer, one of its
//!   fields (`.field: Type`), or a type that wraps the stream (`as Type`). All other methods are
//!   handwritten in the sdk.
//!
//! The macro generates the constant and the [`Operation`]. It also exports a macro with the group's
//! name, which passes the rows to another macro. The sdk generates methods from them. The host
//! decodes the request, calls the body and encodes the answer.

use serde_json::Value;

/// An operation that the host offers to plugins.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Operation {
    /// The operation's name on the wire.
    pub name: &'static str,
    /// A description, which may have several lines.
    pub summary: &'static str,
    /// The type of the request.
    pub request: &'static str,
    /// The type of the answer.
    pub answer: &'static str,
    /// The name of the grant that the operation needs.
    pub grant: Option<&'static str>,
    /// True if the operation only reads. A plugin needs no permission for these operations in a
    /// hook, a preview, or a condition. Those run at any time, and the user has not allowed them to
    /// write, run, send or ask.
    pub only_reads: bool,
    /// True if a hook may use the operation with its grant. See
    /// [`required_grant_in_hook`](crate::grant::required_grant_in_hook).
    pub in_hooks: bool,
    /// Decodes a request like the host and returns the default answer, for the fake host. `None`
    /// for streams and for operations that the host passes on.
    #[doc(hidden)]
    pub default_answer: Option<fn(&Value) -> serde_json::Result<Value>>,
}

/// Lists all service operations, in the order of their groups.
pub fn operations() -> impl Iterator<Item = &'static Operation> {
    macro_rules! groups {
        ($($module:ident::$group:ident)*) => { [$($crate::$module::$group()),*] };
    }
    let groups: [&[Operation]; 27] = groups! {
        service::session_operations service::asset_operations service::output_operations
        service::attach_operations service::blob_operations large::request_operations
        store::store_operations secret::secret_operations http::http_operations
        count::count_operations tool_calls::tool_call_operations tools_list::tools_list_operations
        tools_set::tools_set_operations tasks::task_operations model::model_operations
        history::history_operations child::child_operations ask::ask_operations
        notify::notify_operations workspace_file::workspace_file_operations
        objects::object_operations resources::resource_operations
        execution::environment_operations files::file_operations process::process_operations
        host_process::host_process_operations terminal::terminal_operations
    };
    groups.into_iter().flatten()
}

/// Finds an operation by its name.
pub fn operation_named(name: &str) -> Option<&'static Operation> {
    operations().find(|operation| operation.name == name)
}

/// Declares a group of operations. Takes `$`, the group's name, the grant, `answered` or
/// `passed_on`, and the rows. The host answers `answered` operations itself and forwards the frames
/// of `passed_on` operations. The exported macro needs the `$` because a macro cannot write one.
macro_rules! service_operations {
    ($d:tt $group:ident, $grant:expr, $by:ident;
        $(
            $(#[doc = $doc:literal])+
            $([$mark:ident])? $body:ident $constant:ident $name:literal:
            $request:tt $(+ $request_extra:ident)? => $answer:tt $(+ $answer_extra:ident)?
            $(, sdk $sdk:tt)?;
        )+
    ) => {
        $(
            $(#[doc = $doc])+
            #[doc = concat!(
                "\n\nRequest: `", stringify!($request $(+ $request_extra)?), "`, answer: `",
                stringify!($answer $(+ $answer_extra)?), "`."
            )]
            pub const $constant: &str = $name;
        )+

        /// The rows of this group.
        #[allow(unused_parens)]
        pub(crate) fn $group() -> &'static [$crate::operations::Operation] {
            const ROWS: &[$crate::operations::Operation] = &[$($crate::operations::Operation {
                name: $name,
                summary: concat!($($doc, "\n"),+),
                request: stringify!($request $(+ $request_extra)?),
                answer: stringify!($answer $(+ $answer_extra)?),
                grant: $grant,
                only_reads: $crate::operations::is_marked!(reads $($mark)?),
                in_hooks: $crate::operations::is_marked!(hooks $($mark)?),
                default_answer: $crate::operations::default_answer!(
                    $by $request $answer $($answer_extra)?
                ),
            }),+];
            ROWS
        }

        /// Passes the rows of this group to a macro.
        #[doc(hidden)]
        #[macro_export]
        macro_rules! $group {
            ($d make:ident $d($d to:tt)?) => {
                $d make! {
                    $d($d to)?
                    $(
                        $(#[doc = $doc])+
                        $body $name: $request $(+ $request_extra)? => $answer $(+ $answer_extra)?
                        $(, sdk $sdk)?;
                    )+
                }
            };
        }
    };
}

/// Returns true if a row has this mark.
macro_rules! is_marked {
    (reads reads) => {
        true
    };
    (hooks hooks) => {
        true
    };
    ($wanted:ident $($mark:ident)?) => {
        false
    };
}

/// Creates the function that returns a default answer.
macro_rules! default_answer {
    (passed_on $($row:tt)+) => {
        None
    };
    (answered $request:tt $answer:tt stream) => {
        None
    };
    (answered $request:tt $answer:tt $(bytes)?) => {
        Some(|request| {
            serde::Deserialize::deserialize(request).map(|_: $request| ())?;
            serde_json::to_value(<$answer>::default())
        })
    };
}

/// Creates the constructor of an answer that plugin authors only read.
macro_rules! made_by_host {
    ($answer:ident($($field:ident: $type:ty),+)) => {
        impl $answer {
            /// Creates a value. Only the host needs this.
            pub fn new($($field: $type),+) -> Self {
                Self { $($field: $field.into()),+ }
            }
        }
    };
}

pub(crate) use {default_answer, is_marked, made_by_host, service_operations};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grant::required_grant_in_hook;

    #[test]
    fn operation_names_are_unique_and_their_grants_exist() {
        let mut names: Vec<_> = operations().map(|operation| operation.name).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        for operation in operations() {
            let is_known = operation.grant.is_none_or(|it| crate::grant::grant_named(it).is_some());
            assert!(is_known, "{operation:?}");
        }
    }

    #[test]
    fn operations_of_hooks_need_a_grant_there() {
        let marked = operations().filter(|it| it.in_hooks);
        let names: Vec<_> = marked.map(|it| (it.name, required_grant_in_hook(it.name))).collect();
        let (programs, host) = (Some("process"), Some("host_process"));
        let expected = [
            ("model.complete", Some("model.complete")),
            ("process.spawn", programs),
            ("process.write", programs),
            ("process.signal", programs),
            ("process.end", programs),
            ("host_process.spawn", host),
            ("host_process.write", host),
            ("host_process.signal", host),
            ("host_process.end", host),
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn operations_that_write_run_send_or_ask_are_not_marked_as_reading() {
        let reading: Vec<_> = operations().filter(|it| it.only_reads).map(|it| it.name).collect();
        let expected = [
            "session",
            "config",
            "blob.get",
            "store.get",
            "store.list",
            "http.credential",
            "count",
            "session.history",
            "environment.describe",
            "files.read",
            "files.read_text",
            "files.list",
            "files.stat",
            "files.find",
            "files.search",
            "files.walk",
            "files.read_stream",
        ];
        assert_eq!(reading, expected);
    }
}
