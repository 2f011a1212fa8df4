//! Writes the tools of a request. Pure.

use jaato_plugin_sdk::serde_json::{Value, json};
use jaato_plugin_sdk::types::{CompletionRequest, ToolSpec};

use crate::request_style::GoogleSchemaForm;
use crate::{names, openapi_subset, schema};

/// Writes the list of tools. Returns `None` if there are none, because the vendor refuses an empty
/// list.
pub(crate) fn write_tools(request: &CompletionRequest, schemas: GoogleSchemaForm) -> Option<Value> {
    let declared: Vec<Value> =
        request.tools.iter().map(|spec| tool_declaration(spec, schemas)).collect();
    (!declared.is_empty()).then(|| json!([{ "functionDeclarations": declared }]))
}

/// Declares a tool. A tool without arguments gets no schema, because the vendor refuses an object
/// without properties.
fn tool_declaration(spec: &ToolSpec, schemas: GoogleSchemaForm) -> Value {
    let name = names::format_name(spec.name.as_str());
    let mut declared = json!({ "name": name, "description": spec.description });
    let fitted = schema::adapt_schema(&spec.parameters);
    if schema::has_no_properties(&fitted) {
        return declared;
    }
    match schemas {
        GoogleSchemaForm::Json => declared["parametersJsonSchema"] = fitted,
        GoogleSchemaForm::Reduced => {
            declared["parameters"] = openapi_subset::reduce_schema(&fitted)
        }
    }
    declared
}
