//! Credentials that must be fetched, fetched once for all lanes.
//!
//! A lane is driven only while it is used, and there are many. So requests for credentials run on the
//! runtime that all lanes share, and what they brought is kept here for a while; the provider below
//! keeps it until it is about to expire.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use object_store::{CredentialProvider, Error, Result};
use tokio::runtime::Handle;

use crate::lock::lock;

/// How long a credential is taken from here without asking the provider, which renews it minutes
/// before it expires.
const KEPT: Duration = Duration::from_secs(30);

type Provider<C> = Arc<dyn CredentialProvider<Credential = C>>;

/// A provider for many runtimes over one that works on its own.
pub(crate) struct Shared<C> {
    inner: Provider<C>,
    home: Handle,
    kept: Mutex<Option<(Instant, Arc<C>)>>,
}

impl<C> Shared<C> {
    pub(crate) fn new(inner: Provider<C>, home: Handle) -> Arc<Shared<C>> {
        Arc::new(Shared { inner, home, kept: Mutex::default() })
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Option<(Instant, Arc<C>)>> {
        lock(&self.kept)
    }
}

/// Credentials are not to be seen.
impl<C> fmt::Debug for Shared<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

#[async_trait]
impl<C: Send + Sync + 'static> CredentialProvider for Shared<C> {
    type Credential = C;

    async fn get_credential(&self) -> Result<Arc<C>> {
        if let Some((since, credential)) = &*self.kept()
            && since.elapsed() < KEPT
        {
            return Ok(Arc::clone(credential));
        }
        let inner = Arc::clone(&self.inner);
        let fetched = self.home.spawn(async move { inner.get_credential().await }).await;
        let credential = match fetched {
            Ok(Ok(credential)) => credential,
            Ok(Err(error)) => return Err(refused(error)),
            Err(error) => return Err(refused(error)),
        };
        *self.kept() = Some((Instant::now(), Arc::clone(&credential)));
        Ok(credential)
    }
}

fn refused(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::Unauthenticated { path: "credentials".to_owned(), source: Box::new(error) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[derive(Debug)]
    struct Counting(AtomicU32);

    #[async_trait]
    impl CredentialProvider for Counting {
        type Credential = String;

        async fn get_credential(&self) -> Result<Arc<String>> {
            match self.0.fetch_add(1, Ordering::Relaxed) {
                0 => Err(Error::NotSupported { source: "not yet".into() }),
                _ => Ok(Arc::new("hush".to_owned())),
            }
        }
    }

    #[test]
    fn many_lanes_fetch_once_and_errors_are_not_kept() {
        let home = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let counting = Arc::new(Counting(AtomicU32::new(0)));
        let shared = Shared::new(Arc::clone(&counting) as Provider<String>, home.handle().clone());
        assert!(!format!("{shared:?}").contains("hush"));
        let lane = || tokio::runtime::Builder::new_current_thread().build().unwrap();
        let error = lane().block_on(shared.get_credential()).unwrap_err();
        assert!(matches!(error, Error::Unauthenticated { .. }), "{error:?}");
        for _ in 0..3 {
            assert_eq!(*lane().block_on(shared.get_credential()).unwrap(), "hush");
        }
        assert_eq!(counting.0.load(Ordering::Relaxed), 2);
    }
}
