//! DLIO's layout with s3torchconnector: keys that are whole URIs.
//!
//! There the object `s3://bucket/train/x` is stored in `bucket` under the key `s3://bucket/train/x`.
//! `object_store` knows no keys with two slashes in a row, so it works with `train/x`, and every
//! request is rewritten below it, before it is signed. For reading only.

use bytes::Bytes;
use http::Uri;
use object_store::client::HttpRequest;

/// Where requests name the bucket.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum BucketIn {
    /// In the first part of the path, as MinIO and Ceph expect it.
    Path,
    /// In the name of the host.
    Host,
}

/// How requests are rewritten.
#[derive(Clone)]
pub(crate) struct UriKeys {
    bucket: String,
    bucket_in: BucketIn,
}

impl UriKeys {
    pub(crate) fn new(bucket: &str, bucket_in: BucketIn) -> UriKeys {
        UriKeys { bucket: bucket.to_owned(), bucket_in }
    }

    /// Makes keys of the request whole URIs.
    pub(crate) fn rewrite(&self, request: &mut HttpRequest) -> Result<(), http::Error> {
        *request.uri_mut() = self.rewritten(request.uri())?;
        Ok(())
    }

    fn rewritten(&self, uri: &Uri) -> Result<Uri, http::Error> {
        let path = uri.path();
        let at = if self.bucket_in == BucketIn::Path {
            // After `/bucket`; an endpoint may have a path of its own before it.
            let needle = format!("/{}/", self.bucket);
            path.find(&needle).map(|at| at + needle.len())
        } else {
            Some(1)
        };
        let mut path = path.to_owned();
        if let Some(at) = at.filter(|&at| at < path.len()) {
            path.insert_str(at, &format!("s3%3A//{}/", self.bucket));
        }
        if let Some(query) = uri.query() {
            path.push('?');
            path.push_str(&self.rewritten_query(query));
        }
        let mut parts = uri.clone().into_parts();
        parts.path_and_query = Some(path.parse()?);
        Ok(Uri::from_parts(parts)?)
    }

    /// Listings begin below the bucket's URI. Tokens that lead to the next page are the server's own.
    fn rewritten_query(&self, query: &str) -> String {
        let start = format!("s3%3A%2F%2F{}%2F", self.bucket);
        let mut has_prefix = false;
        let parts = query.split('&').map(|part| match part.split_once('=') {
            Some((key @ ("prefix" | "start-after"), value)) => {
                has_prefix |= key == "prefix";
                format!("{key}={start}{value}")
            }
            _ => part.to_owned(),
        });
        let mut parts: Vec<String> = parts.collect();
        if !has_prefix && parts.iter().any(|part| part == "list-type=2") {
            parts.push(format!("prefix={start}"));
        }
        parts.join("&")
    }

    /// Takes the URI away from the keys of a listing.
    pub(crate) fn strip(&self, answer: Bytes) -> Bytes {
        let Ok(text) = std::str::from_utf8(&answer) else { return answer };
        if !text.contains("<ListBucketResult") {
            return answer;
        }
        let uri = format!("s3://{}/", self.bucket);
        let text = text.replace(&format!("<Key>{uri}"), "<Key>");
        let text = text.replace(&format!("<Prefix>{uri}"), "<Prefix>");
        text.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(bucket_in: BucketIn) -> UriKeys {
        UriKeys::new("b", bucket_in)
    }

    fn check(bucket_in: BucketIn, uri: &str, expected: &str) {
        let found = keys(bucket_in).rewritten(&uri.parse().unwrap()).unwrap();
        assert_eq!(found.to_string(), expected);
    }

    #[test]
    fn keys_become_uris() {
        check(BucketIn::Path, "http://h/b/train/x", "http://h/b/s3%3A//b/train/x");
        check(BucketIn::Path, "http://h/at/b/train/x", "http://h/at/b/s3%3A//b/train/x");
        check(BucketIn::Host, "https://b.h/b/x", "https://b.h/s3%3A//b/b/x");
    }

    #[test]
    fn listings_begin_below_the_uri() {
        check(
            BucketIn::Path,
            "http://h/b?delimiter=%2F&list-type=2&prefix=train%2F&start-after=train%2Fx",
            "http://h/b?delimiter=%2F&list-type=2&prefix=s3%3A%2F%2Fb%2Ftrain%2F\
             &start-after=s3%3A%2F%2Fb%2Ftrain%2Fx",
        );
        check(
            BucketIn::Path,
            "http://h/b?continuation-token=prefix&list-type=2",
            "http://h/b?continuation-token=prefix&list-type=2&prefix=s3%3A%2F%2Fb%2F",
        );
    }

    #[test]
    fn listings_show_plain_keys() {
        let answer = "<ListBucketResult><Prefix>s3://b/t/</Prefix><Contents><Key>s3://b/t/x</Key>\
                      </Contents><CommonPrefixes><Prefix>s3://b/t/y/</Prefix></CommonPrefixes>";
        let expected = "<ListBucketResult><Prefix>t/</Prefix><Contents><Key>t/x</Key>\
                        </Contents><CommonPrefixes><Prefix>t/y/</Prefix></CommonPrefixes>";
        assert_eq!(keys(BucketIn::Path).strip(Bytes::from_static(answer.as_bytes())), expected);
        let error = Bytes::from_static(b"<Error><Key>s3://b/x</Key></Error>");
        assert_eq!(keys(BucketIn::Path).strip(error.clone()), error);
    }
}
