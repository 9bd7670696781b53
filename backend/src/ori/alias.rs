//! Decides which operations may be reordered, removed and merged: PTX's memory consistency model as rules about two
//! effects.
//!
//! - No operation moves across a fence or a barrier, and no operation with an effect moves across a clock.
//! - No later access moves before an acquire, and no earlier access moves after a release.
//! - Volatile accesses keep their order, and so do `.mmio` accesses; neither is repeated.
//! - Two accesses that may overlap keep their order if one of them writes or is strong.
//! - State spaces do not overlap, but a generic address may point into any of them.
//! - An asynchronous copy is a load of global memory and a store. Before its wait, neither has a position in the
//!   thread's order, so keeping it in place is stricter than PTX requires.
//! - Constant memory is not written, so reads of it may move across all operations.
//!
//! A missing rule only makes the code slower: an operation that no rule covers keeps its position.

use crate::ori::memory::{Effect, Kind, Memory, Space};

/// Whether exchanging two adjacent operations, `first` before `second`, cannot be observed.
///
/// `same_base`: their address operands hold the same values, so that offsets can be compared.
pub fn may_exchange(first: &Effect, second: &Effect, same_base: bool) -> bool {
    match (first, second) {
        (Effect::None, _) | (_, Effect::None) => true,
        (Effect::Memory(access), _) | (_, Effect::Memory(access)) if access.is_constant() => true,
        (Effect::Memory(first), Effect::Memory(second)) => {
            let pass = |a: &Memory, b: &Memory| !conflicts(a, b) || are_apart(a, b, same_base);
            let seconds = || second.parts().into_iter().flatten();
            !keeps_order(first, second)
                && first.parts().into_iter().flatten().all(|a| seconds().all(|b| pass(&a, &b)))
        }
        (Effect::Warp { .. }, Effect::Memory(_)) | (Effect::Memory(_), Effect::Warp { .. }) => true,
        _ => false,
    }
}

/// Whether an operation may be removed if its results are not read.
pub fn is_removable(effect: &Effect) -> bool {
    match effect {
        Effect::None | Effect::Observes | Effect::Warp { removable: true } => true,
        Effect::Memory(access) => access.is_weak_load(),
        Effect::Warp { removable: false } | Effect::Everything => false,
    }
}

/// Whether an operation can be replaced by the results of an equal operation that dominates it, wherever the two are.
pub fn is_repeatable(effect: &Effect) -> bool {
    match effect {
        Effect::None => true,
        Effect::Memory(access) => access.kind == Kind::Load && access.is_constant(),
        _ => false,
    }
}

/// Whether the two accesses keep their order for any addresses.
fn keeps_order(first: &Memory, second: &Memory) -> bool {
    let (a, b) = (first.order, second.order);
    a.acquires() || b.releases() || (a.is_volatile() && b.is_volatile())
}

/// Whether the order of the two accesses can be observed if they overlap.
fn conflicts(first: &Memory, second: &Memory) -> bool {
    first.writes() || second.writes() || first.order.is_strong() || second.order.is_strong()
}

/// Whether the two accesses have no byte in common.
fn are_apart(a: &Memory, b: &Memory, same_base: bool) -> bool {
    // A global address is also its own generic address.
    let wide = |space| matches!(space, Space::Global | Space::Generic);
    let one_space = a.space == b.space || (wide(a.space) && wide(b.space));
    let may_meet = one_space || a.space == Space::Generic || b.space == Space::Generic;
    if !may_meet {
        return true;
    }
    let known = a.bytes != Memory::ANYWHERE && b.bytes != Memory::ANYWHERE;
    let (start, other) = (i64::from(a.offset), i64::from(b.offset));
    known
        && one_space
        && same_base
        && a.scale == b.scale
        && (start + i64::from(a.bytes) <= other || other + i64::from(b.bytes) <= start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ori::memory::{Order, Scope};

    const SPACES: [Space; 4] = [Space::Global, Space::Generic, Space::Shared, Space::Local];

    /// The kinds of effects, in the order of the rows and columns of [`RULES`]. A scope makes no difference.
    fn kinds(space: Space) -> Vec<(&'static str, Effect)> {
        let of = |kind, order| Effect::Memory(Memory { space, kind, order, offset: 0, scale: 0, bytes: 4 });
        let scope = Scope::Gpu;
        vec![
            ("ld.weak", of(Kind::Load, Order::Weak)),
            ("st.weak", of(Kind::Store, Order::Weak)),
            ("ld.relaxed", of(Kind::Load, Order::Relaxed(scope))),
            ("st.relaxed", of(Kind::Store, Order::Relaxed(scope))),
            ("atom.relaxed", of(Kind::Update, Order::Relaxed(scope))),
            ("ld.volatile", of(Kind::Load, Order::Volatile)),
            ("st.volatile", of(Kind::Store, Order::Volatile)),
            ("ld.mmio", of(Kind::Load, Order::Mmio)),
            ("st.mmio", of(Kind::Store, Order::Mmio)),
            ("ld.acquire", of(Kind::Load, Order::Acquire(scope))),
            ("atom.acquire", of(Kind::Update, Order::Acquire(scope))),
            ("st.release", of(Kind::Store, Order::Release(scope))),
            ("atom.release", of(Kind::Update, Order::Release(scope))),
            ("atom.acq_rel", of(Kind::Update, Order::AcqRel(scope))),
            ("ld.nc", of(Kind::Load, Order::Constant)),
            ("fence", Effect::Everything),
            ("clock", Effect::Observes),
            ("shfl", Effect::Warp { removable: true }),
            ("add", Effect::None),
        ]
    }

    /// What PTX's memory model requires of two adjacent operations; the row is the first, the column the second. `#`
    /// keep their order; `=` keep it unless their addresses are known to differ; `.` may be exchanged.
    const RULES: [&str; 19] = [
        //            weak  relaxed volat mmio acquire release nc fence clock shfl add
        /* ld.weak      */
        ".= === == == == ### .##..",
        /* st.weak      */ "== === == == == ### .##..",
        /* ld.relaxed   */ "== === == == == ### .##..",
        /* st.relaxed   */ "== === == == == ### .##..",
        /* atom.relaxed */ "== === == == == ### .##..",
        /* ld.volatile  */ "== === ## ## == ### .##..",
        /* st.volatile  */ "== === ## ## == ### .##..",
        /* ld.mmio      */ "== === ## ## == ### .##..",
        /* st.mmio      */ "== === ## ## == ### .##..",
        /* ld.acquire   */ "## ### ## ## ## ### .##..",
        /* atom.acquire */ "## ### ## ## ## ### .##..",
        /* st.release   */ "== === == == == ### .##..",
        /* atom.release */ "== === == == == ### .##..",
        /* atom.acq_rel */ "## ### ## ## ## ### .##..",
        /* ld.nc        */ ".. ... .. .. .. ... .....",
        /* fence        */ "## ### ## ## ## ### .###.",
        /* clock        */ "## ### ## ## ## ### .###.",
        /* shfl         */ ".. ... .. .. .. ... .###.",
        /* add          */ ".. ... .. .. .. ... .....",
    ];

    #[test]
    fn every_pair_in_every_space_follows_the_model() {
        for first_space in SPACES {
            for second_space in SPACES {
                let overlap = first_space == second_space
                    || first_space == Space::Generic
                    || second_space == Space::Generic;
                let (rows, columns) = (kinds(first_space), kinds(second_space));
                for ((first_name, first), rule) in rows.iter().zip(RULES) {
                    let cells: Vec<char> = rule.chars().filter(|c| *c != ' ').collect();
                    assert_eq!(cells.len(), columns.len(), "{first_name}");
                    for ((second_name, second), cell) in columns.iter().zip(cells) {
                        let expected = match cell {
                            '#' => false,
                            '=' => !overlap,
                            _ => true,
                        };
                        // The same bytes, whether this is known or not.
                        for same_base in [false, true] {
                            assert_eq!(
                                may_exchange(first, second, same_base),
                                expected,
                                "{first_name} of {first_space:?}, {second_name} of {second_space:?}"
                            );
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_copy_is_a_load_and_a_store() {
        let copy = Effect::Memory(Memory {
            space: Space::Shared,
            kind: Kind::Copy,
            order: Order::Weak,
            offset: 16,
            scale: 0,
            bytes: 16,
        });
        let at = |space, kind, offset, bytes| {
            Effect::Memory(Memory { space, kind, order: Order::Weak, offset, scale: 0, bytes })
        };
        for (other, free) in [
            (at(Space::Global, Kind::Load, 0, 4), true),
            (at(Space::Global, Kind::Store, 0, 4), false),
            (at(Space::Generic, Kind::Store, 0, 4), false),
            (at(Space::Local, Kind::Store, 0, 4), true),
            (at(Space::Shared, Kind::Load, 16, 4), false),
            (at(Space::Shared, Kind::Load, 32, 4), true),
            (at(Space::Shared, Kind::Store, 12, 4), true),
            // The place of a matrix depends on the addresses of other threads.
            (at(Space::Shared, Kind::Load, 64, Memory::ANYWHERE), false),
            (at(Space::Shared, Kind::Copy, 32, 16), true),
            (at(Space::Shared, Kind::Copy, 24, 16), false),
            (Effect::Everything, false),
        ] {
            assert_eq!(may_exchange(&copy, &other, true), free, "{other:?}");
            assert_eq!(may_exchange(&other, &copy, true), free, "{other:?}");
        }
        assert!(!is_removable(&copy) && !is_repeatable(&copy));
    }

    #[test]
    fn offsets_tell_accesses_by_one_address_apart() {
        let at = |space, kind, offset, bytes| {
            Effect::Memory(Memory { space, kind, order: Order::Weak, offset, scale: 0, bytes })
        };
        let pairs = [
            (Space::Shared, 0, 4, Space::Shared, 4, 4, true),
            (Space::Shared, 0, 8, Space::Shared, 4, 4, false),
            (Space::Shared, 4, 4, Space::Shared, 0, 5, false),
            (Space::Global, -4, 4, Space::Generic, 0, 16, true),
            (Space::Global, 0, 4, Space::Generic, 3, 1, false),
            // A generic address is different from a shared one, although the same register held both.
            (Space::Shared, 0, 4, Space::Generic, 4, 4, false),
        ];
        for (a, start, bytes, b, other, other_bytes, apart) in pairs {
            let (load, store) = (at(a, Kind::Load, start, bytes), at(b, Kind::Store, other, other_bytes));
            for (first, second) in [(&load, &store), (&store, &load)] {
                assert_eq!(may_exchange(first, second, true), apart, "{first:?} {second:?}");
                assert!(!may_exchange(first, second, false));
            }
        }
    }

    #[test]
    fn what_other_threads_see_stays_once() {
        for space in SPACES {
            for (name, effect) in kinds(space) {
                let removable = ["ld.weak", "ld.nc", "clock", "shfl", "add"].contains(&name);
                assert_eq!(is_removable(&effect), removable, "{name}");
                assert_eq!(is_repeatable(&effect), ["ld.nc", "add"].contains(&name), "{name}");
            }
        }
        assert!(!is_removable(&Effect::Warp { removable: false }));
    }
}
