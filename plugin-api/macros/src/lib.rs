//! Macros of the sdk, which re-exports them: `#[derive(ToolInput)]` and `#[tool_type]`.
//!
//! Not to be used by name: the code that they generate refers to `::jaato_plugin_sdk`.

mod attributes;
mod condition;
mod input;

use proc_macro::TokenStream;
use syn::{DeriveInput, Item, parse_macro_input};

/// Makes an argument struct a tool: name, description, schema, annotations and examples come from it.
///
/// The struct's doc comment is the description that a model reads, each field's doc comment describes
/// that argument. `#[serde(…)]` and `#[schemars(…)]` on fields work as in those crates.
///
/// `#[tool(…)]` on the struct takes, separated by commas:
/// - promises: `read_only`, `destructive`, `idempotent`, `open_world`, `parallel_safe`, each alone or
///   `= true`/`= false`. Without a promise the careful side counts: destructive and open-world.
///   `read_only` implies not destructive and parallel-safe.
/// - `name = "…"`: instead of the struct's name in snake case; `category = "…"`.
/// - `core`: stands in every request; without it the tool is found on demand.
/// - `auto_approval`: asks to be run without a question.
/// - `auto_background`: a call that takes long goes on as a task.
/// - `traits("file_writer", …)`: properties that other plugins look for.
/// - `example("what a person says", argument = value, …)`, as often as wanted.
/// - `available_if(CONDITION, reason = "…")`: the model is offered the tool only while the condition holds; one that
///   wants it before is told the reason.
/// - `run_if(CONDITION)`: the tool runs by itself, before the model is asked, when the condition holds; at most once
///   for each change of the session's objects, and through the same gate as a call of the model.
///
/// A CONDITION is one of `objects_present`, `no_objects`, `objects_of = "TOOL"`, `no_objects_of = "TOOL"`, which open
/// no plugin; or `asked`: then the tool's own method of that name (`Tool::available_if`, `Tool::run_if`) says.
#[proc_macro_derive(ToolInput, attributes(tool, serde, schemars))]
pub fn derive_tool_input(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    input::expand(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Makes a struct or enum usable as a field of a tool's arguments, of a configuration or of saved state.
///
/// Derives serde's `Serialize` and `Deserialize` and schemars' `JsonSchema` by the sdk's copies of those
/// crates, so that the plugin's `Cargo.toml` names only the sdk. Unknown fields are refused.
#[proc_macro_attribute]
pub fn tool_type(_arguments: TokenStream, item: TokenStream) -> TokenStream {
    let item = parse_macro_input!(item as Item);
    input::tool_type(&item).unwrap_or_else(syn::Error::into_compile_error).into()
}
