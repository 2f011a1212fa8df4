//! The macros of the SDK, which re-exports them: `#[derive(ToolInput)]`, `#[tool_type]`,
//! `#[tool_fn]` and `export_plugin!`.
//!
//! Do not depend on this crate directly, because the generated code refers to `::jaato_plugin_sdk`.

mod attributes;
mod condition;
mod export;
mod function;
mod input;

use proc_macro::TokenStream;
use quote::ToTokens;
use syn::{DeriveInput, Item, parse_macro_input};

/// Turns an argument struct into a tool, and derives name, description, schema, annotations and
/// examples from it.
///
/// The struct's doc comment is the tool's description for the model. Each field's doc comment
/// describes that argument. `#[serde(…)]` and `#[schemars(…)]` on fields work as in those crates.
///
/// `#[tool(…)]` on the struct accepts, separated by commas:
/// - the annotations `read_only`, `destructive`, `idempotent`, `open_world` and `parallel_safe`,
///   each alone or with `= true`/`= false`. The defaults are the cautious values: destructive and
///   open-world. `read_only` implies not destructive and parallel-safe.
/// - `name = "…"`: instead of the struct's name in snake case; `category = "…"`.
/// - `schema = VALUE`: a JSON Schema of the arguments, for example from `json!`, instead of the
///   derived one. Fields then need no doc comment and no `JsonSchema`, but they still define the
///   accepted arguments.
/// - `core`: each request includes the tool. Without it, the model must discover the tool.
/// - `auto_approval`: requests that the tool runs without a permission prompt.
/// - `auto_background`: a long call continues as a background task.
/// - `previews`: the permission prompt shows the result of `Tool::preview`.
/// - `traits("file_writer", …)`: properties that other plugins look for.
/// - `example("a user's phrase", argument = value, …)`, repeatable.
/// - `available_if(CONDITION, reason = "…")`: the host offers the tool to the model only while the
///   condition holds. If the model requests the tool earlier, the host returns the reason.
/// - `run_if(CONDITION)`: the tool runs automatically before the request to the model while the
///   condition holds, at most once for each change of the session's objects. It needs the same
///   permission check as a call by the model.
///
/// A CONDITION is one of `objects_present`, `no_objects`, `objects_of = "TOOL"`,
/// `no_objects_of = "TOOL"`, `environment_has = "PART"`, `model_sees = "KIND"`,
/// `messages_collected`, for which the host does not open the plugin, or `asked`, for which it
/// calls the tool's own method (`Tool::available_if`, `Tool::run_if`).
#[proc_macro_derive(ToolInput, attributes(tool, serde, schemars))]
pub fn derive_tool_input(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    input::expand_input(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Makes a struct or enum usable as a field of a tool's arguments, of a configuration or of saved
/// state.
///
/// Derives serde's `Serialize` and `Deserialize` and schemars' `JsonSchema` with the SDK's copies
/// of those crates, so that the plugin's `Cargo.toml` needs only the SDK. Unknown fields are
/// refused.
#[proc_macro_attribute]
pub fn tool_type(_arguments: TokenStream, item: TokenStream) -> TokenStream {
    let item = parse_macro_input!(item as Item);
    input::tool_type(&item).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Turns a function into a tool, and registers it for `export_plugin!`.
///
/// This is a shorter form of `#[derive(ToolInput)]` on a struct with an `impl Tool`, with the same
/// schema, checks and answers. The function's name is the tool's name. Its doc comment is the
/// tool's description for the model, and the doc comment of each argument describes that argument.
///
/// `#[tool_fn(…)]` accepts the same as `#[tool(…)]` on a struct. Without parentheses, it sets no
/// annotations. An argument accepts `#[serde(…)]` and `#[schemars(…)]` like a field, and is
/// optional if its type is an `Option` or it has a default.
///
/// - `async fn name(cx: &Cx<STATE>, …)` is a `Tool` and must not block. `&Cx` is `&Cx<()>`.
/// - `fn name(state: &STATE, host: &Reporter, …)` is a `SyncTool` and may block.
///
/// The condition `asked` needs a method, and therefore the longer form.
#[proc_macro_attribute]
pub fn tool_fn(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let tool = parse_macro_input!(arguments as attributes::ToolAttributes);
    let item = parse_macro_input!(item as Item);
    function::expand_function(tool, item).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Turns a crate into a plugin. Write it once at the crate's root, in a crate with
/// `crate-type = ["cdylib"]`.
///
/// ```text
/// export_plugin! { state: Shelf, tools, provider: Local, scope: host, isolation: worker }
/// ```
///
/// - `state: TYPE`: the `State` of the plugin, `()` for none;
/// - `tools`: it has tools, registered by `#[tool_fn]`, `tool!` and `sync_tool!`;
/// - `provider: TYPE`, `gc: TYPE`, `environment: TYPE`: it is a provider, a gc, an execution
///   environment;
/// - `hook: TYPE`: it implements hooks, which the host calls outside the plugin's own calls;
/// - `scope: host`: it has one instance per host process instead of one per session;
/// - `isolation: worker`: it needs its own process (a native runtime, much memory);
/// - `variables: ["NAME", "NAME=VALUE", …]`: variables that its worker needs, in the forms of
///   `WorkerVariable`.
///
/// Only `state` is required, and each key may occur at most once.
#[proc_macro]
pub fn export_plugin(input: TokenStream) -> TokenStream {
    parse_macro_input!(input as export::PluginExportInput).into_token_stream().into()
}
