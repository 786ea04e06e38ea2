//! One seeded generator a component, so that what one component draws never shifts what another one gets.

/// The seed of the component `name` in a run with `seed`.
pub(crate) fn seed_of(seed: u64, name: &str) -> u64 {
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    seed ^ hash
}

/// The generator of the component `name` in a run with `seed`.
pub(crate) fn generator(seed: u64, name: &str) -> fastrand::Rng {
    fastrand::Rng::with_seed(seed_of(seed, name))
}

#[cfg(test)]
mod tests {
    use super::generator;

    #[test]
    fn a_component_draws_the_same_from_the_same_seed_and_unlike_its_neighbours() {
        let draw = |seed, name| generator(seed, name).u64(..);
        assert_eq!(draw(1, "link:a"), draw(1, "link:a"));
        assert_ne!(draw(1, "link:a"), draw(1, "link:b"));
        assert_ne!(draw(1, "link:a"), draw(2, "link:a"));
    }
}
