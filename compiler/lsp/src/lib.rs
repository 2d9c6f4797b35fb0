//! The language server: the editor's protocol over the compiler's answers.
//!
//! The only crate that knows the protocol. It reads nothing from the network and runs no pipeline by itself; what it says
//! of a file is what `dfc check` says.

pub mod documents;
pub mod positions;
pub mod transport;
