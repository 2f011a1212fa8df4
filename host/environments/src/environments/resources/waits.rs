//! Which resources want which others while they are made: a circle is found at once.

use jaato_types::{Error, ErrorKind};
use parking_lot::{Mutex, MutexGuard};

/// What the making of resources waits for.
#[derive(Default)]
pub struct Waits(Mutex<Vec<Want>>);

/// The making of one resource wants another.
#[derive(Clone, PartialEq)]
struct Want {
    making: String,
    wanted: String,
}

/// A wait. It ends when this is dropped.
pub struct Wait<'a> {
    waits: &'a Waits,
    want: Want,
}

impl Waits {
    /// Notes that the making of one resource waits for another.
    ///
    /// # Errors
    /// `conflict` where that one waits for the first: neither would ever be made.
    pub fn begin(&self, making: &str, wanted: &str) -> Result<Wait<'_>, Error> {
        let want = Want { making: making.to_owned(), wanted: wanted.to_owned() };
        let mut all = self.lock();
        if let Some(way) = way(&all, wanted, making) {
            return Err(circle(making, &way));
        }
        all.push(want.clone());
        Ok(Wait { waits: self, want })
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Want>> {
        self.0.lock()
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        let mut all = self.waits.lock();
        // One of them: a resource may be wanted twice by the same one.
        if let Some(at) = all.iter().position(|want| *want == self.want) {
            all.swap_remove(at);
        }
    }
}

/// Finds the way from one resource to another that it waits for, both ends included.
fn way(all: &[Want], from: &str, to: &str) -> Option<Vec<String>> {
    let mut ways = vec![vec![from.to_owned()]];
    let mut seen = vec![from.to_owned()];
    while let Some(way) = ways.pop() {
        let last = way.last().map_or("", String::as_str);
        if last == to {
            return Some(way);
        }
        for want in all.iter().filter(|want| want.making == last) {
            if !seen.contains(&want.wanted) {
                seen.push(want.wanted.clone());
                ways.push([way.as_slice(), std::slice::from_ref(&want.wanted)].concat());
            }
        }
    }
    None
}

fn circle(making: &str, way: &[String]) -> Error {
    let wanted: Vec<_> = way.iter().map(|name| format!("`{name}`")).collect();
    let text = format!(
        "the resource `{making}` waits for itself: its making wants {}",
        wanted.join(", whose making wants ")
    );
    Error::new(ErrorKind::Conflict, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_circle_is_found_whoever_closes_it_and_told_with_its_way() {
        let waits = Waits::default();
        let own = waits.begin("a", "a").map(drop).unwrap_err();
        assert_eq!(own.message, "the resource `a` waits for itself: its making wants `a`");
        let _first = waits.begin("a", "b").unwrap();
        let _aside = waits.begin("b", "d").unwrap();
        let _second = waits.begin("b", "c").unwrap();
        let closed = waits.begin("c", "a").map(drop).unwrap_err();
        assert_eq!(closed.kind, ErrorKind::Conflict);
        let text = "the resource `c` waits for itself: its making wants `a`, whose making wants `b`, whose making wants `c`";
        assert_eq!(closed.message, text);
        // Two who want the same are no circle.
        drop(waits.begin("c", "d").unwrap());
    }

    #[test]
    fn what_is_no_longer_waited_for_closes_nothing() {
        let waits = Waits::default();
        let (one, other) = (waits.begin("a", "b").unwrap(), waits.begin("a", "b").unwrap());
        drop(one);
        assert!(waits.begin("b", "a").is_err(), "it is wanted once more");
        drop(other);
        drop(waits.begin("b", "a").unwrap());
    }
}
