//! An S3 server on this machine, for as long as a test needs it: moto, from the Python environment that `tests/run` makes. In front of it
//! a wire that can be cut.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A running server with an empty bucket `dfc`; it ends when this is dropped.
pub struct S3Server {
    process: Child,
    /// Requests until the next cut, and requests seen.
    cuts: Arc<[AtomicU64; 2]>,
    endpoint: String,
}

impl S3Server {
    /// Starts one.
    pub fn start() -> S3Server {
        let venv = match std::env::var_os("DFC_VENV") {
            Some(folder) => PathBuf::from(folder),
            None => PathBuf::from(std::env::var_os("HOME").expect("HOME is set")).join(".cache/dfc/venv"),
        };
        let program = venv.join("bin/moto_server");
        assert!(program.exists(), "MISSING: moto at {}; `tests/run` installs it", program.display());
        let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = free.local_addr().expect("an address").port();
        drop(free);
        let process = Command::new(program)
            .args(["-H", "127.0.0.1", "-p", &port.to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("moto starts");
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(begun.elapsed() < Duration::from_secs(60), "moto doesn't answer");
            std::thread::sleep(Duration::from_millis(50));
        }
        let cuts = Arc::new([AtomicU64::new(u64::MAX), AtomicU64::new(0)]);
        let server = S3Server { process, endpoint: format!("http://127.0.0.1:{}", wire(port, cuts.clone())), cuts };
        let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("moto answers");
        let request = "PUT /dfc HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        stream.write_all(request.as_bytes()).expect("a request");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        server
    }

    /// The variables with which it is found.
    pub fn variables(&self) -> [(&'static str, String); 4] {
        [
            ("AWS_ENDPOINT_URL", self.endpoint.clone()),
            ("AWS_ACCESS_KEY_ID", "key".into()),
            ("AWS_SECRET_ACCESS_KEY", "canary-in-a-coal-mine".into()),
            ("AWS_REGION", "us-east-1".into()),
        ]
    }

    /// From now on the answer to each so many-th request is lost, though the request is carried out. 0: none is.
    #[allow(dead_code)] // Not every test binary cuts wires.
    pub fn cut_every(&self, requests: u64) {
        self.cuts[0].store(if requests == 0 { u64::MAX } else { requests }, Ordering::SeqCst);
    }
}

impl Drop for S3Server {
    fn drop(&mut self) {
        // It is this test's own child.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Passes on what comes to its port, one request a connection; some answers never arrive.
fn wire(server: u16, cuts: Arc<[AtomicU64; 2]>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        for client in listener.incoming().filter_map(Result::ok) {
            let cuts = cuts.clone();
            std::thread::spawn(move || {
                // A connection that breaks is what this is about.
                let _ = pass_on(client, server, &cuts);
            });
        }
    });
    port
}

fn pass_on(mut client: TcpStream, server: u16, cuts: &[AtomicU64; 2]) -> std::io::Result<()> {
    let request = read_request(&mut client)?;
    let seen = cuts[1].fetch_add(1, Ordering::SeqCst) + 1;
    let lost = seen.is_multiple_of(cuts[0].load(Ordering::SeqCst));
    let mut upstream = TcpStream::connect(("127.0.0.1", server))?;
    upstream.write_all(&request)?;
    let mut answer = Vec::new();
    upstream.read_to_end(&mut answer)?;
    if lost { Ok(()) } else { client.write_all(&answer) }
}

/// Head and body, with the head changed so that the connection ends with the answer.
fn read_request(client: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 65536];
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        match client.read(&mut buffer)? {
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            n => bytes.extend_from_slice(&buffer[..n]),
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end - 2]).into_owned();
    let length = head
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .and_then(|(_, value)| value.trim().parse().ok())
        .unwrap_or(0usize);
    while bytes.len() < end + length {
        match client.read(&mut buffer)? {
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            n => bytes.extend_from_slice(&buffer[..n]),
        }
    }
    Ok([head.as_bytes(), b"Connection: close\r\n\r\n", &bytes[end..]].concat())
}
