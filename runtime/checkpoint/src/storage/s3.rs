//! A bucket of an object store that speaks S3 as storage. An object is there whole or not at all by nature; that one is created only if it
//! is absent is asked for with `If-None-Match: *`, and tried before it is relied on.

use std::future::Future;
use std::path::PathBuf;
use std::time::Duration;

use opendal::layers::{RetryLayer, TimeoutLayer};
use opendal::services::S3;
use opendal::{ErrorKind, HttpTransporter, Operator};
use opendal_http_transport_reqwest::ReqwestTransport;
use tokio::runtime::Runtime;

use crate::error::StorageError;
use crate::storage::{Object, Storage, TEMPORARY};

/// How often a request is sent again, with growing pauses: a few seconds in all. What lasts longer costs a checkpoint.
const RETRIES: usize = 4;
/// A request that has moved no byte for so long has failed.
const SILENCE: Duration = Duration::from_secs(30);
/// A request without a body that took so long has failed.
const PATIENCE: Duration = Duration::from_secs(60);
/// The variables that name another service than Amazon's.
const ENDPOINTS: [&str; 3] = ["AWS_ENDPOINT_URL", "AWS_ENDPOINT", "AWS_S3_ENDPOINT"];

/// A bucket.
pub(crate) struct S3Storage {
    operator: Operator,
    runtime: Runtime,
    /// `s3://bucket/prefix`
    location: String,
}

impl S3Storage {
    /// `rest` is `bucket/prefix`; `plain_text`: the service may be spoken to without TLS, wherever it is. Nothing is sent yet.
    pub(crate) fn open(location: &str, rest: &str, plain_text: bool) -> Result<S3Storage, StorageError> {
        let refuse = |why: &str, help: &str| StorageError::Location {
            place: location.to_owned(),
            why: why.to_owned(),
            help: help.to_owned(),
        };
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let bucket_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
        if bucket.is_empty() || !bucket.bytes().all(bucket_name) {
            return Err(refuse("it names no bucket", "write `s3://bucket/prefix`"));
        }
        if prefix.split('/').any(|part| matches!(part, "." | "..")) || prefix.chars().any(char::is_control) {
            return Err(refuse("its prefix has `.`, `..` or a control character", "write `s3://bucket/prefix`"));
        }
        let mut service = S3::default().bucket(bucket).root(&format!("/{prefix}"));
        let endpoint = ENDPOINTS.iter().find_map(|name| Some((name, std::env::var(name).ok()?)));
        if let Some((name, endpoint)) = &endpoint {
            if !plain_text && !is_safe(endpoint) {
                return Err(refuse(
                    &format!("`{name}` is neither `https://…` nor on this machine: rows would travel in plain text"),
                    "use `https://`, or write `s3+http://bucket/prefix` if the network is yours",
                ));
            }
            // There are no machine roles to be had outside Amazon's own.
            service = service.disable_ec2_metadata();
        }
        if ["AWS_REGION", "AWS_DEFAULT_REGION"].iter().all(|name| std::env::var_os(name).is_none()) {
            if endpoint.is_none() {
                return Err(refuse(
                    "its region is not known",
                    "set `AWS_REGION`, or `AWS_ENDPOINT_URL` for another service",
                ));
            }
            service = service.region("us-east-1");
        }
        // Somebody may have installed one already: any will do.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let fail = |why: String| StorageError::Failed { doing: format!("can't reach `{location}`"), why };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("dfc-s3")
            .enable_all()
            .build()
            .map_err(|error| fail(error.to_string()))?;
        let operator = Operator::new(service).map_err(|error| fail(words(&error)))?;
        let context = operator.base_context().with_http_transport(HttpTransporter::new(ReqwestTransport::default()));
        let operator = operator
            .with_context(context)
            .layer(TimeoutLayer::new().with_timeout(PATIENCE).with_io_timeout(SILENCE))
            .layer(RetryLayer::new().with_jitter().with_max_times(RETRIES).with_min_delay(Duration::from_millis(200)));
        Ok(S3Storage { operator, runtime, location: location.trim_end_matches('/').to_owned() })
    }

    fn wait<T>(&self, work: impl Future<Output = opendal::Result<T>>) -> opendal::Result<T> {
        self.runtime.block_on(work)
    }

    fn error(&self, doing: &str, name: &str, error: &opendal::Error) -> StorageError {
        let place = self.place(name);
        match error.kind() {
            ErrorKind::NotFound => StorageError::Missing { place },
            ErrorKind::PermissionDenied | ErrorKind::ConfigInvalid => StorageError::Location {
                place: self.location.clone(),
                why: format!("the service refuses to {doing} `{place}`: {}", words(error)),
                help: "look at the bucket's name, `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_REGION` and the rights of the key"
                    .into(),
            },
            _ => StorageError::Failed { doing: format!("can't {doing} `{place}`"), why: words(error) },
        }
    }
}

/// What the service said, in one line, without what a request has in its head.
fn words(error: &opendal::Error) -> String {
    let mut text = error.message().to_owned();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text = format!("{text}: {inner_text}");
        }
        cause = inner.source();
    }
    // S3's errors are records, written out: their own sentence is enough.
    let sentence = text.split_once("message: \"").and_then(|(_, rest)| Some(rest.split_once('"')?.0.to_owned()));
    sentence.filter(|sentence| !sentence.is_empty()).unwrap_or(text).replace('\n', " ")
}

/// Whether what is sent there can't be read on the way.
fn is_safe(endpoint: &str) -> bool {
    let Some(rest) = endpoint.strip_prefix("http://") else { return endpoint.starts_with("https://") };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    let host = match authority.strip_prefix('[') {
        Some(v6) => v6.split(']').next().unwrap_or(v6),
        None => authority.split(':').next().unwrap_or(authority),
    };
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

impl Storage for S3Storage {
    fn create(&self, name: &str, bytes: &[u8]) -> Result<bool, StorageError> {
        let write = async { self.operator.write_with(name, bytes.to_vec()).if_not_exists(true).await };
        match self.wait(write) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::ConditionNotMatch => Ok(false),
            Err(error) if error.kind() == ErrorKind::Unsupported => {
                Err(StorageError::NoCreate { place: self.location.clone(), why: words(&error) })
            }
            Err(error) => Err(self.error("write", name, &error)),
        }
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<(), StorageError> {
        self.wait(self.operator.write(name, bytes.to_vec())).map(drop).map_err(|e| self.error("write", name, &e))
    }

    fn get(&self, name: &str, limit: u64) -> Result<Vec<u8>, StorageError> {
        let length =
            self.wait(self.operator.stat(name)).map_err(|error| self.error("read", name, &error))?.content_length();
        if length > limit {
            return Err(StorageError::TooLarge { place: self.place(name), limit });
        }
        let read = async { self.operator.read_with(name).range(0..length).await };
        let bytes = self.wait(read).map_err(|error| self.error("read", name, &error))?;
        Ok(bytes.to_vec())
    }

    fn list(&self, below: &str) -> Result<Vec<Object>, StorageError> {
        let folder = format!("{}/", below.trim_end_matches('/'));
        let list = async { self.operator.list_with(&folder).recursive(true).await };
        let entries = match self.wait(list) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(self.error("list", below, &error)),
        };
        let files = entries.into_iter().filter(|entry| entry.metadata().is_file());
        let object =
            |entry: opendal::Entry| Object { bytes: entry.metadata().content_length(), name: entry.path().to_owned() };
        let mut objects: Vec<Object> = files.map(object).collect();
        objects.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(objects)
    }

    fn delete(&self, names: &[String]) -> Result<(), StorageError> {
        let Some(first) = names.first() else { return Ok(()) };
        self.wait(self.operator.delete_iter(names.iter().cloned())).map_err(|error| self.error("remove", first, &error))
    }

    fn probe(&self, below: &str) -> Result<(), StorageError> {
        let name = format!("{below}/{TEMPORARY}{:032x}", uuid::Uuid::new_v4().as_u128());
        let first = self.create(&name, b"one")?;
        let second = self.create(&name, b"two");
        let there = self.get(&name, 3);
        self.delete(std::slice::from_ref(&name))?;
        let why = match (first, second?, there?.as_slice()) {
            (true, false, b"one") => return Ok(()),
            (true, true, _) => "a second object of one name took the place of the first",
            _ => "what was written isn't what is read",
        };
        Err(StorageError::NoCreate { place: self.location.clone(), why: why.into() })
    }

    fn local_path(&self, _: &str) -> Option<PathBuf> {
        None
    }

    fn place(&self, name: &str) -> String {
        format!("{}/{name}", self.location)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_only_to_this_machine() {
        for safe in ["https://s3.example", "http://127.0.0.1:9000", "http://localhost/x", "http://[::1]:9000"] {
            assert!(is_safe(safe), "{safe}");
        }
        for unsafe_one in ["http://minio:9000", "http://127.0.0.1.example", "http://[::2]", "ftp://localhost", ""] {
            assert!(!is_safe(unsafe_one), "{unsafe_one}");
        }
    }

    #[test]
    fn locations_that_are_none() {
        for (rest, why) in [("", "it names no bucket"), ("a b", "it names no bucket"), ("b/../c", "its prefix has")] {
            let error = S3Storage::open(&format!("s3://{rest}"), rest, false).err().expect("refused").to_string();
            assert!(error.starts_with(&format!("checkpoints can't be kept in `s3://{rest}`: {why}")), "{error}");
        }
    }
}
