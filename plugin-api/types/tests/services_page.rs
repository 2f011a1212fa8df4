//! The table of services in the documents is the one of the code.
//!
//! `UPDATE_EXPECT=1 cargo test -p jaato-types --test it services_page` writes it.

use std::fmt::Write as _;

use expect_test::expect_file;
use jaato_types::operations::operations;

const HEAD: &str = "# Services

Each operation that the host offers to plugins, by its name. A test writes this page from the rows
in `plugin-api/types/src`. [abi.md](abi.md#services-of-this-host) describes the services, and
[authors](authors/README.md) has a page for each.

`bytes` are raw bytes after the JSON of a frame, and with `stream` the answer opens a stream. Without
a type there is no JSON. A plugin needs the [grant](authors/grants.md) if there is one. In a context
that only reads, a plugin may ask the operations that are marked *reads*.

| operation | does | request | answer | grant | reads |
|---|---|---|---|---|---|
";

#[test]
fn the_page_of_services_has_each_declared_operation() {
    let mut page = HEAD.to_owned();
    for operation in operations() {
        let summary = operation.summary.replace('\n', "");
        let code = |text: &str| if text == "()" { String::new() } else { format!("`{text}`") };
        let grant = operation.grant.map(code).unwrap_or_default();
        let reads = if operation.only_reads { "reads" } else { "" };
        let (request, answer) = (code(operation.request), code(operation.answer));
        let (name, summary) = (operation.name, summary.trim());
        writeln!(page, "| `{name}` | {summary} | {request} | {answer} | {grant} | {reads} |")
            .unwrap();
    }
    expect_file!["../../../docs/services.md"].assert_eq(&page);
}
