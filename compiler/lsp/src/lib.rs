//! The language server: the editor's protocol over the compiler's answers.
//!
//! The only crate that knows the protocol. It reads nothing from the network; what it says of a file is what `dfc check`
//! says. It runs no pipeline but for the command that asks for it, and that in a process of its own.

mod capabilities;
mod client;
mod commands;
mod documents;
mod features;
mod findings;
mod pool;
mod positions;
mod server;
mod snapshot;
mod transport;
mod workspace;

use std::io::{self, BufRead, Write};

use crossbeam_channel::unbounded;
use dfc_compiler::Compiler;

pub use server::Ended;

/// Serves one client until it leaves, from the answers of a compiler. `input` is read on a thread of its own, which ends
/// with it.
///
/// # Errors
/// When the input is no protocol, when the output can't be written, and when the system has no threads.
pub fn serve(
    compiler: Compiler,
    input: impl BufRead + Send + 'static,
    output: impl Write + Send + 'static,
) -> io::Result<Ended> {
    let (to_server, incoming) = unbounded();
    let (to_client, outgoing) = unbounded();
    let reader =
        std::thread::Builder::new().name("input".to_owned()).spawn(move || transport::read_all(input, &to_server))?;
    let writer =
        std::thread::Builder::new().name("output".to_owned()).spawn(move || transport::write_all(output, &outgoing))?;
    let ended = server::Server::new(to_client, compiler)?.run(&incoming);
    let joined = |thread: std::thread::JoinHandle<io::Result<()>>| {
        thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread of the server failed")))
    };
    joined(writer)?;
    // After `exit` the client may leave its end open: the reader is waited for only if it has ended already.
    if reader.is_finished() {
        joined(reader)?;
    }
    Ok(ended)
}
