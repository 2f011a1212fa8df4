//! Parses `export_plugin! { … }`.
//!
//! It only parses and checks. The code of a plugin is in the SDK, as `__plugin!`. Each word of
//! [`KINDS`] is also a method of the SDK's `Definition`.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Error, Ident, LitStr, Result, Token, Type, bracketed};

/// The keys for kinds of plugins that name a type. Each key is also a method of the SDK's
/// `Definition`, and the manifest's word for the kind. The entry of an environment comes from
/// `jaato-plugin-sdk-environment`.
const KINDS: [&str; 4] = ["provider", "gc", "environment", "hook"];

/// The manifest's word for a plugin with `tools`.
const TOOL: &str = "tool";

const KNOWN: &str = "state: TYPE, tools (or tools: dynamic), provider: TYPE, gc: TYPE, environment: TYPE, hook: TYPE, \
                     scope: host, isolation: worker, variables: [\"NAME\", \"NAME=VALUE\", …]";

/// The content of `export_plugin!`.
pub struct PluginExportInput {
    state: Type,
    has_tools: bool,
    /// Whether the plugin may set tools while it runs, so that it does not have to declare any.
    has_dynamic_tools: bool,
    /// The manifest's words for the kinds, in source order.
    kinds: Vec<String>,
    /// The kinds that name a type, with their types.
    types: Vec<(Ident, Type)>,
    scope: &'static str,
    isolation: &'static str,
    variables: Vec<LitStr>,
}

impl ToTokens for PluginExportInput {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let Self { state, has_tools, has_dynamic_tools, kinds, types, scope, isolation, variables } =
            self;
        // The crate with the environment traits creates the entry.
        let (environments, types): (Vec<_>, Vec<_>) =
            types.iter().partition(|(kind, _)| kind == "environment");
        let environment = environments.iter().map(|(_, of)| of);
        let types = types.iter().map(|(kind, of)| quote!(#kind: #of));
        tokens.extend(quote! {
            ::jaato_plugin_sdk::__plugin! {
                state: #state,
                has_tools: #has_tools,
                has_dynamic_tools: #has_dynamic_tools,
                kinds: [#(#kinds),*],
                types: [#(#types),*],
                environment: [#(#environment)*],
                scope: #scope,
                isolation: #isolation,
                variables: [#(#variables),*]
            }
        });
    }
}

impl Parse for PluginExportInput {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut keys: Vec<Ident> = Vec::new();
        let mut state = None;
        let (mut kinds, mut types, mut variables) = (Vec::new(), Vec::new(), Vec::new());
        let (mut scope, mut isolation) = ("session", "in_process");
        let mut has_dynamic_tools = false;
        while !input.is_empty() {
            // Any word, so that a keyword gets the same error as an unknown word.
            let key = input.call(Ident::parse_any)?;
            if keys.contains(&key) {
                return Err(Error::new(key.span(), format!("duplicate key `{key}`")));
            }
            let name = key.to_string();
            match name.as_str() {
                "state" => state = Some(parse_type(input)?),
                "tools" => {
                    if input.peek(Token![:]) {
                        parse_word(&key, "dynamic", input)?;
                        has_dynamic_tools = true;
                    }
                    kinds.push(TOOL.to_owned());
                }
                "scope" => scope = parse_word(&key, "host", input)?,
                "isolation" => isolation = parse_word(&key, "worker", input)?,
                "variables" => variables = read_variables(input)?,
                kind if KINDS.contains(&kind) => {
                    types.push((key.clone(), parse_type(input)?));
                    kinds.push(name);
                }
                _ => {
                    let text = format!("unknown key `{key}`, expected one of: {KNOWN}");
                    return Err(Error::new(key.span(), text));
                }
            }
            keys.push(key);
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        let Some(state) = state else {
            let text =
                "missing `state: TYPE`: the state that the whole plugin shares, or `()` for none";
            return Err(Error::new(proc_macro2::Span::call_site(), text));
        };
        let has_tools = kinds.iter().any(|kind| kind == TOOL);
        Ok(Self { state, has_tools, has_dynamic_tools, kinds, types, scope, isolation, variables })
    }
}

/// Parses `: TYPE`.
fn parse_type(input: ParseStream<'_>) -> Result<Type> {
    input.parse::<Token![:]>()?;
    input.parse()
}

/// Parses `: WORD`, with one known word.
fn parse_word(key: &Ident, known: &'static str, input: ParseStream<'_>) -> Result<&'static str> {
    input.parse::<Token![:]>()?;
    let found = input.call(Ident::parse_any)?;
    if found == known {
        return Ok(known);
    }
    let text = format!("`{key}` accepts only `{known}`, found `{found}`");
    Err(Error::new(found.span(), text))
}

fn read_variables(input: ParseStream<'_>) -> Result<Vec<LitStr>> {
    input.parse::<Token![:]>()?;
    let list;
    bracketed!(list in input);
    let variables = Punctuated::<LitStr, Token![,]>::parse_terminated(&list)?;
    for variable in &variables {
        check_variable(variable)?;
    }
    Ok(variables.into_iter().collect())
}

/// Checks that a variable needs no escapes in the manifest and names something, because the host
/// ignores an entry that does not.
fn check_variable(variable: &LitStr) -> Result<()> {
    let text = variable.value();
    let is_part = |sign: char| sign.is_ascii_alphanumeric() || sign == '_';
    let rest = text.trim_start_matches(is_part);
    if rest.len() == text.len() || !(rest.is_empty() || rest.starts_with('=')) {
        return Err(Error::new(variable.span(), "expected `NAME` or `NAME=VALUE`"));
    }
    match text.chars().find(|sign| sign.is_control() || matches!(sign, '"' | '\\')) {
        Some(sign) => {
            let text = format!("a manifest cannot contain `{}`", sign.escape_debug());
            Err(Error::new(variable.span(), text))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_expansion(text: &str, expected: &str) {
        let plugin: PluginExportInput = syn::parse_str(text).unwrap();
        let types = plugin.types.iter().map(|(kind, of)| format!(" {kind}={}", quote!(#of)));
        let variables = plugin.variables.iter().map(|variable| format!(" {}", variable.value()));
        let PluginExportInput { state, has_tools, kinds, scope, isolation, .. } = &plugin;
        let found = format!(
            "{} {has_tools} {kinds:?} {scope} {isolation}{}{}",
            quote!(#state),
            types.collect::<String>(),
            variables.collect::<String>(),
        );
        assert_eq!(found, expected);
    }

    #[track_caller]
    fn assert_refused(text: &str, expected: &str) {
        let error = syn::parse_str::<PluginExportInput>(text).err().unwrap();
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn manifest_lists_kinds_in_the_order_of_the_source() {
        check_expansion("state: (), tools", "() true [\"tool\"] session in_process");
        check_expansion(
            "state: Shelf, gc: a::Oldest, tools, provider: Local<u8>,",
            "Shelf true [\"gc\", \"tool\", \"provider\"] session in_process \
             gc=a :: Oldest provider=Local < u8 >",
        );
        check_expansion(
            "environment: Ready, state: ()",
            "() false [\"environment\"] session in_process environment=Ready",
        );
        check_expansion("state: ()", "() false [] session in_process");
    }

    #[test]
    fn scope_isolation_and_variables_are_read() {
        check_expansion(
            "state: (), scope: host, isolation: worker, \
             variables: [\"A\", \"B_2=1 if memory < 6 GiB\",]",
            "() false [] host worker A B_2=1 if memory < 6 GiB",
        );
        check_expansion("state: (), variables: []", "() false [] session in_process");
    }

    #[test]
    fn unknown_key_error_lists_the_known_keys() {
        assert_refused("state: (), tool", &format!("unknown key `tool`, expected one of: {KNOWN}"));
        assert_refused(
            "state: (), type: A",
            &format!("unknown key `type`, expected one of: {KNOWN}"),
        );
        for kind in KINDS {
            assert!(KNOWN.contains(&format!("{kind}: TYPE")), "{kind}");
        }
    }

    #[test]
    fn duplicate_keys_are_refused() {
        for key in ["state: ()", "tools", "provider: A", "gc: A", "environment: A", "scope: host"] {
            let name = key.split(':').next().unwrap();
            assert_refused(&format!("{key}, {key}"), &format!("duplicate key `{name}`"));
        }
        assert_refused("isolation: worker, isolation: worker", "duplicate key `isolation`");
        assert_refused("variables: [], variables: []", "duplicate key `variables`");
    }

    #[test]
    fn missing_state_is_refused() {
        let text =
            "missing `state: TYPE`: the state that the whole plugin shares, or `()` for none";
        assert_refused("", text);
        assert_refused("tools", text);
        assert_refused("state", "expected `:`");
    }

    #[test]
    fn value_that_its_key_does_not_accept_is_refused() {
        assert_refused(
            "state: (), tools: static",
            "`tools` accepts only `dynamic`, found `static`",
        );
        assert_refused("state: (), scope: session", "`scope` accepts only `host`, found `session`");
        assert_refused(
            "state: (), isolation: host",
            "`isolation` accepts only `worker`, found `host`",
        );
        assert_refused("state: () tools", "expected `,`");
    }

    #[test]
    fn invalid_variable_entries_are_refused() {
        let form = "expected `NAME` or `NAME=VALUE`";
        assert_refused("state: (), variables: [\"\"]", form);
        assert_refused("state: (), variables: [\"=1\"]", form);
        assert_refused("state: (), variables: [\"A B\"]", form);
        assert_refused("state: (), variables: [\"A if memory < 6 GiB\"]", form);
        assert_refused(r#"state: (), variables: ["A=\""]"#, "a manifest cannot contain `\\\"`");
        assert_refused(r#"state: (), variables: ["A=\n"]"#, "a manifest cannot contain `\\n`");
    }
}
