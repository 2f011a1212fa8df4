//! The JSON of the service `resources`, and of the operation that plugins implement.

use std::fmt::Write as _;

use jaato_types::resources::*;
use serde_json::json;

use super::ShapeList;

pub fn sample_resource_spec() -> ResourceSpec {
    ResourceSpec { name: "telescope".to_owned(), about: "looks at moons".to_owned() }
}

/// Adds the lines of this module.
pub fn add_shapes(shapes: &mut ShapeList) {
    shapes.start_section("services: resources");
    writeln!(shapes.text, "{SET} {GET} {LIST} {CALL} {GET_OR_CREATE} {REMOVE} {RESOURCE}").unwrap();
    let (name, kind) = (|| "telescope".to_owned(), || Some("optics".to_owned()));
    let about = || Some("looks at moons".to_owned());
    shapes.add(&ResourceSet { name: name(), number: 7, kind: kind(), about: about() });
    shapes.add(&ResourceName { name: name() });
    let plugin = "tool-moon".to_owned();
    shapes.add(&ResourceFacts { name: name(), plugin, kind: kind(), about: about() });
    let (operation, arguments) = (|| "point".to_owned(), || json!({ "at": "moon" }));
    shapes.add(&ResourceCall { name: name(), operation: operation(), arguments: arguments() });
    shapes.add(&ResourceCloseAnswer { found: true, problem: Some("it is stuck".to_owned()) });
    shapes.add_all(&[ResourceAction::Create, ResourceAction::Call, ResourceAction::Close]);
    let mut request = ResourceRequest::new(ResourceAction::Call, &name(), 7);
    request.operation = operation();
    request.arguments = arguments();
    shapes.add(&request);
}
