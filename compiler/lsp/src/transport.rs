//! Messages over a byte stream: a header with the length, then JSON.
//!
//! Reading goes on after a message that is no JSON or no message: its length says where the next one starts. Only a broken
//! header ends it, because then nothing does.

use std::io::{self, BufRead, Write};

use crossbeam_channel::{Receiver, Sender};
use lsp_server::Message;
use serde_json::{Value, json};

/// Bytes of a message at most; more is taken for a broken header.
const MESSAGE_BYTES: usize = 256 << 20;

/// Bytes of a header line at most.
const HEADER_BYTES: usize = 4096;

/// What came in.
#[derive(Debug)]
pub enum Incoming {
    /// A message.
    Message(Message),
    /// Something with the right frame and the wrong content: what to answer.
    Refused(Value),
}

/// What goes out.
#[derive(Debug)]
pub enum Outgoing {
    /// A message.
    Message(Message),
    /// An answer to something that was no message.
    Refusal(Value),
}

/// Reads messages until the stream ends.
///
/// # Errors
/// The stream's own, and a broken header.
pub fn read_all(mut input: impl BufRead, to: &Sender<Incoming>) -> io::Result<()> {
    while let Some(body) = read_body(&mut input)? {
        if to.send(understand(&body)).is_err() {
            break;
        }
    }
    Ok(())
}

/// The next body; `None` at the end of the stream.
fn read_body(input: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let broken = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
    let mut length: Option<usize> = None;
    let mut first = true;
    loop {
        let mut line = Vec::new();
        let mut limited = io::Read::take(&mut *input, HEADER_BYTES as u64);
        if limited.read_until(b'\n', &mut line)? == 0 {
            return match first {
                true => Ok(None),
                false => Err(broken("the input ends inside a header".to_owned())),
            };
        }
        let line = String::from_utf8_lossy(&line);
        let line = line.trim_end_matches(['\r', '\n']);
        if line.is_empty() {
            if length.is_none() && first {
                // A blank line between messages.
                continue;
            }
            break;
        }
        first = false;
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().ok().filter(|length| *length <= MESSAGE_BYTES);
            if length.is_none() {
                return Err(broken(format!(
                    "a header says `{line}`: expected a number of bytes up to {MESSAGE_BYTES}"
                )));
            }
        }
    }
    let Some(length) = length else { return Err(broken("a message has no `Content-Length`".to_owned())) };
    let mut body = vec![0; length];
    input.read_exact(&mut body)?;
    Ok(Some(body))
}

fn understand(body: &[u8]) -> Incoming {
    let value: Value = match serde_json::from_slice(body) {
        Ok(value) => value,
        Err(error) => {
            return Incoming::Refused(refusal(Value::Null, -32700, format!("the message is not JSON: {error}")));
        }
    };
    let id = match value.get("id") {
        Some(id @ (Value::Number(_) | Value::String(_))) => id.clone(),
        _ => Value::Null,
    };
    match serde_json::from_value(value) {
        Ok(message) => Incoming::Message(message),
        Err(_) => {
            let words = "the message is neither a request nor a notification nor a response".to_owned();
            Incoming::Refused(refusal(id, -32600, words))
        }
    }
}

fn refusal(id: Value, code: i32, message: String) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
}

/// Writes messages until there are no more senders.
///
/// # Errors
/// The stream's own.
pub fn write_all(mut output: impl Write, from: &Receiver<Outgoing>) -> io::Result<()> {
    for message in from {
        match message {
            Outgoing::Message(message) => message.write(&mut output)?,
            Outgoing::Refusal(value) => {
                let body = value.to_string();
                write!(output, "Content-Length: {}\r\n\r\n{body}", body.len())?;
            }
        }
        output.flush()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> (Vec<Incoming>, io::Result<()>) {
        let (to, from) = crossbeam_channel::unbounded();
        let end = read_all(bytes, &to);
        drop(to);
        (from.iter().collect(), end)
    }

    fn framed(body: &str) -> String {
        format!("Content-Length: {}\r\n\r\n{body}", body.len())
    }

    #[test]
    fn reading_goes_on_after_what_is_no_message() {
        let good = framed(r#"{"jsonrpc":"2.0","id":1,"method":"shutdown"}"#);
        let bytes = [framed("{"), framed("[]"), framed(r#"{"id":7}"#), framed("\"ä\""), good].concat();
        let (messages, end) = read(bytes.as_bytes());
        assert!(end.is_ok());
        let codes: Vec<i64> = messages
            .iter()
            .map(|message| match message {
                Incoming::Refused(value) => value["error"]["code"].as_i64().expect("a code"),
                Incoming::Message(_) => 0,
            })
            .collect();
        assert_eq!(codes[0], -32700);
        assert_eq!(codes.last(), Some(&0));
        assert_eq!(messages.len(), 5);
    }

    #[test]
    fn a_broken_header_ends_it() {
        for bytes in [
            "Content-Length: x\r\n\r\n{}",
            "X: 1\r\n\r\n{}",
            "Content-Length: 99999999999\r\n\r\n",
            "Content-Length: 5\r\n",
        ] {
            assert!(read(bytes.as_bytes()).1.is_err(), "{bytes}");
        }
        assert!(read(b"").1.is_ok());
        assert!(read(b"\r\n\r\n").1.is_ok());
    }
}
