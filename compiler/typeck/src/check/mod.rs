//! The rules, one module a subject. All are methods of [`crate::Checker`].

mod aggregates;
mod arithmetic;
pub(crate) mod assign;
mod branches;
mod calls;
mod casts;
mod compare;
mod fold;
mod infer;
mod literals;
pub(crate) mod names;
pub(crate) mod overloads;
pub(crate) mod ranges;
mod results;
mod structures;
mod types;
mod userfns;
