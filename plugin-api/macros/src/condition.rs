//! Parses `available_if(…)` and `run_if(…)` in `#[tool(…)]`.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::parse::{Parse, ParseStream};
use syn::{Error, Ident, LitStr, Result, Token};

/// A condition, with the reason to give if it does not hold.
pub struct ConditionAttribute {
    what: ConditionKind,
    reason: Option<LitStr>,
}

/// The condition that a method of the tool evaluates.
const ASKED: &str = "Asked";

/// Variants of `jaato_types::ConditionAttribute`.
enum ConditionKind {
    Plain(Ident),
    Of(Ident, LitStr),
    /// The environment has this variant of `EnvironmentPart`.
    Part(Ident),
    /// The model accepts this variant of `VisibleMedia`.
    Seen(Ident),
}

impl ConditionAttribute {
    /// Parses the content of the parentheses after a key.
    pub fn parse_content(key: &Ident, input: ParseStream<'_>) -> Result<Self> {
        let (mut what, mut reason) = (None, None);
        for item in input.parse_terminated(ConditionItem::parse, Token![,])? {
            let taken = match item {
                ConditionItem::Reason(text) => reason.replace(text).is_some(),
                ConditionItem::What(of) => what.replace(of).is_some(),
            };
            if taken {
                let text = format!("`{key}` takes one condition and one reason");
                return Err(Error::new(key.span(), text));
            }
        }
        let what =
            what.ok_or_else(|| Error::new(key.span(), format!("`{key}` needs a condition")))?;
        Ok(Self { what, reason })
    }

    /// Generates `run_if` of a spec.
    pub fn run_if_tokens(&self) -> Result<TokenStream> {
        match &self.reason {
            None => Ok(self.condition_tokens()),
            Some(reason) => Err(Error::new(reason.span(), "`run_if` does not accept a reason")),
        }
    }

    /// Generates `available_if` of a spec.
    pub fn offer_tokens(&self, key: &Ident) -> Result<TokenStream> {
        let Some(reason) = self.reason.as_ref().filter(|text| !text.value().trim().is_empty())
        else {
            let text = "a model that wants the tool while it is unavailable needs the reason: \
                        add `reason = \"…\"`";
            return Err(Error::new(key.span(), text));
        };
        let condition = self.condition_tokens();
        Ok(quote! {
            ::jaato_plugin_sdk::types::Offer::new(#condition, #reason)
        })
    }

    /// Returns the location of the condition, if a method of the tool evaluates it.
    pub fn method_condition_span(&self) -> Option<Span> {
        match &self.what {
            ConditionKind::Plain(variant) if variant == ASKED => Some(variant.span()),
            ConditionKind::Plain(_)
            | ConditionKind::Of(..)
            | ConditionKind::Part(_)
            | ConditionKind::Seen(_) => None,
        }
    }

    fn condition_tokens(&self) -> TokenStream {
        let variant = match &self.what {
            ConditionKind::Plain(variant) => quote!(#variant),
            ConditionKind::Of(variant, tool) => {
                quote!(#variant(#tool))
            }
            ConditionKind::Part(part) => {
                let parts = quote!(::jaato_plugin_sdk::types::execution::EnvironmentPart);
                quote!(environment_has(#parts::#part))
            }
            ConditionKind::Seen(kind) => {
                quote!(model_sees(::jaato_plugin_sdk::types::VisibleMedia::#kind))
            }
        };
        quote!(::jaato_plugin_sdk::types::Condition::#variant)
    }
}

enum ConditionItem {
    Reason(LitStr),
    What(ConditionKind),
}

impl Parse for ConditionItem {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let key: Ident = input.parse()?;
        let text: Option<LitStr> = match input.parse::<Option<Token![=]>>()? {
            Some(_) => Some(input.parse()?),
            None => None,
        };
        let variant = |name: &str| Ident::new(name, key.span());
        Ok(match (key.to_string().as_str(), text) {
            ("reason", Some(text)) => Self::Reason(text),
            ("objects_present", None) => {
                Self::What(ConditionKind::Plain(variant("ObjectsPresent")))
            }
            ("no_objects", None) => Self::What(ConditionKind::Plain(variant("NoObjects"))),
            ("messages_collected", None) => {
                Self::What(ConditionKind::Plain(variant("MessagesCollected")))
            }
            ("asked", None) => Self::What(ConditionKind::Plain(variant(ASKED))),
            ("objects_of" | "no_objects_of", Some(tool)) => {
                Self::What(ConditionKind::Of(key, tool))
            }
            ("environment_has", Some(part)) => {
                Self::What(ConditionKind::Part(Self::environment_part(&part)?))
            }
            ("model_sees", Some(kind)) => Self::What(ConditionKind::Seen(Self::media_kind(&kind)?)),
            _ => {
                let known = "objects_present, no_objects, objects_of = \"TOOL\", \
                             no_objects_of = \"TOOL\", environment_has = \"PART\", \
                             model_sees = \"KIND\", messages_collected, asked, reason = \"…\"";
                let text = format!("unknown condition `{key}`, expected one of: {known}");
                return Err(Error::new(key.span(), text));
            }
        })
    }
}

impl ConditionItem {
    fn environment_part(text: &LitStr) -> Result<Ident> {
        let variant = match text.value().as_str() {
            "files" => "Files",
            "shell" => "Shell",
            "terminals" => "Terminals",
            _ => {
                let known = "expected `files`, `shell` or `terminals`";
                return Err(Error::new(text.span(), known));
            }
        };
        Ok(Ident::new(variant, text.span()))
    }

    fn media_kind(text: &LitStr) -> Result<Ident> {
        let variant = match text.value().as_str() {
            "images" => "Images",
            "pdf" => "Pdf",
            _ => return Err(Error::new(text.span(), "expected `images` or `pdf`")),
        };
        Ok(Ident::new(variant, text.span()))
    }
}

#[cfg(test)]
mod tests {
    use syn::parse::Parser as _;

    use super::*;

    fn parse_condition(text: &str) -> Result<ConditionAttribute> {
        let key = Ident::new("available_if", Span::call_site());
        (|input: ParseStream<'_>| ConditionAttribute::parse_content(&key, input)).parse_str(text)
    }

    #[track_caller]
    fn assert_condition_refused(text: &str, why: &str) {
        let key = Ident::new("available_if", Span::call_site());
        let error =
            parse_condition(text).and_then(|condition| condition.offer_tokens(&key)).unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
    }

    #[test]
    fn invalid_tool_condition_is_refused() {
        assert_condition_refused("", "`available_if` needs a condition");
        assert_condition_refused(
            "asked, objects_present, reason = \"x\"",
            "one condition and one reason",
        );
        assert_condition_refused("moonlight, reason = \"x\"", "unknown condition `moonlight`");
        assert_condition_refused("objects_of, reason = \"x\"", "unknown condition `objects_of`");
        assert_condition_refused("asked = \"x\"", "unknown condition `asked`");
        assert_condition_refused(
            "environment_has, reason = \"x\"",
            "unknown condition `environment_has`",
        );
        assert_condition_refused(
            "environment_has = \"moon\", reason = \"x\"",
            "`files`, `shell` or `terminals`",
        );
        assert_condition_refused("model_sees, reason = \"x\"", "unknown condition `model_sees`");
        assert_condition_refused(
            "model_sees = \"smells\", reason = \"x\"",
            "expected `images` or `pdf`",
        );
    }

    #[test]
    fn reason_is_required_for_available_if_and_refused_for_run_if() {
        assert_condition_refused("asked", "add `reason = \"…\"`");
        assert_condition_refused("asked, reason = \" \"", "add `reason = \"…\"`");
        let error =
            parse_condition("asked, reason = \"x\"").and_then(|it| it.run_if_tokens()).unwrap_err();
        assert_eq!(error.to_string(), "`run_if` does not accept a reason");
    }
}
