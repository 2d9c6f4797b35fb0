//! TLS to a PostgreSQL server: the certificate is always verified. It may not know what is sent.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Socket;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;

use crate::ConnectError;

/// Makes TLS connections.
#[derive(Clone)]
pub(crate) struct Tls(Arc<ClientConfig>);

impl Tls {
    /// Trusts the system's certificates, and those of a file.
    ///
    /// # Errors
    /// There are none, or the file can't be read.
    pub(crate) fn new(file: Option<&str>) -> Result<Tls, ConnectError> {
        let mut roots = RootCertStore::empty();
        // Those that can't be read are not trusted; that is all.
        let system = rustls_native_certs::load_native_certs();
        roots.add_parsable_certificates(system.certs);
        if let Some(path) = file {
            let unreadable = |why: String| ConnectError::new("R0202", format!("`sslrootcert`: `{path}` {why}"));
            let certificates = CertificateDer::pem_file_iter(path)
                .map_err(|_| unreadable("can't be read".into()))?
                .collect::<Result<Vec<_>, _>>()
                .map_err(|_| unreadable("holds something that is no certificate".into()))?;
            if roots.add_parsable_certificates(certificates).0 == 0 {
                return Err(unreadable("holds no certificate".into()));
            }
        }
        if roots.is_empty() {
            return Err(ConnectError::new(
                "R0230",
                "this system has no certificates by which a server could be verified",
            )
            .help("name a file of them, `sslrootcert=ca.pem`, or write `sslmode=disable` where the network is safe"));
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| ConnectError::new("R0230", format!("TLS can't be set up: {error}")))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Tls(Arc::new(config)))
    }
}

impl MakeTlsConnect<Socket> for Tls {
    type Stream = Stream;
    type TlsConnect = To;
    type Error = io::Error;

    fn make_tls_connect(&mut self, host: &str) -> io::Result<To> {
        let name = ServerName::try_from(host.to_string())
            .map_err(|_| io::Error::other("the host's name can't be verified"))?;
        Ok(To { connector: TlsConnector::from(self.0.clone()), name })
    }
}

/// One connection to be made.
pub(crate) struct To {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl TlsConnect<Socket> for To {
    type Stream = Stream;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Stream>> + Send>>;

    fn connect(self, socket: Socket) -> Self::Future {
        Box::pin(async move { self.connector.connect(self.name, socket).await.map(Stream) })
    }
}

/// A connection.
pub(crate) struct Stream(tokio_rustls::client::TlsStream<Socket>);

impl AsyncRead for Stream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

impl TlsStream for Stream {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}
