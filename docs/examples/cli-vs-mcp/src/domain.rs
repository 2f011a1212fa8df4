//! The domain of scenarios: its program, its server and its templates.

use std::collections::BTreeMap;
use std::path::Path;

use jaato_library::Result;

use crate::usage_error;

/// The name for all scenarios of a domain.
pub const ALL: &str = "all";

/// The largest template in a folder.
const TEMPLATE_BYTES_MAX: u64 = 256 * 1024;

/// The two ways to do a scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BenchSide {
    /// With a program, through `cli_based_tool`.
    Cli,
    /// With the tools of a server.
    Mcp,
}

impl BenchSide {
    /// Both, in the order in which they run.
    pub const BOTH: [Self; 2] = [Self::Cli, Self::Mcp];

    /// Returns its name in paths and summaries.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cli => "cli",
            Self::Mcp => "mcp",
        }
    }
}

/// Templates of both sides, by scenario.
pub type ScenarioTemplates = BTreeMap<String, [String; 2]>;

/// A domain.
#[derive(Debug)]
pub struct BenchDomain {
    /// Its name, one word.
    pub name: &'static str,
    /// The program of the CLI side.
    pub program: &'static str,
    /// The usual name of the server of the MCP side.
    pub server: &'static str,
    /// How to set that server up.
    pub hint: &'static str,
    /// Default values for templates.
    pub defaults: &'static [(&'static str, &'static str)],
    templates: &'static [(&'static str, &'static str, &'static str)],
}

macro_rules! templates {
    ($domain:literal: $($scenario:literal),+) => {
        &[$((
            $scenario,
            include_str!(concat!("../templates/", $domain, "/cli/", $scenario, ".txt")),
            include_str!(concat!("../templates/", $domain, "/mcp/", $scenario, ".txt")),
        )),+]
    };
}

/// The built-in domains. The first one is the default.
static DOMAINS: [BenchDomain; 3] = [
    BenchDomain {
        name: "github",
        program: "gh",
        server: "GitHub",
        hint: "jaato mcp add GitHub COMMAND",
        defaults: &[
            ("ISSUE_NUMBER", "1"),
            ("SEARCH_QUERY", "is:open"),
            ("LIMIT", "10"),
            ("TOP_N", "5"),
        ],
        templates: templates!("github": "get_issue", "list_issues", "search_issues"),
    },
    BenchDomain {
        name: "confluence",
        program: "confluence-cli",
        server: "Atlassian",
        hint: "jaato mcp add Atlassian mcp-atlassian",
        defaults: &[("CQL_QUERY", "type=page"), ("LIMIT", "10"), ("TOP_N", "5")],
        templates: templates!("confluence": "get_page", "list_children", "search", "update_page"),
    },
    BenchDomain {
        name: "git",
        program: "git",
        server: "git",
        hint: "jaato mcp add git uvx mcp-server-git",
        defaults: &[("LIMIT", "10"), ("TOP_N", "5")],
        templates: templates!("git": "last_change", "recent_commits", "repo_status"),
    },
];

impl BenchDomain {
    /// Finds a domain and its requested scenarios. Without a domain, uses the first one that has
    /// them.
    ///
    /// # Errors
    /// An unknown name, with the known ones, or a template that cannot be read.
    pub fn find(
        name: Option<&str>,
        scenarios: &[String],
        folder: Option<&Path>,
    ) -> Result<(&'static Self, ScenarioTemplates)> {
        let mut last = None;
        for domain in DOMAINS.iter().filter(|it| name.is_none_or(|name| it.name == name)) {
            let all = domain.scenarios(folder)?;
            if scenarios.iter().any(|it| it == ALL) {
                return Ok((domain, all));
            }
            let unknown = scenarios.iter().find(|it| !all.contains_key(*it));
            match unknown {
                None => {
                    let wanted = all.into_iter().filter(|(name, _)| scenarios.contains(name));
                    return Ok((domain, wanted.collect()));
                }
                Some(unknown) => last = Some((unknown.clone(), all)),
            }
        }
        let Some((unknown, all)) = last else {
            let known: Vec<&str> = DOMAINS.iter().map(|it| it.name).collect();
            let text = format!("there is no domain `{}`", name.unwrap_or_default());
            return Err(usage_error(text).with_hint(format!("there are: {}", known.join(", "))));
        };
        let known: Vec<String> = match name {
            Some(_) => all.into_keys().collect(),
            None => {
                let mut known = Vec::new();
                for domain in &DOMAINS {
                    known.extend(domain.scenarios(folder)?.into_keys());
                }
                known
            }
        };
        let text = format!("no domain has the scenario `{unknown}`");
        Err(usage_error(text).with_hint(format!("there are: {}", known.join(", "))))
    }

    /// Lists its scenarios: those of a folder, then the built-in ones.
    fn scenarios(&self, folder: Option<&Path>) -> Result<ScenarioTemplates> {
        let built_in = self.templates.iter();
        let mut all: ScenarioTemplates = built_in
            .map(|(name, cli, mcp)| ((*name).to_owned(), [(*cli).to_owned(), (*mcp).to_owned()]))
            .collect();
        let Some(folder) = folder.map(|folder| folder.join(self.name)) else { return Ok(all) };
        for name in domain_names(&folder.join(BenchSide::Cli.name())) {
            let read = |side: BenchSide| {
                read_template(&folder.join(side.name()).join(format!("{name}.txt")))
            };
            let both = [read(BenchSide::Cli)?, read(BenchSide::Mcp)?];
            all.insert(name, both);
        }
        Ok(all)
    }

    /// Returns the names of a side's tools. A `*` matches any rest.
    pub fn allowed_tools(&self, side: BenchSide, server: &str) -> String {
        match side {
            BenchSide::Cli => "cli_based_tool".to_owned(),
            BenchSide::Mcp => format!("mcp__{server}__*"),
        }
    }
}

/// Refuses a server whose name cannot be used unchanged in the names of its tools.
pub fn check_server(name: &str) -> Result<()> {
    let is_legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let is_plain = !name.contains("__") && !name.ends_with('_') && name.chars().all(is_legal);
    if is_plain && (1..=24).contains(&name.len()) {
        return Ok(());
    }
    let text = format!("the server name `{name}` is not valid in tool names");
    Err(usage_error(text)
        .with_hint("name the server with 1 to 24 letters, digits and dashes in .mcp.json"))
}

/// Lists the names of the templates in a folder. Empty if the folder does not exist.
fn domain_names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let name = |entry: std::fs::DirEntry| {
        Some(entry.file_name().to_str()?.strip_suffix(".txt")?.to_owned())
    };
    entries.filter_map(name).collect()
}

fn read_template(path: &Path) -> Result<String> {
    let shown = path.display();
    let refused = |why: String| {
        usage_error(format!("cannot read the template `{shown}`: {why}"))
            .with_hint("a scenario has a template for `cli` and one for `mcp`")
    };
    let facts = path.metadata().map_err(|error| refused(error.to_string()))?;
    if facts.len() > TEMPLATE_BYTES_MAX {
        return Err(refused(format!("it has more than {TEMPLATE_BYTES_MAX} bytes")));
    }
    std::fs::read_to_string(path).map_err(|error| refused(error.to_string()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn find_domain(
        domain: Option<&str>,
        scenarios: &[&str],
    ) -> Result<(String, Vec<String>), String> {
        let scenarios: Vec<String> = scenarios.iter().map(|&it| it.to_owned()).collect();
        let (domain, scenarios) =
            BenchDomain::find(domain, &scenarios, None).map_err(|it| it.message)?;
        Ok((domain.name.to_owned(), scenarios.into_keys().collect()))
    }

    #[test]
    fn a_scenario_finds_its_domain() {
        let of = |names: &[&str]| names.iter().map(|&it| it.to_owned()).collect::<Vec<_>>();
        assert_eq!(
            find_domain(None, &["get_page"]).unwrap(),
            ("confluence".to_owned(), of(&["get_page"]))
        );
        assert_eq!(
            find_domain(None, &["repo_status", "last_change"]).unwrap(),
            ("git".to_owned(), of(&["last_change", "repo_status"]))
        );
        assert_eq!(find_domain(None, &["all"]).unwrap().0, "github");
        assert_eq!(find_domain(Some("confluence"), &["all"]).unwrap().1.len(), 4);
    }

    #[test]
    fn unknown_scenario_or_domain_is_an_error() {
        let refused = find_domain(Some("github"), &["get_page"]).unwrap_err();
        assert_eq!(refused, "no domain has the scenario `get_page`");
        // Neither of the two domains has both.
        assert!(find_domain(None, &["get_page", "get_issue"]).is_err());
        assert!(find_domain(Some("moon"), &["all"]).unwrap_err().contains("moon"));
    }

    #[test]
    fn scenario_folder_adds_and_replaces_scenarios() {
        let folder = tempfile::tempdir().unwrap();
        for side in ["cli", "mcp"] {
            let place = folder.path().join("git").join(side);
            fs::create_dir_all(&place).unwrap();
            fs::write(place.join("blame.txt"), format!("{side} blame")).unwrap();
            fs::write(place.join("repo_status.txt"), format!("{side} status")).unwrap();
        }
        let wanted = ["blame".to_owned(), "repo_status".to_owned()];
        let (domain, scenarios) = BenchDomain::find(None, &wanted, Some(folder.path())).unwrap();
        assert_eq!(domain.name, "git");
        assert_eq!(scenarios["blame"], ["cli blame", "mcp blame"]);
        assert_eq!(scenarios["repo_status"], ["cli status", "mcp status"]);
        fs::remove_file(folder.path().join("git/mcp/blame.txt")).unwrap();
        assert!(BenchDomain::find(None, &wanted, Some(folder.path())).is_err());
    }

    #[test]
    fn server_name_must_be_usable_in_tool_names() {
        assert!(check_server("GitHub").is_ok() && check_server("my-git_2").is_ok());
        for name in ["", "a b", "a__b", "a_", &"x".repeat(25)] {
            assert!(check_server(name).is_err(), "{name}");
        }
    }
}
