//! Buckets in memory, with the rules of S3.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, HashMap};
use std::hash::Hasher;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use s3s::dto::{
    AbortMultipartUploadInput, AbortMultipartUploadOutput, CommonPrefix,
    CompleteMultipartUploadInput, CompleteMultipartUploadOutput, CreateMultipartUploadInput,
    CreateMultipartUploadOutput, DeleteObjectInput, DeleteObjectOutput, ETag, ETagCondition,
    GetObjectInput, GetObjectOutput, HeadObjectInput, HeadObjectOutput, ListObjectsV2Input,
    ListObjectsV2Output, Object, PutObjectInput, PutObjectOutput, StreamingBlob, Timestamp,
    UploadPartInput, UploadPartOutput,
};
use s3s::{Body, S3, S3Request, S3Response, S3Result, s3_error};

/// Smallest part, except for the last.
const PART_BYTES_MIN: usize = 5 << 20;
/// Most keys and folders of a page.
const PAGE_KEYS_MAX: usize = 1000;

/// Buckets and what is in them. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    content: Arc<Mutex<Content>>,
}

#[derive(Debug, Default)]
struct Content {
    buckets: BTreeMap<String, BTreeMap<String, Stored>>,
    uploads: HashMap<String, BTreeMap<i32, Bytes>>,
    uploads_begun: u64,
    public: bool,
}

#[derive(Debug, Clone)]
struct Stored {
    bytes: Bytes,
    etag: String,
    at: SystemTime,
}

impl Stored {
    fn new(bytes: Bytes) -> Stored {
        Stored { etag: etag(&bytes), bytes, at: SystemTime::now() }
    }
}

/// Another one for other bytes; S3 promises no more.
fn etag(bytes: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    format!("{:016x}{:016x}", hasher.finish(), bytes.len())
}

impl Memory {
    /// Makes a bucket, if it is not there.
    pub fn add_bucket(&self, bucket: &str) {
        self.content().buckets.entry(bucket.to_owned()).or_default();
    }

    /// Stores an object past the protocol.
    ///
    /// # Panics
    /// If there is no such bucket.
    pub fn put(&self, bucket: &str, key: &str, bytes: impl Into<Bytes>) {
        let mut content = self.content();
        let objects = content.buckets.get_mut(bucket).expect("a bucket that was added");
        objects.insert(key.to_owned(), Stored::new(bytes.into()));
    }

    /// The bytes of an object.
    pub fn get(&self, bucket: &str, key: &str) -> Option<Bytes> {
        Some(self.content().buckets.get(bucket)?.get(key)?.bytes.clone())
    }

    /// The keys of a bucket.
    pub fn keys(&self, bucket: &str) -> Vec<String> {
        self.content().buckets.get(bucket).into_iter().flat_map(|b| b.keys().cloned()).collect()
    }

    /// Uploads in parts that were neither completed nor aborted.
    pub fn uploads_open(&self) -> usize {
        self.content().uploads.len()
    }

    /// Uploads in parts that were ever begun.
    pub fn uploads_begun(&self) -> u64 {
        self.content().uploads_begun
    }

    /// Lets everyone read, without a signature.
    pub fn allow_everyone(&self) {
        self.content().public = true;
    }

    pub(crate) fn is_public(&self) -> bool {
        self.content().public
    }

    fn content(&self) -> MutexGuard<'_, Content> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, bucket: &str, key: &str) -> S3Result<Stored> {
        let content = self.content();
        let objects = content.buckets.get(bucket).ok_or_else(|| s3_error!(NoSuchBucket))?;
        objects.get(key).cloned().ok_or_else(|| s3_error!(NoSuchKey))
    }
}

/// Reads what a client sends to its end.
async fn receive(body: Option<StreamingBlob>) -> S3Result<Bytes> {
    let mut whole = BytesMut::new();
    if let Some(mut body) = body {
        while let Some(chunk) = body.next().await {
            whole.extend_from_slice(&chunk.map_err(|_| s3_error!(IncompleteBody))?);
        }
    }
    Ok(whole.freeze())
}

#[async_trait::async_trait]
impl S3 for Memory {
    async fn get_object(
        &self,
        req: S3Request<GetObjectInput>,
    ) -> S3Result<S3Response<GetObjectOutput>> {
        let input = req.input;
        let stored = self.find(&input.bucket, &input.key)?;
        if let Some(ETagCondition::ETag(wanted)) = &input.if_match
            && wanted.value() != stored.etag
        {
            return Err(s3_error!(PreconditionFailed));
        }
        let len = stored.bytes.len() as u64;
        let (range, content_range) = match input.range {
            None => (0..len, None),
            Some(range) => {
                let range = range.check(len)?;
                let text = format!("bytes {}-{}/{len}", range.start, range.end - 1);
                (range, Some(text))
            }
        };
        let bytes = stored.bytes.slice(range.start as usize..range.end as usize);
        Ok(S3Response::new(GetObjectOutput {
            content_length: Some(bytes.len() as i64),
            body: Some(StreamingBlob::from(Body::from(bytes))),
            content_range,
            e_tag: Some(ETag::Strong(stored.etag)),
            last_modified: Some(Timestamp::from(stored.at)),
            ..GetObjectOutput::default()
        }))
    }

    async fn head_object(
        &self,
        req: S3Request<HeadObjectInput>,
    ) -> S3Result<S3Response<HeadObjectOutput>> {
        let stored = self.find(&req.input.bucket, &req.input.key)?;
        Ok(S3Response::new(HeadObjectOutput {
            content_length: Some(stored.bytes.len() as i64),
            e_tag: Some(ETag::Strong(stored.etag)),
            last_modified: Some(Timestamp::from(stored.at)),
            ..HeadObjectOutput::default()
        }))
    }

    async fn put_object(
        &self,
        req: S3Request<PutObjectInput>,
    ) -> S3Result<S3Response<PutObjectOutput>> {
        let input = req.input;
        let stored = Stored::new(receive(input.body).await?);
        let e_tag = Some(ETag::Strong(stored.etag.clone()));
        let mut content = self.content();
        let objects = content.buckets.get_mut(&input.bucket);
        objects.ok_or_else(|| s3_error!(NoSuchBucket))?.insert(input.key, stored);
        Ok(S3Response::new(PutObjectOutput { e_tag, ..PutObjectOutput::default() }))
    }

    async fn delete_object(
        &self,
        req: S3Request<DeleteObjectInput>,
    ) -> S3Result<S3Response<DeleteObjectOutput>> {
        let mut content = self.content();
        let objects = content.buckets.get_mut(&req.input.bucket);
        objects.ok_or_else(|| s3_error!(NoSuchBucket))?.remove(&req.input.key);
        Ok(S3Response::new(DeleteObjectOutput::default()))
    }

    async fn list_objects_v2(
        &self,
        req: S3Request<ListObjectsV2Input>,
    ) -> S3Result<S3Response<ListObjectsV2Output>> {
        let content = self.content();
        let objects =
            content.buckets.get(&req.input.bucket).ok_or_else(|| s3_error!(NoSuchBucket))?;
        Ok(S3Response::new(page(objects, req.input)))
    }

    async fn create_multipart_upload(
        &self,
        req: S3Request<CreateMultipartUploadInput>,
    ) -> S3Result<S3Response<CreateMultipartUploadOutput>> {
        let input = req.input;
        let mut content = self.content();
        if !content.buckets.contains_key(&input.bucket) {
            return Err(s3_error!(NoSuchBucket));
        }
        content.uploads_begun += 1;
        let id = format!("upload-{}", content.uploads_begun);
        content.uploads.insert(id.clone(), BTreeMap::new());
        Ok(S3Response::new(CreateMultipartUploadOutput {
            bucket: Some(input.bucket),
            key: Some(input.key),
            upload_id: Some(id),
            ..CreateMultipartUploadOutput::default()
        }))
    }

    async fn upload_part(
        &self,
        req: S3Request<UploadPartInput>,
    ) -> S3Result<S3Response<UploadPartOutput>> {
        let input = req.input;
        let bytes = receive(input.body).await?;
        let e_tag = Some(ETag::Strong(etag(&bytes)));
        let mut content = self.content();
        let parts = content.uploads.get_mut(&input.upload_id);
        parts.ok_or_else(|| s3_error!(NoSuchUpload))?.insert(input.part_number, bytes);
        Ok(S3Response::new(UploadPartOutput { e_tag, ..UploadPartOutput::default() }))
    }

    async fn complete_multipart_upload(
        &self,
        req: S3Request<CompleteMultipartUploadInput>,
    ) -> S3Result<S3Response<CompleteMultipartUploadOutput>> {
        let input = req.input;
        let mut content = self.content();
        let sent = content.uploads.get(&input.upload_id).ok_or_else(|| s3_error!(NoSuchUpload))?;
        let named = input.multipart_upload.and_then(|upload| upload.parts).unwrap_or_default();
        let last = named.len().saturating_sub(1);
        let mut whole = BytesMut::new();
        for (place, part) in named.iter().enumerate() {
            let bytes = part.part_number.and_then(|number| sent.get(&number));
            let bytes = bytes.ok_or_else(|| s3_error!(InvalidPart))?;
            if part.e_tag.as_ref().is_some_and(|tag| tag.value() != etag(bytes)) {
                return Err(s3_error!(InvalidPart));
            }
            if place < last && bytes.len() < PART_BYTES_MIN {
                return Err(s3_error!(EntityTooSmall));
            }
            whole.extend_from_slice(bytes);
        }
        let stored = Stored::new(whole.freeze());
        let e_tag = Some(ETag::Strong(stored.etag.clone()));
        let objects = content.buckets.get_mut(&input.bucket);
        objects.ok_or_else(|| s3_error!(NoSuchBucket))?.insert(input.key.clone(), stored);
        content.uploads.remove(&input.upload_id);
        let (bucket, key) = (Some(input.bucket), Some(input.key));
        let rest = CompleteMultipartUploadOutput::default();
        Ok(S3Response::new(CompleteMultipartUploadOutput { bucket, key, e_tag, ..rest }))
    }

    async fn abort_multipart_upload(
        &self,
        req: S3Request<AbortMultipartUploadInput>,
    ) -> S3Result<S3Response<AbortMultipartUploadOutput>> {
        let removed = self.content().uploads.remove(&req.input.upload_id);
        removed.ok_or_else(|| s3_error!(NoSuchUpload))?;
        Ok(S3Response::new(AbortMultipartUploadOutput::default()))
    }
}

/// One page of a listing. The token of the next one is the last key or folder of this one.
fn page(objects: &BTreeMap<String, Stored>, input: ListObjectsV2Input) -> ListObjectsV2Output {
    let prefix = input.prefix.clone().unwrap_or_default();
    let delimiter = input.delimiter.clone().filter(|delimiter| !delimiter.is_empty());
    let most = input.max_keys.map_or(PAGE_KEYS_MAX, |keys| (keys as usize).min(PAGE_KEYS_MAX));
    let after = input.continuation_token.clone().max(input.start_after.clone());
    let (mut contents, mut folders) = (Vec::new(), Vec::new());
    let mut last = after.clone();
    let mut next = None;
    let start = match &after {
        Some(after) if *after > prefix => Bound::Excluded(after.clone()),
        _ => Bound::Included(prefix.clone()),
    };
    for (key, stored) in objects.range((start, Bound::Unbounded)) {
        if !key.starts_with(&prefix) {
            break;
        }
        let folder = delimiter.as_ref().and_then(|delimiter| {
            let at = key[prefix.len()..].find(delimiter.as_str())?;
            Some(key[..prefix.len() + at + delimiter.len()].to_owned())
        });
        let name = folder.clone().unwrap_or_else(|| key.clone());
        if last.as_ref().is_some_and(|last| *last >= name) {
            continue;
        }
        if contents.len() + folders.len() == most {
            next = last;
            break;
        }
        match folder {
            Some(folder) => folders.push(CommonPrefix { prefix: Some(folder) }),
            None => contents.push(Object {
                key: Some(key.clone()),
                size: Some(stored.bytes.len() as i64),
                e_tag: Some(ETag::Strong(stored.etag.clone())),
                last_modified: Some(Timestamp::from(stored.at)),
                ..Object::default()
            }),
        }
        last = Some(name);
    }
    ListObjectsV2Output {
        key_count: Some((contents.len() + folders.len()) as i32),
        max_keys: Some(most as i32),
        is_truncated: Some(next.is_some()),
        contents: Some(contents),
        common_prefixes: Some(folders),
        continuation_token: input.continuation_token,
        next_continuation_token: next,
        delimiter: input.delimiter,
        name: Some(input.bucket),
        prefix: input.prefix,
        start_after: input.start_after,
        ..ListObjectsV2Output::default()
    }
}
