//! Expands `#[tool_fn]`.
//!
//! The function stays unchanged. The macro adds the code of the longer form: a struct of the
//! arguments, its `impl Tool` or `impl SyncTool` that calls the function, and the line that
//! registers it.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::{
    Attribute, Error, FnArg, GenericArgument, Ident, Item, ItemFn, LitStr, Pat, PatType,
    PathArguments, PathSegment, Result, ReturnType, Signature, Type, TypeReference, parse_quote,
};

use crate::attributes::{ToolAttributes, doc_text};
use crate::condition::ConditionAttribute;
use crate::input::expand_tool;

/// An argument of the model, after the leading arguments of the function.
struct ToolArgument {
    /// Doc comments, `#[serde(…)]` and `#[schemars(…)]`.
    attributes: Vec<Attribute>,
    name: Ident,
    of: Type,
}

/// The attributes that describe an argument to the model.
const DESCRIBING: [&str; 3] = ["doc", "serde", "schemars"];

/// The attributes that Rust accepts on an argument of any function.
const LINTS: [&str; 5] = ["allow", "expect", "warn", "deny", "forbid"];

/// Expands `#[tool_fn]`.
pub fn expand_function(mut tool: ToolAttributes, item: Item) -> Result<TokenStream> {
    let Item::Fn(mut function) = item else {
        let text = "`#[tool_fn]` works only on functions; use `#[derive(ToolInput)]` on a struct";
        return Err(Error::new_spanned(item, text));
    };
    check_signature(&function.sig)?;
    check_conditions(&tool)?;
    let name = function.sig.ident.unraw();
    tool.name.get_or_insert_with(|| LitStr::new(&name.to_string(), name.span()));

    let lent = parse_leading_arguments(&function.sig)?;
    let is_derived = tool.schema.is_none();
    let arguments = take_arguments(&mut function, lent.count, is_derived)?;
    let code = tool_tokens(&function, &lent.state, &arguments, &tool)?;
    let cfg = function.attrs.iter().filter(|attribute| attribute.path().is_ident("cfg"));
    Ok(quote! {
        #(#cfg)*
        const _: () = { #code };

        // They are the model's arguments, which no code passes by hand.
        #[allow(clippy::too_many_arguments)]
        #function
    })
}

/// Returns the code to add next to the function.
fn tool_tokens(
    function: &ItemFn,
    state: &Type,
    arguments: &[ToolArgument],
    tool: &ToolAttributes,
) -> Result<TokenStream> {
    let called = &function.sig.ident;
    // The name must differ from all types of the author, because they are all in scope here.
    let input = format_ident!("__{}", called.unraw(), span = called.span());
    let docs = function.attrs.iter().filter(|attribute| attribute.path().is_ident("doc"));
    let names: Vec<&Ident> = arguments.iter().map(|argument| &argument.name).collect();
    let types: Vec<&Type> = arguments.iter().map(|argument| &argument.of).collect();
    let attributes = arguments.iter().map(|argument| &argument.attributes);
    let derived = expand_tool(
        &parse_quote! { #(#docs)* struct #input { #(#(#attributes)* #names: #types),* } },
        tool,
    )?;

    // Errors about the function's result, or about a future that is not `Send`, point to the
    // function's name.
    let span = called.span().resolved_at(Span::call_site());
    let implementation = if function.sig.asyncness.is_some() {
        let call = quote_spanned!(span=> #called(cx, #(self.#names),*).await);
        quote! {
            impl ::jaato_plugin_sdk::Tool for #input {
                type State = #state;

                async fn call(
                    self,
                    cx: &::jaato_plugin_sdk::Cx<Self::State>,
                ) -> ::jaato_plugin_sdk::Result<::jaato_plugin_sdk::Output> {
                    #call
                }
            }
            ::jaato_plugin_sdk::tool!(#input);
        }
    } else {
        let call = quote_spanned!(span=> #called(state, host, #(self.#names),*));
        quote! {
            impl ::jaato_plugin_sdk::SyncTool for #input {
                type State = #state;

                fn call(
                    self,
                    state: &Self::State,
                    host: &::jaato_plugin_sdk::Reporter,
                ) -> ::jaato_plugin_sdk::Result<::jaato_plugin_sdk::Output> {
                    #call
                }
            }
            ::jaato_plugin_sdk::sync_tool!(#input);
        }
    };
    Ok(quote! {
        #[allow(non_camel_case_types)]
        struct #input { #(#names: #types),* }
        #derived
        #implementation
    })
}

/// Refuses functions that cannot be tools, regardless of their arguments.
fn check_signature(signature: &Signature) -> Result<()> {
    let Signature { constness, safety, abi, variadic, generics, .. } = signature;
    let where_clause = &generics.where_clause;
    let generics = quote!(#generics #where_clause);
    if !generics.is_empty() {
        let text = "a tool cannot be generic, because its schema describes one type";
        return Err(Error::new_spanned(generics, text));
    }
    let kind = quote!(#constness #safety #abi #variadic);
    if !kind.is_empty() {
        return Err(Error::new_spanned(kind, "a tool must be a plain `fn` or `async fn`"));
    }
    match &signature.output {
        ReturnType::Default => Err(Error::new(
            signature.ident.span(),
            "a tool must return a result: add `-> Result<Output>`",
        )),
        ReturnType::Type(..) => Ok(()),
    }
}

/// Refuses conditions that need a method.
fn check_conditions(tool: &ToolAttributes) -> Result<()> {
    if tool.previews {
        let text = "`previews` needs a method: write this tool as a struct with `impl Tool`";
        return Err(Error::new(Span::call_site(), text));
    }
    let available_if = tool.available_if.as_ref().map(|(_, condition)| condition);
    let mut conditions = available_if.into_iter().chain(&tool.run_if);
    match conditions.find_map(ConditionAttribute::method_condition_span) {
        Some(at) => {
            let text = "`asked` needs a method: write this tool as a struct with `impl Tool`";
            Err(Error::new(at, text))
        }
        None => Ok(()),
    }
}

/// The leading arguments, which do not come from the model.
struct LeadingArguments {
    /// The number of these arguments.
    count: usize,
    /// The plugin's state, according to their types.
    state: Type,
}

/// Parses `cx: &Cx<STATE>`, or `state: &STATE, host: &Reporter`.
fn parse_leading_arguments(signature: &Signature) -> Result<LeadingArguments> {
    let mut inputs = signature.inputs.iter();
    if signature.asyncness.is_some() {
        let text = "the first argument of an async tool must be `cx: &Cx` or `cx: &Cx<STATE>`";
        let context = borrowed_type(inputs.next(), signature, text)?;
        let refused = || Error::new_spanned(context, text);
        let name = find_last_segment(context, "Cx").ok_or_else(refused)?;
        return match &name.arguments {
            PathArguments::None => Ok(LeadingArguments { count: 1, state: parse_quote!(()) }),
            PathArguments::AngleBracketed(list) => match list.args.first() {
                Some(GenericArgument::Type(state)) if list.args.len() == 1 => {
                    Ok(LeadingArguments { count: 1, state: state.clone() })
                }
                _ => Err(refused()),
            },
            PathArguments::Parenthesized(_) => Err(refused()),
        };
    }
    let text = "the first arguments of a plain `fn` must be `state: &STATE, host: &Reporter`; \
                for `cx: &Cx`, write `async fn`";
    let state = borrowed_type(inputs.next(), signature, text)?;
    if find_last_segment(state, "Cx").is_some() {
        return Err(Error::new_spanned(state, text));
    }
    let host = borrowed_type(inputs.next(), signature, text)?;
    if find_last_segment(host, "Reporter").is_none() {
        return Err(Error::new_spanned(host, text));
    }
    Ok(LeadingArguments { count: 2, state: state.clone() })
}

/// Returns `TYPE` from an argument `&TYPE` without a doc comment.
fn borrowed_type<'a>(
    input: Option<&'a FnArg>,
    signature: &Signature,
    text: &str,
) -> Result<&'a Type> {
    let input = match input {
        None => return Err(Error::new(signature.ident.span(), text)),
        Some(FnArg::Receiver(receiver)) => return Err(receiver_error(receiver)),
        Some(FnArg::Typed(input)) => input,
    };
    match &*input.ty {
        Type::Reference(TypeReference { mutability: None, elem, .. })
            if doc_text(&input.attrs).is_empty() =>
        {
            Ok(elem)
        }
        other => Err(Error::new_spanned(other, text)),
    }
}

/// Returns the last segment of a path, if it is `name`. The macro cannot resolve the path, but
/// rustc checks the call.
fn find_last_segment<'a>(of: &'a Type, name: &str) -> Option<&'a PathSegment> {
    let Type::Path(path) = of else { return None };
    path.path.segments.last().filter(|last| last.ident == name)
}

/// Takes the model's arguments, and removes attributes that Rust does not accept on function
/// arguments.
fn take_arguments(
    function: &mut ItemFn,
    lent: usize,
    is_derived: bool,
) -> Result<Vec<ToolArgument>> {
    let inputs = function.sig.inputs.iter_mut().skip(lent);
    inputs.map(|input| take_argument(input, is_derived)).collect()
}

/// Takes one argument. A derived schema requires a description for it.
fn take_argument(input: &mut FnArg, is_derived: bool) -> Result<ToolArgument> {
    let input = match input {
        FnArg::Receiver(receiver) => return Err(receiver_error(receiver)),
        FnArg::Typed(input) => input,
    };
    let name = match &*input.pat {
        Pat::Ident(name) if name.by_ref.is_none() && name.subpat.is_none() => name.ident.clone(),
        other => {
            return Err(Error::new_spanned(
                other,
                "an argument must be a plain name, because the model reads it",
            ));
        }
    };
    if matches!(*input.ty, Type::Reference(_) | Type::ImplTrait(_)) {
        let text = "a tool must own its arguments: use `String` instead of `&str`, and no `impl`";
        return Err(Error::new_spanned(&input.ty, text));
    }
    let attributes = take_attributes(input)?;
    if is_derived && doc_text(&attributes).is_empty() {
        let text = "missing doc comment: it describes the argument to the model";
        return Err(Error::new_spanned(input, text));
    }
    Ok(ToolArgument { attributes, name, of: (*input.ty).clone() })
}

fn take_attributes(input: &mut PatType) -> Result<Vec<Attribute>> {
    let is_one_of = |attribute: &Attribute, names: &[&str]| {
        names.iter().any(|name| attribute.path().is_ident(name))
    };
    let (taken, left): (Vec<_>, Vec<_>) =
        input.attrs.drain(..).partition(|attribute| is_one_of(attribute, &DESCRIBING));
    if let Some(other) = left.iter().find(|attribute| !is_one_of(attribute, &LINTS)) {
        let text = "an argument accepts only a doc comment, `#[serde(…)]` and `#[schemars(…)]`";
        return Err(Error::new_spanned(other, text));
    }
    input.attrs = left;
    Ok(taken)
}

fn receiver_error(receiver: &syn::Receiver) -> Error {
    Error::new_spanned(receiver, "a tool must be a free function without `self`")
}
