//! Stores at the other end of a network: S3 and its relatives, Google's, Azure's, and plain HTTP.
//!
//! The protocols are those of the crate `object_store`; below it is an HTTP layer of our own
//! ([`http`](self::http)) that counts every attempt, and above it are blocking calls that drive their
//! requests on the caller's thread ([`lane`](self::lane)). Object stores have no folders; see
//! [`listing`](self::listing) for what replaces them.

mod attempts;
mod broken;
mod credentials;
mod exchange;
mod failure;
mod http;
mod lane;
mod listing;
mod message;
mod object;
mod pool;
mod profile;
mod queue;
mod raw;
mod root;
mod service;
mod signature;
mod socket;
mod upload;
mod uri_keys;

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard};

use object_store::ObjectStoreExt;
use object_store::path::Path;
use tokio::runtime::{Builder, Runtime};

use self::attempts::Attempts;
use self::lane::Lanes;
use self::listing::Made;
use self::object::Target;
use self::queue::RemoteQueue;
use self::root::{Root, Service};
use self::service::{Client, Recipe};
use self::upload::RemoteUpload;
use crate::lock::lock;
use crate::{
    Capabilities, EntryKind, FolderEntry, Object, Op, ReadQueue, RemoteFault, RemoteOptions,
    Result, Store, StoreError, TraceSites, Upload, key,
};

/// Threads that send the parts of all uploads.
const UPLOAD_THREADS: usize = 2;

/// A bucket, a container or a web server, or what is below a prefix there. Clones share connections.
#[derive(Clone)]
pub struct Remote {
    inner: Arc<Inner>,
}

/// What clones, objects and uploads share.
pub(crate) struct Inner {
    root: Root,
    lanes: Arc<Lanes>,
    read_bytes: usize,
    part_bytes: usize,
    uri_keys: bool,
    /// Folders that were made.
    made: Mutex<Made>,
    /// The client of the shared runtime.
    control: Client,
    runtime: Runtime,
}

impl std::fmt::Debug for Remote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Remote").field("root", &self.inner.root.text).finish_non_exhaustive()
    }
}

impl Remote {
    /// The store at `root`: `s3://bucket/prefix`, `gs://bucket/prefix`, `az://container/prefix`
    /// (`abfs` and `abfss` too), `http://host/path` or `https://host/path`. Sends no request.
    ///
    /// What `options` leave open comes from where the providers' own tools look: the variables
    /// `AWS_*`, then the profile `AWS_PROFILE` (or `default`) of `~/.aws/credentials` and
    /// `~/.aws/config`, then the instance the process runs on; the variables `GOOGLE_*` with
    /// `GOOGLE_APPLICATION_CREDENTIALS`; the variables `AZURE_*`. Endpoints with `http://` are allowed.
    pub fn connect(root: &str, options: &RemoteOptions) -> Result<Remote> {
        let root = Root::parse(root)?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(UPLOAD_THREADS)
            .thread_name("remote")
            .enable_all()
            .build()
            .map_err(|source| StoreError::Io { op: Op::Open, path: root.text.clone(), source })?;
        let recipe = Recipe::new(&root, options, runtime.handle())?;
        let control = recipe.client()?;
        let inner = Inner {
            lanes: Lanes::new(recipe),
            read_bytes: options.read_bytes,
            part_bytes: options.part_bytes,
            uri_keys: options.uri_keys,
            made: Mutex::default(),
            control,
            runtime,
            root,
        };
        Ok(Remote { inner: Arc::new(inner) })
    }

    /// Runs an operation on a lane of its own.
    fn ask<T, F>(&self, op: Op, key: &str, operation: impl FnOnce(Client) -> F) -> Result<T>
    where
        F: Future<Output = object_store::Result<T>>,
    {
        let (lane, attempts) = (self.inner.lanes.take()?, Arc::new(Attempts::default()));
        let result = lane.run(&attempts, operation(lane.client.clone()));
        result.map_err(|error| {
            failure::of_error(op, &self.inner.root.locate(key), attempts.failure(), &error)
        })
    }

    fn has_content(&self, op: Op, key: &str, clean: &str) -> Result<bool> {
        let full = self.inner.root.full(clean);
        self.ask(op, key, |client| async move { listing::has_content(&client, &full).await })
    }

    /// The size of an object, if there is one.
    fn head(&self, key: &str, clean: &str) -> Result<Option<u64>> {
        let path = self.inner.path(key, clean)?;
        let found =
            self.ask(Op::Stat, key, |client| async move { client.objects.head(&path).await });
        match found {
            Ok(found) => Ok(Some(found.size)),
            Err(error) if error.is_missing() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// File or folder of a web server, which answers for a folder as for a file, or sends who asks to
    /// the name with a slash. So what is listed there decides; an empty folder passes for a file.
    fn kind_by_http(&self, key: &str, clean: &str) -> Result<Option<EntryKind>> {
        let answers = match self.head(key, clean) {
            Ok(size) => size.is_some(),
            Err(StoreError::Remote { fault: RemoteFault::Region, .. }) => false,
            Err(error) => return Err(error),
        };
        match self.has_content(Op::Stat, key, clean) {
            Ok(true) => Ok(Some(EntryKind::Folder)),
            Ok(false) => Ok(answers.then_some(EntryKind::File)),
            // No WebDAV: then it is one of the files that are read by name.
            Err(StoreError::Remote {
                fault: RemoteFault::Status(405) | RemoteFault::Server(501),
                ..
            }) if answers => Ok(Some(EntryKind::File)),
            Err(error) => Err(error),
        }
    }

    fn missing(&self, op: Op, key: &str) -> StoreError {
        let (path, message) = (self.inner.root.locate(key), String::new());
        StoreError::Remote { op, path, fault: RemoteFault::Missing, message }
    }
}

impl Inner {
    /// The object of a key, which must be one.
    pub(crate) fn target(&self, key: &str) -> Result<Target> {
        let path = self.path(key, &key::object(key)?)?;
        Ok(Target { lanes: Arc::clone(&self.lanes), path, name: self.root.locate(key) })
    }

    fn path(&self, key: &str, clean: &str) -> Result<Path> {
        let refused = |_| StoreError::Key { key: key.to_owned() };
        Path::parse(self.root.full(clean)).map_err(refused)
    }

    fn made(&self) -> MutexGuard<'_, Made> {
        lock(&self.made)
    }

    /// Waits for an operation of the shared client and charges its requests to this thread's call.
    fn run_shared<F: Future>(&self, attempts: &Arc<Attempts>, operation: F) -> F::Output {
        let output = self.runtime.block_on(attempts.over(operation));
        attempts.charge();
        output
    }
}

impl Store for Remote {
    /// One request, which brings the size and the beginning.
    fn open(&self, key: &str) -> Result<Box<dyn Object>> {
        Ok(Box::new(self.inner.target(key)?.open()?))
    }

    /// One request, whose answer is read as it comes.
    fn open_whole(&self, key: &str) -> Result<Box<dyn Object>> {
        Ok(Box::new(self.inner.target(key)?.open_whole()?))
    }

    /// Sends nothing, except to see whether a folder that was not made here is there.
    fn create(&self, key: &str) -> Result<Box<dyn Upload>> {
        let Target { path, name, .. } = self.inner.target(key)?;
        if self.inner.uri_keys {
            let (op, fault) = (Op::Create, RemoteFault::Unsupported);
            let message = "keys that are URIs are only read".to_owned();
            return Err(StoreError::Remote { op, path: name, fault, message });
        }
        let clean = key::object(key)?;
        let (folder, _) = key::split(&clean);
        if !self.inner.made().contains(folder) {
            if !self.has_content(Op::Create, key, folder)? {
                return Err(self.missing(Op::Create, key));
            }
            self.inner.made().add(folder);
        }
        Ok(Box::new(Mutex::new(RemoteUpload::new(Arc::clone(&self.inner), path, name))))
    }

    fn list(
        &self,
        folder: &str,
        visit: &mut dyn FnMut(FolderEntry<'_>) -> ControlFlow<()>,
    ) -> Result<()> {
        let clean = key::folder(folder)?;
        let (made, is_made) = {
            let made = self.inner.made();
            (made.children(&clean), made.contains(&clean))
        };
        for name in &made {
            if visit(FolderEntry { name, kind: EntryKind::Folder, size_bytes: None }).is_break() {
                return Ok(());
            }
        }
        let full = self.inner.root.full(&clean);
        let (lane, attempts) = (self.inner.lanes.take()?, Arc::new(Attempts::default()));
        let any = listing::visit_folder(&lane, &attempts, &full, &made, visit);
        match any {
            Ok(any) if any || is_made => Ok(()),
            Ok(_) => Err(self.missing(Op::List, folder)),
            Err(error) => {
                let path = self.inner.root.locate(folder);
                Err(failure::of_error(Op::List, &path, attempts.failure(), &error))
            }
        }
    }

    /// Remembers it; nothing is sent.
    fn make_folder(&self, folder: &str) -> Result<()> {
        let clean = key::folder(folder)?;
        self.inner.made().add(&clean);
        Ok(())
    }

    fn remove(&self, key: &str) -> Result<()> {
        let clean = key::folder(key)?;
        if clean.is_empty() {
            return Ok(());
        }
        let path = self.inner.path(key, &clean)?;
        // A WebDAV server would remove a folder with all that is in it.
        if self.inner.root.service == Service::Http && self.has_content(Op::Remove, key, &clean)? {
            return Ok(());
        }
        let removed =
            self.ask(Op::Remove, key, |client| async move { client.objects.delete(&path).await });
        match removed {
            Err(error) if !error.is_missing() => return Err(error),
            _ => {}
        }
        // Whether something is in it does not matter: then it is there without being remembered.
        self.inner.made().remove(&clean);
        Ok(())
    }

    fn kind(&self, key: &str) -> Result<Option<EntryKind>> {
        let clean = key::folder(key)?;
        if self.inner.made().contains(&clean) {
            return Ok(Some(EntryKind::Folder));
        }
        if self.inner.root.service == Service::Http {
            return self.kind_by_http(key, &clean);
        }
        match self.head(key, &clean)? {
            Some(_) => Ok(Some(EntryKind::File)),
            None => Ok(self.has_content(Op::Stat, key, &clean)?.then_some(EntryKind::Folder)),
        }
    }

    /// Costs one request.
    fn size(&self, key: &str) -> Result<Option<u64>> {
        self.head(key, &key::object(key)?)
    }

    fn free_bytes(&self, _folder: &str) -> Result<Option<u64>> {
        Ok(None)
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.root.service.scheme().capabilities
    }

    fn trace_sites(&self) -> &'static TraceSites {
        self.inner.root.service.trace_sites()
    }

    fn locate(&self, key: &str) -> String {
        self.inner.root.locate(key)
    }

    fn read_bytes(&self) -> usize {
        self.inner.read_bytes
    }

    fn queue(&self, depth: usize) -> Result<Option<Box<dyn ReadQueue>>> {
        Ok(Some(Box::new(RemoteQueue::new(Arc::clone(&self.inner), depth))))
    }
}
