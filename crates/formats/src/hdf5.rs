//! `hdf5`: the samples in datasets `records_0`, `records_1`, …, sample axis first, and `labels`.
//!
//! Written as h5py does with the newest format of HDF5 1.10: contiguous, or in chunks if a chunk
//! shape, a compression or a larger maximum shape is asked for. Every dataset has a part of the
//! samples of its own: dataset `i` begins at `i` times its size among all samples of the file.
//! Read as h5py does: superblock, root group and headers when the file is opened; per sample the
//! bytes of contiguous datasets, or all chunks that hold a part of it, whole, every filter undone.
//! A chunk is not kept for the next sample. Nothing is shared between files, so reads scale with
//! threads, which those of the C library with its one lock do not.

mod arrays;
mod assembly;
mod blocks;
mod checksum;
mod chunks;
mod dataset;
mod datatype;
mod encode;
mod fields;
mod filters;
mod group;
mod header;
mod heap;
mod index;
mod lzf;
mod metadata;
mod pack;
mod plan;
mod superblock;
mod tree2;

use std::collections::VecDeque;

use assembly::Assembly;
use blocks::Blocks;
use dataset::{Dataset, Workbench};
use fields::{Addressing, FORMAT};
use filters::Unpacker;
use group::Member;
use plan::Settings;

use crate::framework::FrameworkReader;
use crate::sample_sink::{Decode, Request};
use crate::{
    ByteRange, ByteSink, ByteSource, Compression, Content, Decoded, Encoded, FileSize, FileSpec,
    Format, Opened, OptionError, Options, SampleFormat, SampleRead, SampleSink, Scratch,
};

pub(crate) struct Hdf5 {
    settings: Settings,
}

pub(crate) static FACTS: SampleFormat = SampleFormat {
    other_extensions: &["h5"],
    compressions: &[Compression::Gzip, Compression::Lzf],
    framework: Some(FrameworkReader::Hdf5),
    ..SampleFormat::new(FORMAT, build)
};

fn build(options: &Options) -> Result<Box<dyn Format>, OptionError> {
    Ok(Box::new(Hdf5 { settings: Settings::new(options)? }))
}

impl Format for Hdf5 {
    fn facts(&self) -> &'static SampleFormat {
        &FACTS
    }

    fn size(&self, file: &FileSpec) -> FileSize {
        self.settings.plan(file).map_or(FileSize::Exact(u64::MAX), |plan| encode::size(&plan))
    }

    fn encode(&self, file: &FileSpec, content: &Content, sink: &mut dyn ByteSink) -> Encoded<()> {
        encode::encode(&self.settings.plan(file)?, content, sink)
    }

    fn open(&self, source: &mut dyn ByteSource, scratch: &mut Scratch) -> Decoded<Box<dyn Opened>> {
        Ok(Box::new(File::open(source, self.settings.datasets, scratch)?))
    }
}

/// An open file: its sample datasets, each with the way to the chunk that was read last.
struct File {
    addressing: Addressing,
    datasets: Vec<Dataset>,
    /// Datasets that are opened when they are read, as h5py does.
    unopened: VecDeque<Member>,
    unpacker: Unpacker,
    /// Bytes that opening took and that no sample has been charged with.
    uncharged: u64,
}

impl File {
    fn open(source: &mut dyn ByteSource, datasets: u64, scratch: &mut Scratch) -> Decoded<File> {
        let (mut blocks, root) = superblock::open(source, &mut scratch.piece)?;
        let mut unopened = VecDeque::from(group::members(&mut blocks, root, datasets)?);
        let mut datasets = Vec::new();
        while !blocks.window.is_exact()
            && let Some(member) = unopened.pop_front()
        {
            datasets.push(Dataset::open(&mut blocks, member)?);
        }
        let uncharged = blocks.window.pulled();
        let addressing = blocks.addressing;
        let unpacker = Unpacker::default();
        Ok(File { addressing, datasets, unopened, unpacker, uncharged })
    }
}

impl Decode for File {
    fn decode<S: SampleSink>(&mut self, request: Request<'_>, sink: &mut S) -> Decoded<SampleRead> {
        let Request { source, index, scratch } = request;
        let Scratch { piece, whole, decoded, .. } = scratch;
        let mut blocks = Blocks::new(source, piece, self.addressing)?;
        let mut bench = Workbench { unpacker: &mut self.unpacker, packed: whole, spare: decoded };
        for number in 0..self.datasets.len() + self.unopened.len() {
            if number == self.datasets.len()
                && let Some(&member) = self.unopened.front()
            {
                self.datasets.push(Dataset::open(&mut blocks, member)?);
                self.unopened.pop_front();
            }
            let dataset = &mut self.datasets[number];
            let mut sample = Assembly::begin(dataset, index, sink)?;
            dataset.read(&mut blocks, index, &mut bench, &mut |part| sample.put(part))?;
            sample.finish()?;
        }
        let file_bytes = blocks.window.pulled() + std::mem::take(&mut self.uncharged);
        let bytes = self.datasets.iter().map(|dataset| dataset.sample_bytes);
        Ok(SampleRead {
            bytes: bytes.fold(0, u64::saturating_add),
            file_bytes,
            samples: self.datasets.iter().map(Dataset::samples).min().unwrap_or(0),
            element: self.datasets.first().map(|dataset| dataset.element),
        })
    }

    fn locate_sample(&mut self, request: Request<'_>, ranges: &mut Vec<ByteRange>) -> Decoded<()> {
        let Request { source, index, scratch } = request;
        let mut blocks = Blocks::new(source, &mut scratch.piece, self.addressing)?;
        for dataset in &mut self.datasets {
            dataset.locate(&mut blocks, index, ranges)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
