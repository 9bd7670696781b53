//! One file per phase over Ori in SSA form, and shared code. [`crate::phases`] defines the order of the phases.

pub mod addresses;
pub mod alone;
pub mod arrays;
pub mod atomics;
pub mod branches;
pub mod combine;
pub mod conditions;
pub mod constant_pairs;
pub mod contract;
pub mod convergence;
pub mod copy_propagation;
pub mod dead_code;
#[cfg(test)]
mod differential;
pub mod edit;
pub mod extensions;
pub mod fold;
pub mod forward;
pub mod guard;
pub mod halves;
pub mod hoist;
pub mod join;
pub mod literals;
pub mod pairs;
pub mod predication;
pub mod reassociate;
pub mod routines;
pub mod scale;
pub mod sink;
pub mod split_phis;
pub mod threading;
pub mod to_uniform;
pub mod uniform;
pub mod unroll;
pub mod value_numbering;
