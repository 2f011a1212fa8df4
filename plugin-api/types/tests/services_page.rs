//! Tests that the table of services in `docs/services.md` matches the rows in the code.
//!
//! `UPDATE_EXPECT=1 cargo test -p jaato-types --test it services_page` updates it.

use std::fmt::Write as _;

use expect_test::expect_file;
use jaato_types::operations::operations;

const HEAD: &str = "# Services

The operations that the host offers to plugins. A test writes this page from the rows in
`plugin-api/types/src`. [abi.md](abi.md#services-of-this-host) describes the services, and
[authors](authors/README.md) has a page for each.

`bytes` means that raw bytes follow the JSON of the frame, and `stream` that the answer opens a
stream. Without a type there is no JSON. If a row names a [grant](authors/grants.md), the plugin
needs it. In a context that only reads, a plugin may use only the operations marked *reads*. In a
hook, it may also use those marked *hooks*, with a grant: programs of the session's environment need
the grant `process` there.

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
        let marks = [(operation.only_reads, "reads"), (operation.in_hooks, "hooks")];
        let reads = marks.iter().find(|(is_marked, _)| *is_marked).map_or("", |(_, mark)| mark);
        let (request, answer) = (code(operation.request), code(operation.answer));
        let (name, summary) = (operation.name, summary.trim());
        writeln!(page, "| `{name}` | {summary} | {request} | {answer} | {grant} | {reads} |")
            .unwrap();
    }
    expect_file!["../../../docs/services.md"].assert_eq(&page);
}
