//! Checks of tools.

use jaato_types::{ErrorKind, Frame, Output, Result, ToolSpec};
use serde_json::{Map, Value};

use super::{
    ConformanceSuite, ConformanceVerdict, DESCRIPTION_BYTES_MAX, ExampleSelection,
    check_error_text, check_nothing_left, ensure, fuzz, prefix_error,
};
use crate::{FakeHost, FakeInstance, check_arguments, schema};

fn declared_tools(host: &FakeHost) -> std::result::Result<&[ToolSpec], String> {
    host.description().map(|all| all.tools.as_slice()).map_err(prefix_error("description"))
}

/// Names are valid for every provider, unique, and sorted.
pub fn names_are_valid_unique_and_sorted(
    _: &ConformanceSuite,
    host: &FakeHost,
) -> ConformanceVerdict {
    let tools = declared_tools(host)?;
    for tool in tools {
        ensure(tool.name.is_valid(), || format!("no provider takes the name `{}`", tool.name))?;
    }
    for pair in tools.windows(2) {
        let (first, second) = (&pair[0].name, &pair[1].name);
        ensure(first < second, || format!("`{first}` and `{second}` are one, or out of order"))?;
    }
    Ok(())
}

/// Each tool has a description that is short enough for all providers.
pub fn descriptions_are_present_and_short(
    _: &ConformanceSuite,
    host: &FakeHost,
) -> ConformanceVerdict {
    declared_tools(host)?
        .iter()
        .try_for_each(|tool| check_description(&format!("tool `{}`", tool.name), &tool.description))
}

fn check_description(what: &str, text: &str) -> ConformanceVerdict {
    ensure(!text.trim().is_empty(), || format!("{what} has no description"))?;
    ensure(text.len() <= DESCRIPTION_BYTES_MAX, || {
        let bytes = text.len();
        format!(
            "{what} has a description of {bytes} bytes, at most {DESCRIPTION_BYTES_MAX} are taken"
        )
    })
}

/// Each schema is an object, compiles, refuses unknown properties and describes each property.
pub fn schemas_are_closed_objects(_: &ConformanceSuite, host: &FakeHost) -> ConformanceVerdict {
    let tools = declared_tools(host)?;
    tools.iter().try_for_each(|tool| {
        check_closed_object(&format!("tool `{}`", tool.name), &tool.parameters)
    })
}

pub(super) fn check_closed_object(what: &str, schema: &Value) -> ConformanceVerdict {
    ensure(schema["type"] == "object", || format!("{what}: its schema is not that of an object"))?;
    if let Err(error) = schema::check_schema(schema, &Value::Object(Map::new())) {
        ensure(error.kind != ErrorKind::PluginMisbehaved, || format!("{what}: {}", error.message))?;
    }
    ensure(schema["properties"].is_object(), || format!("{what}: its schema has no `properties`"))?;
    check_nested_objects(what, schema)
}

/// Inner objects must be closed and described too, because models also read them.
fn check_nested_objects(what: &str, schema: &Value) -> ConformanceVerdict {
    match schema {
        Value::Object(object) => {
            if let Some(Value::Object(properties)) = object.get("properties") {
                let is_closed = object.get("additionalProperties") == Some(&Value::Bool(false));
                ensure(is_closed, || format!("{what}: unknown properties are not refused"))?;
                for (name, property) in properties {
                    let text = property["description"].as_str().unwrap_or_default();
                    let what = format!("{what}, property `{name}`");
                    check_description(&what, text)?;
                    check_nested_objects(&what, property)?;
                }
            }
            let others = object.iter().filter(|(key, _)| *key != "properties");
            others.into_iter().try_for_each(|(_, value)| check_nested_objects(what, value))
        }
        Value::Array(items) => items.iter().try_for_each(|item| check_nested_objects(what, item)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
    }
}

/// Each example has a phrase and arguments that fit the schema.
pub fn examples_fit_their_schema(_: &ConformanceSuite, host: &FakeHost) -> ConformanceVerdict {
    for tool in declared_tools(host)? {
        for example in &tool.examples {
            let what = format!("example {:?} of `{}`", example.phrase, tool.name);
            ensure(!example.phrase.trim().is_empty(), || format!("{what} has no phrase"))?;
            let arguments = Value::Object(example.arguments.clone());
            check_arguments(tool, &arguments).map_err(prefix_error(&what))?;
        }
    }
    Ok(())
}

/// Each example that may run returns an output, or reports that something it names does not exist,
/// such as a file of the user.
pub fn examples_work(suite: &ConformanceSuite, host: &FakeHost) -> ConformanceVerdict {
    let instance = host.instance().map_err(prefix_error("an instance"))?;
    run_examples(suite.examples, host, instance, |what, result| match result {
        Ok(_) => Ok(()),
        Err(error) if error.kind == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(prefix_error(what)(error)),
    })
}

/// A read-only tool changes nothing that the plugin saves.
pub fn read_only_examples_change_nothing(
    suite: &ConformanceSuite,
    host: &FakeHost,
) -> ConformanceVerdict {
    let instance = host.create(None).map_err(prefix_error("an instance"))?;
    let reading = match suite.examples {
        ExampleSelection::All => ExampleSelection::OfReaders,
        reading => reading,
    };
    let before = instance.save().map_err(prefix_error("save"))?;
    run_examples(reading, host, &instance, |what, _| {
        let after = instance.save().map_err(prefix_error("save"))?;
        ensure(before == after, || format!("{what} is read-only and changes what is saved"))
    })
}

/// Runs the examples that may run.
pub(super) fn run_examples(
    which: ExampleSelection,
    host: &FakeHost,
    instance: &FakeInstance,
    judge: impl Fn(&str, Result<Output>) -> ConformanceVerdict,
) -> ConformanceVerdict {
    for tool in declared_tools(host)?.iter().filter(|tool| which.can_run(tool)) {
        for example in &tool.examples {
            let arguments = Value::Object(example.arguments.clone());
            let what = format!("example {:?} of `{}`", example.phrase, tool.name);
            judge(&what, instance.run(tool.name.as_str(), arguments).result)?;
        }
    }
    Ok(())
}

/// A call to an unknown tool is answered with `unknown_tool`.
pub fn unknown_tools_are_refused(_: &ConformanceSuite, host: &FakeHost) -> ConformanceVerdict {
    let instance = host.instance().map_err(prefix_error("an instance"))?;
    for name in ["no_such_tool", "", "../x", "é"] {
        let found = instance.start_frame(name, Frame::empty()).wait().result;
        let kind = found.map(drop).map_err(|error| error.kind);
        ensure(kind == Err(ErrorKind::UnknownTool), || {
            format!("the unknown tool `{name}` is answered {kind:?}, not `unknown_tool`")
        })?;
    }
    Ok(())
}

/// A malformed frame is answered with an error.
pub fn bad_frames_are_refused(suite: &ConformanceSuite, host: &FakeHost) -> ConformanceVerdict {
    let instance = host.instance().map_err(prefix_error("an instance"))?;
    let tried = declared_tools(host)?.iter().filter(|tool| suite.examples.can_try(tool));
    tried.map(|tool| tool.name.as_str()).try_for_each(|name| {
        fuzz::check_bad_frames_refused(name, |frame| {
            instance.start_frame(name, frame).wait().result
        })
    })
}

/// The plugin itself answers arguments of a wrong type with `invalid_arguments`. Unusual arguments
/// of the right type get an output or an error, if the tool may run.
pub fn wrong_arguments_are_refused(
    suite: &ConformanceSuite,
    host: &FakeHost,
) -> ConformanceVerdict {
    let instance = host.instance().map_err(prefix_error("an instance"))?;
    for tool in declared_tools(host)?.iter().filter(|tool| suite.examples.can_try(tool)) {
        let name = tool.name.as_str();
        let good =
            tool.examples.first().map(|example| example.arguments.clone()).unwrap_or_default();
        let ask = |arguments: &Value| -> std::result::Result<_, String> {
            let frame = Frame::write(arguments).map_err(|error| error.to_string())?;
            Ok(instance.start_frame(name, frame).wait().result)
        };
        for arguments in fuzz::wrong_arguments(&tool.parameters, &good) {
            fuzz::check_refusal(name, &arguments, &ask(&arguments)?)?;
        }
        if !suite.examples.can_run(tool) {
            continue;
        }
        for arguments in fuzz::odd_arguments(&tool.parameters, &good) {
            if let Err(error) = ask(&arguments)? {
                check_error_text(&format!("{name} with odd arguments"), &error)?;
            }
        }
    }
    Ok(())
}

/// A call that is cancelled at its first wait ends, and leaves nothing behind.
pub fn a_cancelled_call_ends(suite: &ConformanceSuite, host: &FakeHost) -> ConformanceVerdict {
    let instance = host.create(None).map_err(prefix_error("an instance"))?;
    for tool in declared_tools(host)?.iter().filter(|tool| suite.examples.can_run(tool)) {
        for example in &tool.examples {
            let arguments = Value::Object(example.arguments.clone());
            let what = format!("example {:?} of `{}`", example.phrase, tool.name);
            let call =
                instance.start(tool.name.as_str(), arguments).map_err(prefix_error(&what))?;
            call.settle().map_err(prefix_error(&what))?;
            match call.cancel().result {
                Err(error) if error.kind != ErrorKind::Cancelled => {
                    check_error_text(&what, &error)?
                }
                Ok(_) | Err(_) => {}
            }
        }
    }
    instance.close().map_err(prefix_error("close"))?;
    check_nothing_left(host)
}

/// Changes in one instance do not affect another.
pub fn instances_are_independent(suite: &ConformanceSuite, host: &FakeHost) -> ConformanceVerdict {
    let (busy, idle) = (
        host.create(None).map_err(prefix_error("an instance"))?,
        host.create(None).map_err(prefix_error("a second instance"))?,
    );
    let before = idle.save().map_err(prefix_error("save"))?;
    run_examples(suite.examples, host, &busy, |_, _| Ok(()))?;
    drop(busy.close().map_err(prefix_error("close"))?);
    let after = idle.save().map_err(prefix_error("save"))?;
    ensure(before == after, || "what one instance does changes what another saves".into())?;
    let later = host.create(None).map_err(prefix_error("a third instance"))?;
    let fresh = later.save().map_err(prefix_error("save"))?;
    ensure(before == fresh, || "what one instance did shows in a fresh one".into())
}
