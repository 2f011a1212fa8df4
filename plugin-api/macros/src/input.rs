//! Expands `#[derive(ToolInput)]` and `#[tool_type]`.
//!
//! A derive cannot add derives to its own struct. Therefore it writes the struct again as `Wire`,
//! with the derives of serde and schemars, and converts it field by field.

use proc_macro2::TokenStream;
use quote::quote;
use syn::ext::IdentExt;
use syn::{Attribute, Data, DeriveInput, Error, Fields, Item, Result};

use crate::attributes::{ToolAttributes, doc_text, to_snake_case};

/// Expands `#[derive(ToolInput)]`.
pub fn expand_input(input: &DeriveInput) -> Result<TokenStream> {
    expand_tool(input, &ToolAttributes::from_attributes(&input.attrs)?)
}

/// Turns a struct into the arguments of a tool. `tool` contains the other facts about the tool.
pub fn expand_tool(input: &DeriveInput, tool: &ToolAttributes) -> Result<TokenStream> {
    let Data::Struct(data) = &input.data else {
        return Err(Error::new_spanned(&input.ident, "a tool's arguments must be a struct"));
    };
    if !input.generics.params.is_empty() {
        return Err(Error::new_spanned(&input.generics, "a tool's arguments cannot be generic"));
    }
    let description = doc_text(&input.attrs);
    if description.is_empty() {
        let text = "missing doc comment: it describes the tool to the model";
        return Err(Error::new_spanned(&input.ident, text));
    }

    let ident = &input.ident;
    let is_derived = tool.schema.is_none();
    let (wire_fields, moves) = parse_fields(&data.fields, is_derived)?;
    let container = copied_attributes(&input.attrs, copied_attribute_names(is_derived));
    let spec = spec_tokens(tool, &description, ident)?;
    let schema = is_derived.then(|| {
        quote! {
            #[derive(::jaato_plugin_sdk::schemars::JsonSchema)]
            #[schemars(crate = "::jaato_plugin_sdk::schemars", deny_unknown_fields)]
        }
    });
    Ok(quote! {
        const _: () = {
            #[derive(::jaato_plugin_sdk::serde::Deserialize)]
            #[serde(crate = "::jaato_plugin_sdk::serde", deny_unknown_fields)]
            #schema
            #(#container)*
            struct Wire { #(#wire_fields,)* }

            impl ::jaato_plugin_sdk::ToolInput for #ident {
                // More fields will be added.
                #[allow(clippy::needless_update)]
                fn spec() -> ::jaato_plugin_sdk::types::ToolSpec { #spec }

                fn parse(json: &[u8]) -> ::jaato_plugin_sdk::Result<Self> {
                    let wire: Wire = ::jaato_plugin_sdk::__private::parse_arguments(json)?;
                    let _ = &wire;
                    ::core::result::Result::Ok(Self { #(#moves,)* })
                }
            }
        };
    })
}

/// Expands `#[tool_type]`.
pub fn tool_type(item: &Item) -> Result<TokenStream> {
    let deny = match item {
        Item::Struct(_) => quote!(, deny_unknown_fields),
        Item::Enum(_) => quote!(),
        other => {
            return Err(Error::new_spanned(
                other,
                "`#[tool_type]` works only on structs and enums",
            ));
        }
    };
    Ok(quote! {
        #[derive(
            ::jaato_plugin_sdk::serde::Serialize,
            ::jaato_plugin_sdk::serde::Deserialize,
            ::jaato_plugin_sdk::schemars::JsonSchema,
        )]
        #[serde(crate = "::jaato_plugin_sdk::serde" #deny)]
        #[schemars(crate = "::jaato_plugin_sdk::schemars" #deny)]
        #item
    })
}

/// Parses the fields. A derived schema requires a description for each of them.
fn parse_fields(fields: &Fields, is_derived: bool) -> Result<(Vec<TokenStream>, Vec<TokenStream>)> {
    let named = match fields {
        Fields::Named(named) => named,
        Fields::Unit => return Ok((Vec::new(), Vec::new())),
        Fields::Unnamed(unnamed) => {
            return Err(Error::new_spanned(unnamed, "a tool's arguments must have names"));
        }
    };
    let mut wire = Vec::new();
    let mut moves = Vec::new();
    for field in &named.named {
        let (ident, ty) = (&field.ident, &field.ty);
        if is_derived && doc_text(&field.attrs).is_empty() {
            let text = "missing doc comment: it describes the argument to the model";
            return Err(Error::new_spanned(field, text));
        }
        let attributes = copied_attributes(&field.attrs, copied_attribute_names(is_derived));
        wire.push(quote!(#(#attributes)* #ident: #ty));
        moves.push(quote!(#ident: wire.#ident));
    }
    Ok((wire, moves))
}

/// Returns the attributes to copy to the struct for serde and, if the schema is derived, schemars.
fn copied_attribute_names(is_derived: bool) -> &'static [&'static str] {
    if is_derived { &["doc", "serde", "schemars"] } else { &["serde"] }
}

fn copied_attributes<'a>(attributes: &'a [Attribute], names: &[&str]) -> Vec<&'a Attribute> {
    let is_kept = |attribute: &&Attribute| names.iter().any(|name| attribute.path().is_ident(name));
    attributes.iter().filter(is_kept).collect()
}

fn spec_tokens(
    tool: &ToolAttributes,
    description: &str,
    ident: &syn::Ident,
) -> Result<TokenStream> {
    let name = tool.name.clone().unwrap_or_else(|| to_snake_case(ident));
    let category = tool.category.as_ref().map(syn::LitStr::value).unwrap_or_default();
    let availability = if tool.core { quote!(Core) } else { quote!(Discoverable) };
    let parameters = match &tool.schema {
        Some(schema) => quote!(::jaato_plugin_sdk::serde_json::Value::from(#schema)),
        None => quote!(::jaato_plugin_sdk::__private::schema_of::<Wire>()),
    };
    let (auto_approval, traits) = (tool.auto_approval, &tool.traits);
    let (auto_background, previews) = (tool.auto_background, tool.previews);

    let read_only = tool.annotation_value("read_only").unwrap_or(false);
    let destructive = tool.annotation_value("destructive").unwrap_or(!read_only);
    let idempotent = tool.annotation_value("idempotent").unwrap_or(false);
    let open_world = tool.annotation_value("open_world").unwrap_or(true);
    let parallel_safe = tool.annotation_value("parallel_safe").unwrap_or(read_only);

    let examples = tool.examples.iter().map(|example| {
        let phrase = &example.phrase;
        let pairs = example.arguments.iter().map(|(name, value)| {
            let name = name.unraw().to_string();
            quote!((#name.to_owned(), ::jaato_plugin_sdk::serde_json::json!(#value)))
        });
        quote! {
            ::jaato_plugin_sdk::types::Example {
                phrase: #phrase.to_owned(),
                arguments: ::jaato_plugin_sdk::__private::to_json_object(::std::vec![#(#pairs),*]),
                ..::core::default::Default::default()
            }
        }
    });
    let option = |made: Option<TokenStream>| match made {
        Some(made) => quote!(::core::option::Option::Some(#made)),
        None => quote!(::core::option::Option::None),
    };
    let offer = tool.available_if.as_ref().map(|(key, condition)| condition.offer_tokens(key));
    let available_if = option(offer.transpose()?);
    let run_if =
        option(tool.run_if.as_ref().map(|condition| condition.run_if_tokens()).transpose()?);
    Ok(quote! {
        ::jaato_plugin_sdk::types::ToolSpec {
            name: ::jaato_plugin_sdk::types::ToolName::from(#name),
            description: #description.to_owned(),
            parameters: #parameters,
            annotations: ::jaato_plugin_sdk::types::Annotations {
                read_only: #read_only,
                destructive: #destructive,
                idempotent: #idempotent,
                open_world: #open_world,
                parallel_safe: #parallel_safe,
                ..::core::default::Default::default()
            },
            category: #category.to_owned(),
            availability: ::jaato_plugin_sdk::types::Availability::#availability,
            auto_approval: #auto_approval,
            auto_background: #auto_background,
            traits: ::std::vec![#(#traits.to_owned()),*],
            examples: ::std::vec![#(#examples),*],
            available_if: #available_if,
            run_if: #run_if,
            previews: #previews,
            ..::core::default::Default::default()
        }
    })
}
