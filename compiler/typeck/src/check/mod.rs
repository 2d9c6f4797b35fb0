//! The rules, one module a subject. All are methods of [`crate::Checker`].

mod fold;
mod assign;
mod types;
mod infer;
