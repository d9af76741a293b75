//! Folders, of which object stores have none.
//!
//! A folder is there if something is below it, or if this store was asked to make it: that is only
//! remembered, and gone with the store. Listings ask the server to fold what is deeper into one name a
//! folder, and hold one page at a time.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use object_store::list::PaginatedListOptions;
use object_store::path::Path;
use object_store::{ListResult, Result};

use super::attempts::Attempts;
use super::lane::Lane;
use super::service::Client;
use crate::{EntryKind, FolderEntry};

/// Folders that were made and may be empty, by their clean keys.
#[derive(Debug, Default)]
pub(crate) struct Made {
    folders: BTreeSet<String>,
}

impl Made {
    /// Remembers a folder and those above it.
    pub(crate) fn add(&mut self, clean: &str) {
        let ends = clean.match_indices('/').map(|(at, _)| at).chain([clean.len()]);
        self.folders.extend(ends.filter(|&end| end > 0).map(|end| clean[..end].to_owned()));
    }

    pub(crate) fn contains(&self, clean: &str) -> bool {
        clean.is_empty() || self.folders.contains(clean)
    }

    /// Forgets a folder, unless another one is in it.
    pub(crate) fn remove(&mut self, clean: &str) {
        if self.children(clean).is_empty() {
            self.folders.remove(clean);
        }
    }

    /// The names of folders right below one.
    pub(crate) fn children(&self, clean: &str) -> BTreeSet<String> {
        let start = below(clean);
        let names = self.folders.range(start.clone()..).take_while(|key| key.starts_with(&start));
        names
            .map(|key| &key[start.len()..])
            .filter(|n| !n.contains('/'))
            .map(str::to_owned)
            .collect()
    }
}

/// What keys of objects in a folder begin with.
pub(crate) fn below(clean: &str) -> String {
    if clean.is_empty() { String::new() } else { format!("{clean}/") }
}

/// Whether anything is in the folder whose whole key is `full`.
pub(crate) async fn has_content(client: &Client, full: &str) -> Result<bool> {
    let prefix = below(full);
    let found = match &client.pages {
        Some(pages) => {
            let options = PaginatedListOptions { max_keys: Some(1), ..Default::default() };
            pages.list_paginated(Some(&prefix), options).await?.result
        }
        None => client.objects.list_with_delimiter(Some(&Path::parse(full)?)).await?,
    };
    Ok(!found.objects.is_empty() || !found.common_prefixes.is_empty())
}

/// Shows what is in the folder to `visit`, but not the folders in `shown`; whether anything was there,
/// shown or not. A page is asked for when the one before has been seen.
pub(crate) fn visit_folder(
    lane: &Lane,
    attempts: &Arc<Attempts>,
    full: &str,
    shown: &BTreeSet<String>,
    visit: &mut dyn FnMut(FolderEntry<'_>) -> ControlFlow<()>,
) -> Result<bool> {
    let prefix = below(full);
    let mut token = None;
    let mut any = false;
    loop {
        let (page, next) = lane.run(attempts, page(&lane.client, full, &prefix, token))?;
        let folders =
            page.common_prefixes.iter().map(|path| (path.as_ref(), EntryKind::Folder, None));
        let files = page.objects.iter();
        let files =
            files.map(|object| (object.location.as_ref(), EntryKind::File, Some(object.size)));
        for (key, kind, size_bytes) in folders.chain(files) {
            any = true;
            // An object named like the folder itself, with a slash, marks an empty folder.
            let Some(name) = key.strip_prefix(&prefix).filter(|name| !name.is_empty()) else {
                continue;
            };
            if kind == EntryKind::Folder && shown.contains(name) {
                continue;
            }
            if visit(FolderEntry { name, kind, size_bytes }).is_break() {
                return Ok(true);
            }
        }
        match next {
            Some(_) => token = next,
            None => return Ok(any),
        }
    }
}

async fn page(
    client: &Client,
    full: &str,
    prefix: &str,
    page_token: Option<String>,
) -> Result<(ListResult, Option<String>)> {
    let Some(pages) = &client.pages else {
        let folder = Path::parse(full)?;
        return Ok((client.objects.list_with_delimiter(Some(&folder)).await?, None));
    };
    let delimiter = Some("/".into());
    let options = PaginatedListOptions { delimiter, page_token, ..Default::default() };
    let prefix = Some(prefix).filter(|prefix| !prefix.is_empty());
    let found = pages.list_paginated(prefix, options).await?;
    Ok((found.result, found.page_token))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_that_were_made_have_folders_above() {
        let mut made = Made::default();
        made.add("a/b/c");
        made.add("a-z");
        made.add("");
        assert!(["", "a", "a/b", "a/b/c", "a-z"].into_iter().all(|folder| made.contains(folder)));
        assert!(!made.contains("b") && !made.contains("a/b/c/d"));
        assert_eq!(made.children("").into_iter().collect::<Vec<_>>(), ["a", "a-z"]);
        assert_eq!(made.children("a").into_iter().collect::<Vec<_>>(), ["b"]);
        made.remove("a");
        assert!(made.contains("a"), "something is in it");
        made.remove("a/b/c");
        made.remove("a/b");
        made.remove("a");
        assert!(!made.contains("a") && made.contains("a-z"));
    }
}
