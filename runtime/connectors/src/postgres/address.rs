//! Where a PostgreSQL database is: its URL, with the few options that are allowed. It holds the password and shows it to nobody.

use std::str::FromStr;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use crate::ConnectError;

/// How long a server is waited for before it counts as away.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// Silence after which the other end is asked whether it is there, and how long it may take to answer.
const KEEPALIVE: Duration = Duration::from_secs(30);

/// A database.
#[derive(Clone)]
pub(crate) struct Address {
    /// For tokio-postgres.
    pub config: Config,
    /// Verify the server's certificate; otherwise plain text.
    pub tls: bool,
    /// A file of certificates that are trusted beside the system's.
    pub root_certificates: Option<String>,
    /// `database` at `host`, for messages.
    pub shown: String,
}

/// What may stand behind the `?`.
const OPTIONS: &[&str] = &["sslmode", "sslrootcert", "application_name", "connect_timeout"];

impl Address {
    /// Reads a URL.
    ///
    /// # Errors
    /// What is wrong with it; never its text.
    pub(crate) fn parse(url: &str) -> Result<Address, ConnectError> {
        let wrong = |message: String| {
            ConnectError::new("R0202", format!("`url` of `postgres`: {message}"))
                .help("it is written `postgres://user:password@host:5432/database?sslmode=verify-full`")
        };
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            return Err(wrong("it doesn't begin with `postgres://`".into()));
        }
        if url.contains('\0') {
            return Err(wrong("it holds a NUL character".into()));
        }
        let (base, options) = url.split_once('?').unwrap_or((url, ""));
        let mut config = Config::from_str(base).map_err(|_| wrong("it can't be read as a URL".into()))?;
        if config.get_user().is_none() {
            return Err(wrong("it names no user".into()));
        }
        let (mut mode, mut root_certificates) = (None, None);
        for option in options.split('&').filter(|option| !option.is_empty()) {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            match name {
                "sslmode" => mode = Some(value),
                "sslrootcert" => root_certificates = Some(value.replace("%2F", "/")),
                "application_name" => drop(config.application_name(value)),
                "connect_timeout" => match value.parse() {
                    Ok(seconds @ 1..=600) => drop(config.connect_timeout(Duration::from_secs(seconds))),
                    _ => return Err(wrong("`connect_timeout` takes seconds, 1 to 600".into())),
                },
                _ => {
                    let allowed = crate::database::listed(OPTIONS);
                    return Err(wrong(format!("the option `{name}` is not allowed; {allowed} are")));
                }
            }
        }
        let host = match config.get_hosts() {
            [host] => host.clone(),
            [] => return Err(wrong("it names no host".into())),
            _ => return Err(wrong("it names several hosts".into())),
        };
        let (local, host) = match &host {
            Host::Tcp(host) => (is_loopback(host), host.clone()),
            #[cfg(unix)]
            Host::Unix(path) => (true, path.display().to_string()),
        };
        let tls = match mode {
            None => !local,
            Some("disable") => false,
            Some("require" | "verify-full") => true,
            Some(other) => {
                let message = format!("`sslmode={other}` is not offered");
                return Err(wrong(message).help("`verify-full` (the default) and `require` check the server's certificate, `disable` sends plain text"));
            }
        };
        config.ssl_mode(if tls { SslMode::Require } else { SslMode::Disable });
        if config.get_application_name().is_none() {
            config.application_name("dfc");
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        config.keepalives_idle(KEEPALIVE).keepalives_interval(KEEPALIVE / 3).keepalives_retries(3);
        config.tcp_user_timeout(2 * KEEPALIVE);
        let database = config.get_dbname().or(config.get_user()).unwrap_or_default();
        let port = config.get_ports().first().copied().unwrap_or(5432);
        let shown = format!("`{database}` at {host}:{port}");
        Ok(Address { config, tls, root_certificates, shown })
    }
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read_by_an_allow_list() {
        let tls = |url: &str| Address::parse(url).map(|address| (address.tls, address.shown)).map_err(|e| e.message);
        assert_eq!(tls("postgres://me:pw@db.example/x"), Ok((true, "`x` at db.example:5432".into())));
        assert_eq!(tls("postgres://me@localhost:99/x"), Ok((false, "`x` at localhost:99".into())));
        assert!(tls("postgresql://me@127.0.0.1/x?sslmode=require").unwrap().0);
        assert!(!tls("postgres://me@db/x?sslmode=disable").unwrap().0);
        for (url, what) in [
            ("mysql://me@db/x", "doesn't begin"),
            ("postgres://db/x", "no user"),
            ("postgres://me:s3cret@db/x?sslmode=prefer", "`sslmode=prefer`"),
            ("postgres://me:s3cret@db/x?options=-csearch_path=x", "the option `options` is not allowed"),
            ("postgres://me:s3cret@a,b/x", "several hosts"),
            ("postgres://me:s3cret@db:port/x", "can't be read"),
        ] {
            let message = tls(url).unwrap_err();
            assert!(message.contains(what) && !message.contains("s3cret"), "{message}");
        }
    }
}
