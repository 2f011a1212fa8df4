//! The facets of an instance.

/// A facet of an instance, or its open operation. Workers use its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Facet {
    /// A tool call.
    Tool = 0,
    /// The plan of a gc.
    Gc = 1,
    /// The completion of a provider.
    Complete = 2,
    /// The models of a provider.
    Models = 3,
    /// An operation by name.
    Operation = 4,
    /// An operation of an execution environment, by name.
    Environment = 5,
}

/// The facets that an instance has, with a bit for each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FacetSet(u8);

impl Facet {
    const ALL: [Self; 6] =
        [Self::Tool, Self::Gc, Self::Complete, Self::Models, Self::Operation, Self::Environment];

    /// Returns the facet with a number, or `None` if no facet has it.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|facet| *facet as u8 == number)
    }
}

impl FacetSet {
    /// Adds a facet if `has` is true.
    #[must_use]
    pub fn with_facet(self, facet: Facet, has: bool) -> Self {
        Self(self.0 | u8::from(has) << facet as u8)
    }

    /// Returns true if the set contains the facet.
    pub fn has(self, facet: Facet) -> bool {
        self.0 & 1 << facet as u8 != 0
    }

    /// Returns the bits.
    pub fn bits(self) -> u8 {
        self.0
    }

    /// Creates a set from bits. Unknown bits are kept and never used.
    pub fn from_bits(bits: u8) -> Self {
        Self(bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facet_set_contains_exactly_the_added_facets() {
        for added in Facet::ALL {
            let set = FacetSet::default().with_facet(added, true).with_facet(Facet::Tool, false);
            let has = Facet::ALL.into_iter().filter(|facet| set.has(*facet));
            assert_eq!(has.collect::<Vec<_>>(), [added]);
            assert_eq!(FacetSet::from_bits(set.bits()), set);
            assert_eq!(Facet::from_number(added as u8), Some(added));
        }
        assert_eq!(Facet::from_number(6), None);
    }
}
