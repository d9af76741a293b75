//! Where queries run: in this process, or on a Ballista cluster.

use std::fmt;
use std::net::{TcpStream, ToSocketAddrs as _};
use std::str::FromStr;
use std::time::Duration;

use ballista_core::extension::{SessionConfigExt as _, SessionStateExt as _};
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};

use crate::error::SqlError;
use crate::functions;
use crate::trouble::explain;

const SCHEME: &str = "ballista://";
/// A scheduler that takes longer to take a connection is none.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where queries run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Engine {
    /// In this process.
    #[default]
    Embedded,
    /// On a Ballista cluster.
    Ballista {
        /// Host and port of its scheduler.
        address: String,
    },
}

impl FromStr for Engine {
    type Err = SqlError;

    fn from_str(text: &str) -> Result<Self, SqlError> {
        let unknown = || SqlError::UnknownEngine { text: text.to_owned() };
        if text == "embedded" {
            return Ok(Self::Embedded);
        }
        let address = text.strip_prefix(SCHEME).ok_or_else(unknown)?.trim_end_matches('/');
        let (host, port) = address.rsplit_once(':').ok_or_else(unknown)?;
        if host.is_empty() || port.parse::<u16>().is_err() {
            return Err(unknown());
        }
        Ok(Self::Ballista { address: address.to_owned() })
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Embedded => f.write_str("embedded"),
            Self::Ballista { address } => write!(f, "{SCHEME}{address}"),
        }
    }
}

impl Engine {
    /// A session of it, without tables. Its memory is the user's cap, if there is one; a cluster's is its own.
    pub(crate) fn context(&self, memory_bytes: Option<usize>) -> Result<SessionContext, SqlError> {
        let context = match self {
            Self::Embedded => {
                let config = SessionConfig::new().with_information_schema(true);
                let mut runtime = RuntimeEnvBuilder::new();
                if let Some(bytes) = memory_bytes {
                    runtime = runtime.with_memory_limit(bytes, 1.0);
                }
                let runtime = runtime.build_arc().map_err(|error| explain(&error))?;
                SessionContext::new_with_config_rt(config, runtime)
            }
            Self::Ballista { .. } if memory_bytes.is_some() => return Err(SqlError::ClusterMemory),
            Self::Ballista { address } => {
                reach(address)?;
                let config = SessionConfig::new_with_ballista().with_information_schema(true);
                let state = SessionStateBuilder::new()
                    .with_default_features()
                    .with_config(config)
                    .build()
                    .upgrade_for_ballista(format!("http://{address}"))
                    .map_err(|error| explain(&error))?;
                SessionContext::new_with_state(state)
            }
        };
        functions::register(&context);
        Ok(context)
    }
}

/// Ballista itself connects late, and says less.
fn reach(address: &str) -> Result<(), SqlError> {
    let error = |source| SqlError::NoScheduler { address: address.to_owned(), source };
    let mut last = std::io::Error::from(std::io::ErrorKind::NotFound);
    for place in address.to_socket_addrs().map_err(error)? {
        match TcpStream::connect_timeout(&place, PATIENCE) {
            Ok(_) => return Ok(()),
            Err(refused) => last = refused,
        }
    }
    Err(error(last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_are_named_by_address() {
        assert_eq!("embedded".parse::<Engine>().unwrap(), Engine::Embedded);
        let cluster = "ballista://node7:50050".parse::<Engine>().unwrap();
        assert_eq!(cluster, Engine::Ballista { address: "node7:50050".to_owned() });
        assert_eq!(cluster.to_string(), "ballista://node7:50050");
        let six = "ballista://[::1]:50050/".parse::<Engine>().unwrap();
        assert_eq!(six, Engine::Ballista { address: "[::1]:50050".to_owned() });
        for bad in
            ["", "spark", "ballista://", "ballista://node7", "ballista://:1", "ballista://a:b"]
        {
            let error = bad.parse::<Engine>().unwrap_err();
            assert_eq!(error.to_string(), format!("no engine `{bad}`"));
        }
    }
}
