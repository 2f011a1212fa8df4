//! The hosts that a command line may name, including those without `://`.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::{ShellAnalysis, ShellWordKind, SimpleCommand, programs};

/// The reason for a host that programs may parse in different ways.
pub(crate) const UNCLEAR_HOST: &str = "cannot determine the host";

/// A host that a command line names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NamedHost {
    /// The host, in lower case.
    pub(crate) host: String,
    /// Whether a word names it as the host to connect to.
    pub(crate) is_certain: bool,
}

impl ShellAnalysis {
    /// Returns the hosts that the line may name, without duplicates.
    pub(crate) fn named_hosts(&self) -> Vec<NamedHost> {
        let mut hosts = Vec::new();
        for command in &self.commands {
            let words = command.words.get(1..).unwrap_or_default();
            let is_network = is_network_command(command);
            for word in words {
                if is_network && !word.text.starts_with('-') {
                    hosts.extend(operand_host(&word.text).map(NamedHost::known_host));
                }
                collect_hosts(&word.text, &mut hosts);
                // `-xhost`, and `-sLhost`.
                let glued = word.text.strip_prefix('-').unwrap_or_default();
                let letters = glued.chars().take_while(char::is_ascii_alphanumeric).count().min(8);
                (1..=letters).for_each(|count| collect_hosts(&glued[count..], &mut hosts));
            }
        }
        let others = self.files.iter().map(|file| &file.text).chain(&self.texts);
        others.for_each(|text| collect_hosts(text, &mut hosts));
        hosts.sort();
        hosts.dedup();
        hosts
    }

    /// Returns the first reason why the line may name a host that it does not contain as text.
    pub(crate) fn unclear_host_reason(&self) -> Option<&str> {
        self.unclear_name_reason().or_else(|| self.commands.iter().find_map(unclear_host_reason))
    }
}

fn is_network_command(command: &SimpleCommand) -> bool {
    programs::wrapper_table().network.has_word(&command.program_name().to_ascii_lowercase())
}

/// Returns why a command's hosts are unclear. Programs decode hosts, expand patterns in them and
/// replace equivalent letters.
fn unclear_host_reason(command: &SimpleCommand) -> Option<&'static str> {
    let is_odd = |text: &str| {
        text.contains(['%', '{', '[', '*']) && !text.starts_with('[') || !text.is_ascii()
    };
    let mut words = command.words.iter().skip(1);
    let is_unclear = is_network_command(command)
        && words
            .any(|word| word.kind != ShellWordKind::Literal || is_odd(url_authority(&word.text)));
    is_unclear.then_some(UNCLEAR_HOST)
}

/// Removes the scheme and the path from a word.
fn url_authority(text: &str) -> &str {
    let rest = strip_scheme(text).unwrap_or(text);
    rest.split(['/', '\\', '?', '#']).next().unwrap_or_default()
}

/// Schemes after which programs accept any number of slashes, and backslashes.
const WEB_SCHEMES: [&str; 5] = ["http", "https", "ws", "wss", "ftp"];

/// Returns the part of a URL after its scheme.
fn strip_scheme(text: &str) -> Option<&str> {
    let (scheme, rest) = text.split_once(':').filter(|(scheme, _)| is_scheme(scheme))?;
    match WEB_SCHEMES.iter().any(|web| scheme.eq_ignore_ascii_case(web)) {
        true => Some(rest.trim_start_matches(['/', '\\'])),
        false => rest.strip_prefix("//"),
    }
}

fn is_scheme(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

/// Returns the host of a URL, of `HOST`, `HOST:PORT`, `USER@HOST` or `HOST/PATH`.
pub(crate) fn operand_host(text: &str) -> Option<String> {
    let authority = url_authority(text);
    let host = authority.rsplit('@').next().unwrap_or_default();
    let host = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _)) => address,
        None if host.parse::<Ipv6Addr>().is_ok() => host,
        None => host.split(':').next().unwrap_or_default(),
    };
    canonical_host(host)
}

/// Returns the host of a text that is a URL, or a git address (`git@host:path`).
pub(crate) fn url_host(text: &str) -> Option<String> {
    let text = text.trim();
    let is_word = |text: &str| !text.is_empty() && !text.contains(char::is_whitespace);
    if strip_scheme(text).is_some() {
        return operand_host(text).filter(|host| is_word(host));
    }
    let (user, rest) = text.split_once('@')?;
    let (host, _) = rest.split_once(':')?;
    let is_git = is_word(user) && is_word(host) && !host.contains('/');
    canonical_host(host).filter(|_| is_git)
}

/// Returns true if programs may find another host in a text than [`operand_host`] does: they decode
/// escapes, drop line ends and replace equivalent letters.
pub(crate) fn is_ambiguous_host(text: &str) -> bool {
    let text = text.trim();
    let after_scheme = strip_scheme(text);
    let authority = after_scheme.unwrap_or(text).split(['/', '?', '#']).next().unwrap_or_default();
    let is_odd = |letter: char| !letter.is_ascii() || letter.is_ascii_control() || letter == ' ';
    // Only some programs end the host at a backslash.
    let has_backslash = after_scheme.is_some() && authority.contains('\\');
    authority.contains(is_odd) || has_backslash || has_escape(authority)
}

/// Returns true if a text has a `%` with two hexadecimal digits.
fn has_escape(text: &str) -> bool {
    let escapes = text.split('%').skip(1).filter_map(|rest| rest.get(..2));
    let mut escapes = escapes.map(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
    escapes.any(|is_escape| is_escape)
}

/// Adds every part of a text that could be a host.
fn collect_hosts(text: &str, hosts: &mut Vec<NamedHost>) {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || "-._".contains(letter);
    for token in text.split(|letter: char| !is_part(letter)) {
        let is_host = token.contains('.') || token.len() > 3;
        let host = canonical_host(token).filter(|_| is_host);
        hosts.extend(host.map(|host| NamedHost { host, is_certain: false }));
    }
    let is_part = |letter: char| letter.is_ascii_hexdigit() || ":.".contains(letter);
    for token in text.split(|letter: char| !is_part(letter)).filter(|it| it.contains("::")) {
        hosts.extend(canonical_host(token).map(|host| NamedHost { host, is_certain: false }));
    }
}

/// Normalizes a host: lower case, no final dot, addresses with four numbers.
pub(crate) fn canonical_host(host: &str) -> Option<String> {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    if host.is_empty() {
        return None;
    }
    if let Ok(address) = host.parse::<Ipv6Addr>() {
        return Some(match address.to_ipv4_mapped() {
            Some(address) => address.to_string(),
            None => address.to_string(),
        });
    }
    Some(parse_loose_ipv4(&host).map_or(host, |address| address.to_string()))
}

/// Parses an IPv4 address like old programs: one to four numbers, also octal and hexadecimal.
fn parse_loose_ipv4(host: &str) -> Option<Ipv4Addr> {
    let number = |text: &str| match text.strip_prefix("0x") {
        Some("") => Some(0),
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None if text.len() > 1 && text.starts_with('0') => u32::from_str_radix(text, 8).ok(),
        None if text.bytes().all(|byte| byte.is_ascii_digit()) => text.parse().ok(),
        None => None,
    };
    let numbers: Vec<u32> = host.split('.').map(number).collect::<Option<_>>()?;
    let (last, first) = numbers.split_last()?;
    if first.len() > 3 || first.iter().any(|number| *number > 255) {
        return None;
    }
    let room = 4 - first.len();
    let is_too_large = room < 4 && u64::from(*last) >= 1 << (8 * room);
    if is_too_large {
        return None;
    }
    let high = first.iter().enumerate().fold(0, |sum, (at, number)| sum | number << (24 - 8 * at));
    Some(Ipv4Addr::from(high | last))
}

impl NamedHost {
    fn known_host(host: String) -> Self {
        Self { host, is_certain: true }
    }
}
