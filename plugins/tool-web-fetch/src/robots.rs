//! Reads `robots.txt` (RFC 9309).

/// The maximum part of a file to read, in bytes.
pub const BYTES_MAX: usize = 512 * 1024;

/// The rules of a server for one program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RobotsRules {
    /// Patterns of paths, and whether they are allowed.
    rules: Vec<(String, bool)>,
}

impl RobotsRules {
    /// Reads the rules for a program: those that name it, or those for all programs.
    pub fn parse_robots(text: &str, program: &str) -> Self {
        let mut named: Option<Vec<(String, bool)>> = None;
        let mut all = Vec::new();
        let (mut is_named, mut is_all, mut is_after_rule) = (false, false, true);
        for line in text.lines() {
            let line = line.split('#').next().unwrap_or_default();
            let Some((key, value)) = line.split_once(':') else { continue };
            let (key, value) = (key.trim().to_ascii_lowercase(), value.trim());
            if key == "user-agent" {
                if std::mem::take(&mut is_after_rule) {
                    (is_named, is_all) = (false, false);
                }
                is_all |= value == "*";
                is_named |= value.eq_ignore_ascii_case(program);
                if is_named {
                    named.get_or_insert_default();
                }
                continue;
            }
            let is_allowed = match key.as_str() {
                "allow" => true,
                "disallow" => false,
                _ => continue,
            };
            is_after_rule = true;
            // An empty value matches nothing.
            if value.is_empty() {
                continue;
            }
            if let (true, Some(named)) = (is_named, &mut named) {
                named.push((value.to_owned(), is_allowed));
            }
            if is_all {
                all.push((value.to_owned(), is_allowed));
            }
        }
        Self { rules: named.unwrap_or(all) }
    }

    /// Returns the rules of a server that cannot answer: nothing is allowed.
    pub fn disallow_all() -> Self {
        Self { rules: vec![("/".to_owned(), false)] }
    }

    /// Returns true if a path with its query may be read. The longest pattern decides.
    pub fn is_path_allowed(&self, path: &str) -> bool {
        let matching = self.rules.iter().filter(|(pattern, _)| is_pattern_match(pattern, path));
        matching
            .max_by_key(|(pattern, is_allowed)| (pattern.len(), *is_allowed))
            .is_none_or(|it| it.1)
    }
}

/// Matches a pattern with `*` for any text, and `$` for the end.
fn is_pattern_match(pattern: &str, path: &str) -> bool {
    let (pattern, is_whole) = match pattern.strip_suffix('$') {
        Some(pattern) => (pattern, true),
        None => (pattern, false),
    };
    let mut parts = pattern.split('*');
    let Some(mut rest) = path.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let mut last = None;
    for part in parts {
        last = Some(part);
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    match last {
        // The last part may also occur at the very end.
        Some(last) if is_whole => path.ends_with(last),
        None if is_whole => rest.is_empty(),
        Some(_) | None => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_rules(text: &str, allowed: &[&str], refused: &[&str]) {
        let rules = RobotsRules::parse_robots(text, "jaato");
        for path in allowed {
            assert!(rules.is_path_allowed(path), "{path}");
        }
        for path in refused {
            assert!(!rules.is_path_allowed(path), "{path}");
        }
    }

    #[test]
    fn longest_pattern_decides_and_allowing_wins_a_tie() {
        let text = "User-agent: *\nDisallow: /\nAllow: /docs # public\nDisallow: /docs/old\n\
                    Allow: /docs/old\n";
        check_rules(text, &["/docs", "/docs/x", "/docs/old/1"], &["/", "/other"]);
        check_rules("", &["/x"], &[]);
        check_rules("user-agent: *\ndisallow:\n", &["/x"], &[]);
    }

    #[test]
    fn rules_for_the_program_replace_those_for_all() {
        let text = "User-Agent: *\nDisallow: /\n\nUser-agent: other\nUser-agent: JAATO\n\
                    Disallow: /private\n";
        check_rules(text, &["/x"], &["/private/y"]);
        check_rules("User-agent: jaato\n\nUser-agent: *\nDisallow: /", &[], &["/x"]);
    }

    #[test]
    fn patterns_have_wildcards_and_an_end() {
        let text = "User-agent: *\nDisallow: /*.pdf$\nDisallow: /*/secret\nDisallow: /exact$";
        check_rules(
            text,
            &["/a.pdf?x", "/secret", "/exactly"],
            &["/a/b.pdf", "/x/secret/y", "/exact"],
        );
    }
}
