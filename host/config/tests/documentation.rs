//! `docs/configuration.md` matches the code. `UPDATE_EXPECT=1` rewrites the table.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use expect_test::expect_file;
use jaato_config::keys_as_markdown;

const BEGIN: &str = "<!-- keys: made from the code, do not edit -->\n";
const END: &str = "<!-- end of keys -->";

#[test]
fn documented_table_of_keys_matches_the_code() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (head, rest) = text.split_once(BEGIN).expect("the table's first mark");
    let (_, tail) = rest.split_once(END).expect("the table's last mark");
    expect_file![path].assert_eq(&format!("{head}{BEGIN}{}{END}{tail}", keys_as_markdown()));
}
