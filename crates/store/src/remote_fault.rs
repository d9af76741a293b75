//! What servers and networks do wrong.

use std::fmt;

/// Why a request to a server failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RemoteFault {
    /// The object or folder does not exist.
    Missing,
    /// The bucket or container does not exist.
    NoBucket,
    /// The user lacks the permission.
    Denied,
    /// The server computed another signature: a wrong secret, or a proxy that changes requests.
    Signature,
    /// The server does not know the user.
    Credentials,
    /// There is nothing to sign requests with.
    NoCredentials,
    /// The bucket is in another region, or at another endpoint.
    Region,
    /// The object was replaced while it was being read.
    Changed,
    /// No connection could be made.
    Unreachable,
    /// The connection broke off.
    Broken,
    /// Nothing was sent or received in time.
    Stalled,
    /// The server is busy, or asks for fewer requests.
    Throttled,
    /// The server failed, with this status.
    Server(u16),
    /// The server answered with another unexpected status.
    Status(u16),
    /// The answer violates the protocol.
    Protocol,
    /// This kind of server, or this layout of keys, cannot do that.
    Unsupported,
}

impl fmt::Display for RemoteFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            RemoteFault::Missing => "it does not exist",
            RemoteFault::NoBucket => "the bucket does not exist",
            RemoteFault::Denied => "access denied",
            RemoteFault::Signature => "the server refuses the signature, the secret may be wrong",
            RemoteFault::Credentials => "the server does not know these credentials",
            RemoteFault::NoCredentials => "no credentials were found",
            RemoteFault::Region => "the bucket is in another region or at another endpoint",
            RemoteFault::Changed => "the object changed while it was being read",
            RemoteFault::Unreachable => "no connection to the server",
            RemoteFault::Broken => "the connection broke off",
            RemoteFault::Stalled => "the server stopped answering",
            RemoteFault::Throttled => "the server is busy",
            RemoteFault::Server(501) => "the server cannot do that",
            RemoteFault::Server(status) => return write!(f, "server error {status}"),
            RemoteFault::Status(405) => "the server does not allow that",
            RemoteFault::Status(status) => return write!(f, "unexpected answer {status}"),
            RemoteFault::Protocol => "the answer cannot be understood",
            RemoteFault::Unsupported => "not possible there",
        };
        f.write_str(text)
    }
}
