//! What the datasets of a file look like, from the samples and the options.

use crate::{Compression, Element, EncodeError, Encoded, FileSpec, OptionError, Options};

use super::fields::FORMAT;

/// Chunks without a given shape are one sample, cut down to this, as h5py's own guess would be.
const CHUNK_BYTES: u64 = 1024 * 1024;

/// The chunk index counts in 32 bits, and so do most readers.
const MOST_CHUNK_BYTES: u64 = u32::MAX as u64;

/// More would make a root group of many megabytes, all of which every open reads.
const MOST_DATASETS: u64 = 1 << 16;

const MOST_AXES: usize = 32;

/// Options that hold for every file.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    pub(super) datasets: u64,
    filter: Option<Filter>,
    chunk: Vec<u64>,
    limits: Vec<u64>,
    explicit_dims: bool,
}

/// How chunks are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Filter {
    Gzip(u32),
    Lzf,
}

/// The sample datasets of one file, which all look the same.
pub(super) struct Plan {
    /// How many there are.
    pub(super) datasets: u64,
    pub(super) element: Element,
    /// Sample axis first.
    pub(super) shape: Vec<u64>,
    pub(super) limits: Vec<u64>,
    pub(super) chunk: Option<Vec<u64>>,
    pub(super) filter: Option<Filter>,
    /// Size of one dataset.
    pub(super) bytes: u64,
    /// Size of the labels.
    pub(super) labels_bytes: u64,
}

impl Settings {
    pub(super) fn new(options: &Options) -> Result<Settings, OptionError> {
        let conflict = |key, conflict| OptionError::Conflict { format: FORMAT, key, conflict };
        let filter = match options.compression {
            Compression::Gzip if options.level > 9 => {
                return Err(conflict("dataset.compression_level", "must be 0 to 9"));
            }
            Compression::Gzip => Some(Filter::Gzip(options.level)),
            Compression::Lzf => Some(Filter::Lzf),
            _ => None,
        };
        if !(1..=MOST_DATASETS).contains(&options.datasets) {
            return Err(conflict("dataset.hdf5.num_dset_per_record", "must be 1 to 65536"));
        }
        if options.chunk_dims.contains(&0) {
            return Err(conflict("dataset.hdf5.chunk_dims", "must not contain 0"));
        }
        Ok(Settings {
            datasets: options.datasets,
            filter,
            chunk: options.chunk_dims.clone(),
            limits: options.max_shape.clone(),
            explicit_dims: options.explicit_dims,
        })
    }

    /// The datasets of that file.
    pub(super) fn plan(&self, file: &FileSpec) -> Encoded<Plan> {
        let dims = self.part(&file.dims)?;
        let shape: Vec<u64> = [file.samples].into_iter().chain(dims).collect();
        if shape.len() > MOST_AXES {
            return Err(refused(format!("{} axes, at most {MOST_AXES} are possible", shape.len())));
        }
        let size = |dims: &[u64]| {
            dims.iter().try_fold(file.element.size_bytes(), |all, &dim| all.checked_mul(dim))
        };
        let bytes = size(&shape).filter(|_| file.payload_bytes().is_some());
        let bytes = bytes.ok_or_else(|| file.too_large())?;
        let limits = self.limits(&shape)?;
        let needed = self.filter.is_some() || !self.limits.is_empty();
        let chunk = match &self.chunk[..] {
            [] if needed => Some(default_chunk(&shape, file.element)),
            [] => None,
            given => Some(check_chunk(given, &shape, &limits)?),
        };
        let too_large = |chunk: &Vec<u64>| size(chunk).is_none_or(|size| size > MOST_CHUNK_BYTES);
        if let Some(chunk) = chunk.as_ref().filter(|chunk| too_large(chunk)) {
            return Err(refused(format!("chunk {chunk:?} has 4 GiB or more")));
        }
        let labels_bytes = file.samples.checked_mul(Element::Int64.size_bytes());
        let labels_bytes = labels_bytes.ok_or_else(|| file.too_large())?;
        let (datasets, element, filter) = (self.datasets, file.element, self.filter);
        Ok(Plan { datasets, element, shape, limits, chunk, filter, bytes, labels_bytes })
    }

    /// The part of a sample that goes into one dataset: an equal share along the first axis. An axis
    /// of the workload's own that becomes 1 is dropped, as DLIO does.
    fn part(&self, dims: &[u64]) -> Encoded<Vec<u64>> {
        let Some((&first, rest)) = dims.split_first() else {
            return match self.datasets {
                1 => Ok(Vec::new()),
                datasets => Err(refused(format!("one element cannot go into {datasets} datasets"))),
            };
        };
        if first % self.datasets != 0 {
            let datasets = self.datasets;
            return Err(refused(format!(
                "first axis of {dims:?} cannot be divided into {datasets} datasets"
            )));
        }
        let share = first / self.datasets;
        let dropped = self.explicit_dims && share == 1;
        Ok((!dropped).then_some(share).into_iter().chain(rest.iter().copied()).collect())
    }

    fn limits(&self, shape: &[u64]) -> Encoded<Vec<u64>> {
        if self.limits.is_empty() {
            return Ok(shape.to_vec());
        }
        let (found, expected) = (self.limits.len(), shape.len() - 1);
        if found != expected {
            return Err(refused(format!("`max_shape` has {found} axes, samples have {expected}")));
        }
        if self.limits.iter().zip(&shape[1..]).any(|(limit, dim)| limit < dim) {
            let (limits, dims) = (&self.limits, &shape[1..]);
            return Err(refused(format!("samples of {dims:?} exceed `max_shape` {limits:?}")));
        }
        Ok(shape[..1].iter().chain(&self.limits).copied().collect())
    }
}

impl Plan {
    /// Chunks along each axis of something of this shape.
    pub(super) fn counts(&self, shape: &[u64], chunk: &[u64]) -> Vec<u64> {
        shape.iter().zip(chunk).map(|(dim, chunk)| dim.div_ceil(*chunk)).collect()
    }

    pub(super) fn samples(&self) -> u64 {
        self.shape[0]
    }

    pub(super) fn chunk_bytes(&self, chunk: &[u64]) -> u64 {
        chunk.iter().product::<u64>() * self.element.size_bytes()
    }
}

/// One sample, its leading axes cut until it is small enough.
fn default_chunk(shape: &[u64], element: Element) -> Vec<u64> {
    let mut chunk: Vec<u64> = shape.iter().map(|&dim| dim.max(1)).collect();
    chunk[0] = 1;
    for axis in 1..chunk.len() {
        let rest = chunk[axis + 1..]
            .iter()
            .fold(element.size_bytes(), |all, &dim| all.saturating_mul(dim));
        chunk[axis] = chunk[axis].min((CHUNK_BYTES / rest).max(1));
        if chunk[axis] > 1 {
            break;
        }
    }
    chunk
}

fn check_chunk(chunk: &[u64], shape: &[u64], limits: &[u64]) -> Encoded<Vec<u64>> {
    let (found, expected) = (chunk.len(), shape.len());
    if found != expected {
        return Err(refused(format!("`chunk_dims` has {found} axes, datasets have {expected}")));
    }
    if !shape.contains(&0) && chunk.iter().zip(limits).any(|(chunk, limit)| chunk > limit) {
        return Err(refused(format!("`chunk_dims` {chunk:?} exceeds the dataset's {limits:?}")));
    }
    Ok(chunk.to_vec())
}

fn refused(what: String) -> EncodeError {
    EncodeError::Layout { format: FORMAT, what }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(options: Options, dims: &[u64], samples: u64) -> Result<Plan, String> {
        let settings = Settings::new(&options).map_err(|error| error.to_string())?;
        let file = FileSpec { dims: dims.to_vec(), samples, element: Element::Float32, index: 0 };
        settings.plan(&file).map_err(|error| error.to_string())
    }

    fn refusal(options: Options, dims: &[u64]) -> String {
        plan(options, dims, 4).err().unwrap()
    }

    #[test]
    fn records_are_split_along_their_first_axis() {
        let shape = |datasets, explicit_dims, dims: &[u64]| {
            let options = Options { datasets, explicit_dims, ..Options::default() };
            plan(options, dims, 4).unwrap().shape
        };
        assert_eq!(shape(1, false, &[6, 5]), [4, 6, 5]);
        assert_eq!(shape(3, false, &[6, 5]), [4, 2, 5]);
        assert_eq!(shape(6, false, &[6, 5]), [4, 1, 5]);
        assert_eq!(shape(6, true, &[6, 5]), [4, 5]);
        assert_eq!(shape(3, true, &[6, 5, 7]), [4, 2, 5, 7]);
        assert_eq!(shape(1, true, &[1, 5]), [4, 5]);
        assert_eq!(shape(1, true, &[]), [4]);
        let options = || Options { datasets: 4, ..Options::default() };
        assert_eq!(
            refusal(options(), &[6, 5]),
            "hdf5: first axis of [6, 5] cannot be divided into 4 datasets"
        );
        assert_eq!(refusal(options(), &[]), "hdf5: one element cannot go into 4 datasets");
    }

    #[test]
    fn chunks_are_a_sample_or_a_part_of_one() {
        let chunk = |dims: &[u64]| {
            let options = Options { compression: Compression::Gzip, ..Options::default() };
            plan(options, dims, 4).unwrap().chunk.unwrap()
        };
        assert_eq!(chunk(&[6, 5]), [1, 6, 5]);
        assert_eq!(chunk(&[1000, 1000]), [1, 262, 1000]);
        assert_eq!(chunk(&[3, 1 << 20]), [1, 1, 1 << 18]);
        assert_eq!(chunk(&[0, 5]), [1, 1, 5]);
        assert_eq!(chunk(&[]), [1]);
        assert_eq!(plan(Options::default(), &[6, 5], 4).unwrap().chunk, None);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let chunk = |dims: &[u64]| Options { chunk_dims: dims.to_vec(), ..Options::default() };
        let limit = |dims: &[u64]| Options { max_shape: dims.to_vec(), ..Options::default() };
        assert_eq!(
            refusal(chunk(&[1, 2]), &[6, 5]),
            "hdf5: `chunk_dims` has 2 axes, datasets have 3"
        );
        assert_eq!(
            refusal(chunk(&[1, 7, 5]), &[6, 5]),
            "hdf5: `chunk_dims` [1, 7, 5] exceeds the dataset's [4, 6, 5]"
        );
        assert_eq!(
            refusal(chunk(&[1, 0]), &[6]),
            "format hdf5: `dataset.hdf5.chunk_dims` must not contain 0"
        );
        assert_eq!(
            refusal(chunk(&[1, 1 << 20, 1 << 10]), &[1 << 20, 1 << 10]),
            "hdf5: chunk [1, 1048576, 1024] has 4 GiB or more"
        );
        assert_eq!(refusal(limit(&[9]), &[6, 5]), "hdf5: `max_shape` has 1 axes, samples have 2");
        assert_eq!(
            refusal(limit(&[9, 4]), &[6, 5]),
            "hdf5: samples of [6, 5] exceed `max_shape` [9, 4]"
        );
        let none = Options { datasets: 0, ..Options::default() };
        assert_eq!(
            refusal(none, &[6]),
            "format hdf5: `dataset.hdf5.num_dset_per_record` must be 1 to 65536"
        );
        let level = Options { compression: Compression::Gzip, level: 10, ..Options::default() };
        assert_eq!(refusal(level, &[6]), "format hdf5: `dataset.compression_level` must be 0 to 9");
        assert!(refusal(Options::default(), &[1 << 40, 1 << 40]).contains("larger than 2^64"));
        assert_eq!(refusal(Options::default(), &[1; 32]), "hdf5: 33 axes, at most 32 are possible");
    }
}
