//! Expressions as text, with their types, IR and diagnostics: one module a subject, one test binary.

mod aggregates;
mod assigning;
mod branches;
mod calls;
mod comparisons;
mod constants;
mod examples;
mod names;
mod numbers;
mod outcomes;
mod representatives;
mod structures;
mod support;
mod userfns;
