//! One connection to a server: TCP, with TLS over it for `https`.
//!
//! Trusted are the certificates of the system, or those that `SSL_CERT_FILE` and `SSL_CERT_DIR` name,
//! so that a site's own authority works. Proxies are not spoken to.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Makes connections. Shared by all lanes, so that certificates are read once.
#[derive(Default)]
pub(crate) struct Dialer {
    tls: OnceLock<Result<TlsConnector, String>>,
    /// Set when answers are no longer needed.
    pub(crate) stop: Arc<AtomicBool>,
    /// Which of a host's addresses is tried first: large services answer with several.
    turn: AtomicUsize,
}

/// Where a connection goes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) tls: bool,
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl Origin {
    pub(crate) fn of(uri: &http::Uri) -> io::Result<Origin> {
        let invalid = || io::Error::new(io::ErrorKind::InvalidInput, "expected http or https");
        let tls = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(invalid()),
        };
        let host = uri.host().ok_or_else(invalid)?.trim_matches(['[', ']']).to_owned();
        let port = uri.port_u16().unwrap_or(default_port(uri));
        Ok(Origin { tls, host, port })
    }

    /// Whether a connection that goes there can be asked for that.
    pub(crate) fn serves(&self, uri: &http::Uri) -> bool {
        let scheme = if self.tls { "https" } else { "http" };
        let port = uri.port_u16().unwrap_or(default_port(uri));
        let host = uri.host().map(|host| host.trim_matches(['[', ']']));
        host == Some(&*self.host) && port == self.port && uri.scheme_str() == Some(scheme)
    }
}

fn default_port(uri: &http::Uri) -> u16 {
    if uri.scheme_str() == Some("https") { 443 } else { 80 }
}

impl Dialer {
    pub(crate) fn new(stop: Arc<AtomicBool>) -> Dialer {
        Dialer { stop, ..Dialer::default() }
    }

    /// A new connection.
    pub(crate) async fn dial(&self, origin: &Origin, timeout: Duration) -> io::Result<Socket> {
        match tokio::time::timeout(timeout, self.dial_now(origin)).await {
            Ok(dialed) => dialed,
            Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "it takes too long")),
        }
    }

    async fn dial_now(&self, origin: &Origin) -> io::Result<Socket> {
        let stream = self.reach(origin).await?.into_std()?;
        let probe = stream.try_clone()?;
        let stream = TcpStream::from_std(stream)?;
        stream.set_nodelay(true)?;
        let link: Box<dyn Link> = match origin.tls {
            false => Box::new(stream),
            true => {
                let name = ServerName::try_from(origin.host.clone())
                    .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
                Box::new(self.tls()?.connect(name, stream).await?)
            }
        };
        Ok(Socket { link, probe, moved: 0 })
    }

    async fn reach(&self, origin: &Origin) -> io::Result<TcpStream> {
        let found = tokio::net::lookup_host((origin.host.as_str(), origin.port)).await?;
        let mut addresses: Vec<SocketAddr> = found.collect();
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let first = turn % addresses.len().max(1);
        addresses.rotate_left(first);
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
        for address in addresses {
            match TcpStream::connect(address).await {
                Ok(stream) => return Ok(stream),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn tls(&self) -> io::Result<&TlsConnector> {
        let made = self.tls.get_or_init(|| trust_the_system().map_err(|error| error.to_string()));
        made.as_ref().map_err(|why| io::Error::other(why.clone()))
    }
}

fn trust_the_system() -> Result<TlsConnector, Box<dyn std::error::Error>> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let why = found.errors.first().map(ToString::to_string).unwrap_or_default();
        return Err(format!("the system has no trusted certificates {why}").into());
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

/// An open connection that counts when something moves on it.
pub(crate) struct Socket {
    link: Box<dyn Link>,
    /// A second handle to the socket, which bypasses the runtime.
    probe: std::net::TcpStream,
    moved: u64,
}

/// TCP, or TLS over it.
trait Link: AsyncRead + AsyncWrite + Send + Sync + Unpin {
    fn tcp(&self) -> &TcpStream;
}

impl Link for TcpStream {
    fn tcp(&self) -> &TcpStream {
        self
    }
}

impl Link for TlsStream<TcpStream> {
    fn tcp(&self) -> &TcpStream {
        self.get_ref().0
    }
}

impl Socket {
    /// Grows whenever bytes were sent or received.
    pub(crate) fn moved(&self) -> u64 {
        self.moved
    }

    /// Whether there is nothing to read, not even the end. Asks the socket itself: what the runtime
    /// knows is as old as the last request.
    pub(crate) fn is_silent(&self) -> bool {
        let peek = || self.probe.peek(&mut [0]);
        let mut peeked = None;
        // If the runtime takes the socket for readable, it learns here that it is not, which spares
        // it a read in vain.
        let seen = self.link.tcp().try_io(Interest::READABLE, || {
            let result = peek();
            peeked = Some(result.as_ref().is_err_and(is_blocked));
            result
        });
        drop(seen);
        peeked.unwrap_or_else(|| peek().as_ref().is_err_and(is_blocked))
    }
}

fn is_blocked(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.link).poll_read(cx, buf))?;
        self.moved += 1;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.link).poll_write(cx, buf))?;
        self.moved += 1;
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.link).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.link).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.link).poll_write_vectored(cx, bufs))?;
        self.moved += 1;
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        self.link.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_read_from_a_uri() {
        let of = |uri: &str| Origin::of(&uri.parse().unwrap());
        let expected = |tls, host: &str, port| Origin { tls, host: host.to_owned(), port };
        assert_eq!(of("http://h/x").unwrap(), expected(false, "h", 80));
        assert_eq!(of("https://h:9000/x").unwrap(), expected(true, "h", 9000));
        assert_eq!(of("http://[::1]:80/").unwrap(), expected(false, "::1", 80));
        assert!(of("ftp://h/").is_err());
    }

    #[test]
    fn an_origin_serves_what_is_there_and_nothing_else() {
        let served = |origin: &str, uri: &str| {
            Origin::of(&origin.parse().unwrap()).unwrap().serves(&uri.parse().unwrap())
        };
        assert!(served("http://h/x", "http://h:80/y") && served("https://h:443/", "https://h/"));
        assert!(served("http://[::1]:9/", "http://[::1]:9/x"));
        assert!(!served("http://h/", "https://h:80/") && !served("http://h/", "http://h:81/"));
        assert!(!served("http://h/", "http://i/") && !served("http://h/", "/x"));
    }
}
