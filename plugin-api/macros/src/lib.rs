//! Macros of the sdk, which re-exports them: `#[derive(ToolInput)]`, `#[tool_type]`, `#[tool_fn]`
//! and `export_plugin!`.
//!
//! Not to be used by name: the code that they generate refers to `::jaato_plugin_sdk`.

mod attributes;
mod condition;
mod export;
mod function;
mod input;

use proc_macro::TokenStream;
use quote::ToTokens;
use syn::{DeriveInput, Item, parse_macro_input};

/// Makes an argument struct a tool: name, description, schema, annotations and examples come from
/// it.
///
/// The struct's doc comment is the description that a model reads, each field's doc comment
/// describes that argument. `#[serde(…)]` and `#[schemars(…)]` on fields work as in those crates.
///
/// `#[tool(…)]` on the struct takes, separated by commas:
/// - promises: `read_only`, `destructive`, `idempotent`, `open_world`, `parallel_safe`, each alone
///   or `= true`/`= false`. Without a promise the careful side counts: destructive and open-world.
///   `read_only` implies not destructive and parallel-safe.
/// - `name = "…"`: instead of the struct's name in snake case; `category = "…"`.
/// - `schema = VALUE`: a JSON Schema of the arguments, as `json!` makes it, in place of the derived
///   one: fields need no doc comment and no `JsonSchema` then. They still say what is taken.
/// - `core`: stands in every request; without it the tool is found on demand.
/// - `auto_approval`: asks to be run without a question.
/// - `auto_background`: a call that takes long goes on as a task.
/// - `previews`: a person who is asked about a call sees what `Tool::preview` says of it.
/// - `traits("file_writer", …)`: properties that other plugins look for.
/// - `example("what a person says", argument = value, …)`, as often as wanted.
/// - `available_if(CONDITION, reason = "…")`: the model is offered the tool only while the
///   condition holds; one that wants it before is told the reason.
/// - `run_if(CONDITION)`: the tool runs by itself, before the model is asked, when the condition
///   holds; at most once for each change of the session's objects, and through the same gate as a
///   call of the model.
///
/// A CONDITION is one of `objects_present`, `no_objects`, `objects_of = "TOOL"`, `no_objects_of =
/// "TOOL"`, `environment_has = "PART"`, `model_sees = "KIND"`, which open no plugin; or `asked`:
/// then the tool's own method of that name (`Tool::available_if`, `Tool::run_if`) says.
#[proc_macro_derive(ToolInput, attributes(tool, serde, schemars))]
pub fn derive_tool_input(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    input::expand(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Makes a struct or enum usable as a field of a tool's arguments, of a configuration or of saved
/// state.
///
/// Derives serde's `Serialize` and `Deserialize` and schemars' `JsonSchema` by the sdk's copies of
/// those crates, so that the plugin's `Cargo.toml` names only the sdk. Unknown fields are refused.
#[proc_macro_attribute]
pub fn tool_type(_arguments: TokenStream, item: TokenStream) -> TokenStream {
    let item = parse_macro_input!(item as Item);
    input::tool_type(&item).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Makes a function a tool, and collects it for `export_plugin!`.
///
/// A shorter form of `#[derive(ToolInput)]` on a struct and its `impl Tool`, with the same schema,
/// checks and answers. The function's name is the tool's name. Its doc comment is the description
/// that a model reads, and the doc comment of each argument describes that argument.
///
/// `#[tool_fn(…)]` takes what `#[tool(…)]` takes on a struct; without parentheses it promises
/// nothing. An argument takes `#[serde(…)]` and `#[schemars(…)]` as a field does, and the model may
/// leave it out where its type is an `Option` or it has a default.
///
/// - `async fn name(cx: &Cx<STATE>, …)` is a `Tool` and must not block. `&Cx` is `&Cx<()>`.
/// - `fn name(state: &STATE, host: &Reporter, …)` is a `SyncTool` and may block.
///
/// A condition that is `asked` needs a method, and so the longer form.
#[proc_macro_attribute]
pub fn tool_fn(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let tool = parse_macro_input!(arguments as attributes::ToolAttributes);
    let item = parse_macro_input!(item as Item);
    function::expand(tool, item).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Makes a crate a plugin: one line at the crate's root, beside `crate-type = ["cdylib"]`.
///
/// ```text
/// export_plugin! { state: Shelf, tools, provider: Local, scope: host, isolation: worker }
/// ```
///
/// - `state: TYPE`: the `State` of the plugin, `()` for none;
/// - `tools`: it has tools, collected by `#[tool_fn]`, `tool!` and `sync_tool!`;
/// - `provider: TYPE`, `gc: TYPE`, `environment: TYPE`: it is a provider, a gc, an execution
///   environment;
/// - `hook: TYPE`: it answers what plugins are asked beside their own calls;
/// - `scope: host`: one instance a host process instead of one a session;
/// - `isolation: worker`: it wants a process of its own (a native runtime, much memory);
/// - `variables: ["NAME", "NAME=VALUE", …]`: variables that its worker needs, in the forms of
///   `WorkerVariable`.
///
/// Only `state` must be there, and each key stands at most once.
#[proc_macro]
pub fn export_plugin(input: TokenStream) -> TokenStream {
    parse_macro_input!(input as export::Plugin).into_token_stream().into()
}
