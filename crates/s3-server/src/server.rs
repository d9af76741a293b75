//! The server: a loopback port and the thread that serves it.

use std::io;
use std::net::SocketAddr;

use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use s3s::access::{S3Access, S3AccessContext};
use s3s::auth::SimpleAuth;
use s3s::service::{S3Service, S3ServiceBuilder};
use s3s::{S3Result, s3_error};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};

use crate::Memory;

/// Who may ask, and with what secret.
#[derive(Debug, Clone, Copy)]
pub struct Keys<'a> {
    /// The access key.
    pub id: &'a str,
    /// Its secret.
    pub secret: &'a str,
}

impl Keys<'_> {
    /// Keys for tests.
    pub const TEST: Keys<'static> = Keys { id: "feedline", secret: "only-for-tests" };
}

/// A running server, which ends when it is dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    memory: Memory,
    _runtime: Runtime,
}

impl Server {
    /// Starts a server that wants requests signed with `keys`, on a free port of the loopback.
    pub fn start(keys: Keys<'_>) -> io::Result<Server> {
        Server::start_at(keys, 0)
    }

    /// Starts a server on a port of the loopback.
    pub fn start_at(keys: Keys<'_>, port: u16) -> io::Result<Server> {
        let runtime =
            Builder::new_multi_thread().worker_threads(2).thread_name("s3").enable_all().build()?;
        let memory = Memory::default();
        let mut builder = S3ServiceBuilder::new(memory.clone());
        builder.set_auth(SimpleAuth::from_single(keys.id, keys.secret));
        builder.set_access(Gate { memory: memory.clone() });
        let service = builder.build();
        let listener = runtime.block_on(TcpListener::bind(("127.0.0.1", port)))?;
        let address = listener.local_addr()?;
        runtime.spawn(serve(listener, service));
        Ok(Server { address, memory, _runtime: runtime })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `http://` and its address.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What it holds.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }
}

async fn serve(listener: TcpListener, service: S3Service) {
    while let Ok((stream, _)) = listener.accept().await {
        // A connection that cannot be tuned is served all the same.
        let _ = stream.set_nodelay(true);
        let service = service.clone();
        tokio::spawn(async move {
            // A client that disconnects is not an error of the server.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

/// Lets requests without a signature read, once that was allowed. Wrong signatures never come here.
struct Gate {
    memory: Memory,
}

#[async_trait::async_trait]
impl S3Access for Gate {
    async fn check(&self, context: &mut S3AccessContext<'_>) -> S3Result<()> {
        let is_read =
            matches!(context.s3_op().name(), "GetObject" | "HeadObject" | "ListObjectsV2");
        match context.credentials() {
            Some(_) => Ok(()),
            None if is_read && self.memory.is_public() => Ok(()),
            None => Err(s3_error!(AccessDenied)),
        }
    }
}
