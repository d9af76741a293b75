//! Images against what indexing finds in them, and both against files by torch and safetensors.

use feedline_clock::Clock;
use feedline_formats::Content;
use feedline_store::{Memory, Store, StoreError};

use super::*;
use crate::ContainerError;
use crate::{Share, StateKind, Tensor};

const NESTED: &[u8] = include_bytes!("../../tests/golden/nested.pt");
const FLAT: &[u8] = include_bytes!("../../tests/golden/flat.safetensors");
const METADATA: &[u8] = include_bytes!("../../tests/golden/dcp/.metadata");
const RANK_0: &[u8] = include_bytes!("../../tests/golden/dcp/__0_0.distcp");
const RANK_1: &[u8] = include_bytes!("../../tests/golden/dcp/__1_0.distcp");

fn tensor(path: &[&str], dtype: DType, len: u64) -> Tensor {
    let share = Share { name: path.join("."), total: len, first: 0 };
    Tensor { path: path.iter().map(|&key| key.to_owned()).collect(), dtype, len, share }
}

fn file(tensors: Vec<Tensor>) -> FileSpec {
    FileSpec { stem: "file".to_owned(), state: StateKind::Layers, tensors }
}

/// The tensors of the golden files.
fn golden() -> FileSpec {
    file(vec![
        tensor(&["model", "w"], DType::Float32, 3),
        tensor(&["model", "b"], DType::Int8, 5),
        tensor(&["opt", "m"], DType::BFloat16, 2),
        tensor(&["opt", "v"], DType::Float64, 3),
        tensor(&["opt", "h"], DType::Float16, 2),
        tensor(&["u"], DType::UInt8, 4),
        tensor(&["e"], DType::Float32, 0),
    ])
}

/// 0, 1, 2 … as a type's elements.
fn counted(dtype: DType, len: u64) -> Vec<u8> {
    let one = |number: u64| match dtype {
        DType::Int8 | DType::UInt8 => vec![number as u8],
        DType::Float16 => [0_u16, 0x3C00][number as usize].to_le_bytes().to_vec(),
        DType::BFloat16 => ((number as f32).to_bits() >> 16).to_le_bytes()[..2].to_vec(),
        DType::Float32 => (number as f32).to_le_bytes().to_vec(),
        DType::Float64 => (number as f64).to_le_bytes().to_vec(),
    };
    (0..len).flat_map(one).collect()
}

fn random(tensors: &[Tensor]) -> Vec<Vec<u8>> {
    let fill = |(number, tensor): (u64, &Tensor)| {
        let mut bytes = vec![0; tensor.bytes() as usize];
        tensor.dtype.fill_random(&Content::new(7, number), 0, &mut bytes);
        bytes
    };
    (0..).zip(tensors).map(fill).collect()
}

/// The file of an image, with these bytes in its tensors.
fn filled(image: &Image, tensors: &[Vec<u8>]) -> Vec<u8> {
    image.check().unwrap();
    let mut out = Vec::new();
    for part in &image.parts {
        match &part.body {
            Body::Tensor { index, bytes } => {
                assert_eq!(tensors[*index].len() as u64, *bytes);
                out.extend(&tensors[*index]);
            }
            Body::Bytes { bytes, holes } => {
                let base = out.len();
                out.extend(&**bytes);
                for hole in holes {
                    let crc = crc32fast::hash(&tensors[hole.tensor]).to_le_bytes();
                    out[base + hole.at..base + hole.at + Hole::BYTES].copy_from_slice(&crc);
                }
            }
        }
    }
    assert_eq!(out.len() as u64, image.len);
    out
}

fn stored(bytes: &[u8]) -> Box<dyn Object> {
    let store = Memory::new(Clock::real());
    store.put("file", bytes.to_vec());
    store.open("file").unwrap()
}

fn index(container: &dyn Container, bytes: &[u8]) -> Result<Vec<Found>> {
    container.index(&mut *stored(bytes))
}

/// A file that exists only as its image; its tensors and their checksums are zeros.
struct Imagined<'a> {
    image: &'a Image,
    reads: u64,
}

impl Object for Imagined<'_> {
    fn len(&mut self) -> Result<u64, StoreError> {
        Ok(self.image.len)
    }

    fn read_exact_at(&mut self, offset: u64, buf: &mut [u8]) -> Result<(), StoreError> {
        self.reads += 1;
        buf.fill(0);
        let range = offset..offset + buf.len() as u64;
        for part in self.image.overlapping(range.clone()) {
            if let Body::Bytes { bytes, .. } = &part.body {
                let (from, to) = (range.start.max(part.at), range.end.min(part.end()));
                let bytes = &bytes[(from - part.at) as usize..(to - part.at) as usize];
                buf[(from - offset) as usize..(to - offset) as usize].copy_from_slice(bytes);
            }
        }
        Ok(())
    }
}

#[test]
fn containers_are_found_by_name() {
    let names: Vec<&str> = CONTAINERS.iter().map(|entry| entry.0).collect();
    assert_eq!(names, ["torch", "safetensors", "dcp", "raw"]);
    let extensions = names.iter().map(|name| find(name).unwrap().extension());
    assert_eq!(extensions.collect::<Vec<_>>(), ["pt", "safetensors", "distcp", "bin"]);
    assert!(find("Torch").is_none());
}

#[test]
fn what_was_written_is_found_in_its_place() {
    let spec = golden();
    for &(name, container) in CONTAINERS {
        let image = container.image(&spec);
        let tensors = random(&spec.tensors);
        let bytes = filled(&image, &tensors);
        let found = index(container, &bytes).unwrap();
        let mut expected: Vec<Found> = (0..)
            .zip(&spec.tensors)
            .map(|(number, tensor)| Found {
                path: match name {
                    "dcp" => Vec::new(),
                    "safetensors" => vec![tensor.path.join(".")],
                    _ => tensor.path.clone(),
                },
                dtype: tensor.dtype,
                shape: vec![tensor.len],
                at: image.tensor_at(number),
            })
            .collect();
        expected.sort_by_key(|tensor| tensor.at);
        let by_name = |a: &Found, b: &Found| (a.at, &a.path).cmp(&(b.at, &b.path));
        let mut found = found;
        assert!(found.is_sorted_by_key(|tensor| tensor.at), "{name}");
        found.sort_by(by_name);
        expected.sort_by(by_name);
        assert_eq!(found, expected, "{name}");
        for (number, content) in tensors.iter().enumerate() {
            let at = image.tensor_at(number) as usize;
            assert_eq!(bytes[at..at + content.len()], **content, "{name}");
        }
    }
}

#[test]
fn a_file_without_tensors_holds_none() {
    for &(name, container) in CONTAINERS {
        let bytes = filled(&container.image(&file(Vec::new())), &[]);
        assert_eq!(index(container, &bytes).unwrap(), [], "{name}");
    }
}

#[test]
fn torch_files_are_those_of_torch_but_for_their_id() {
    let spec = golden();
    let tensors: Vec<Vec<u8>> =
        spec.tensors.iter().map(|tensor| counted(tensor.dtype, tensor.len)).collect();
    let mut ours = filled(&Torch.image(&spec), &tensors);
    let mut theirs = NESTED.to_vec();
    assert_eq!(ours.len(), theirs.len());
    // The last member's data, its descriptor's checksum, and that in the directory.
    let id_at = theirs.windows(30).rposition(|it| it == b"archive/.data/serialization_id").unwrap();
    let id_in = theirs.windows(30).position(|it| it == b"archive/.data/serialization_id").unwrap();
    let data_at = (id_in + 34).next_multiple_of(64);
    for bytes in [&mut ours, &mut theirs] {
        bytes[data_at..data_at + 48].fill(0);
        bytes[id_at - 30..id_at - 26].fill(0);
    }
    assert_eq!(ours, theirs);
}

#[test]
fn tensors_of_a_file_by_torch_are_found() {
    let mut object = stored(NESTED);
    let found = Torch.index(&mut *object).unwrap();
    assert_eq!(found.len(), 7);
    for (found, spec) in found.iter().zip(golden().tensors) {
        assert_eq!((&found.path, found.dtype), (&spec.path, spec.dtype));
        assert_eq!(found.shape, [spec.len]);
        let mut bytes = vec![0; spec.bytes() as usize];
        object.read_exact_at(found.at, &mut bytes).unwrap();
        assert_eq!(bytes, counted(spec.dtype, spec.len));
    }
}

#[test]
fn safetensors_files_are_those_of_the_reference() {
    let spec = golden();
    let tensors: Vec<Vec<u8>> =
        spec.tensors.iter().map(|tensor| counted(tensor.dtype, tensor.len)).collect();
    let ours = filled(&Safetensors.image(&spec), &tensors);
    assert_eq!(ours, FLAT);
    let found = index(&Safetensors, FLAT).unwrap();
    let names: Vec<&str> = found.iter().map(|found| found.path[0].as_str()).collect();
    assert_eq!(names, ["opt.v", "e", "model.w", "opt.m", "opt.h", "model.b", "u"]);
    assert_eq!(found[6].at, FLAT.len() as u64 - 4);
}

#[test]
fn types_that_no_checkpoint_of_ours_has_are_named() {
    let text = br#"{"a":{"dtype":"I64","shape":[1],"data_offsets":[0,8]}} "#;
    let mut bytes = (text.len() as u64).to_le_bytes().to_vec();
    bytes.extend(text);
    bytes.extend([0; 8]);
    let error = index(&Safetensors, &bytes).unwrap_err().to_string();
    assert_eq!(error, "unsupported safetensors file: tensor \"a\" of type I64");
}

#[test]
fn metadata_by_torch_is_read() {
    let index = read_dcp_metadata(METADATA).unwrap();
    let chunk = |offsets: &[u64], sizes: &[u64], file: &str, offset, length| DcpChunk {
        offsets: offsets.to_vec(),
        sizes: sizes.to_vec(),
        file: file.into(),
        offset,
        length,
    };
    let (first, second) = ("__0_0.distcp", "__1_0.distcp");
    let expected = [
        (
            "layers.0",
            DType::Float32,
            vec![10],
            vec![chunk(&[0], &[5], first, 0, 1577), chunk(&[5], &[5], second, 1261, 1577)],
        ),
        (
            "layers.w",
            DType::BFloat16,
            vec![2, 3],
            vec![
                chunk(&[0, 0], &[1, 3], first, 1577, 1577),
                chunk(&[1, 0], &[1, 3], second, 2838, 1577),
            ],
        ),
        ("both", DType::Int8, vec![4], vec![chunk(&[0], &[4], second, 4415, 1577)]),
    ]
    .map(|(name, dtype, shape, chunks)| DcpTensor {
        name: name.to_owned(),
        dtype,
        shape,
        chunks,
    });
    assert_eq!(index.tensors, expected);

    let whole: Vec<u8> = [RANK_0, RANK_1].concat();
    let mut object = stored(&whole);
    for (tensor, chunk) in
        index.tensors.iter().flat_map(|it| it.chunks.iter().map(move |chunk| (it, chunk)))
    {
        let base = if &*chunk.file == second { RANK_0.len() as u64 } else { 0 };
        let chunk = DcpChunk { offset: base + chunk.offset, ..chunk.clone() };
        let found = find_dcp_chunk(&mut *object, &chunk).unwrap();
        assert_eq!((found.dtype, &found.shape), (tensor.dtype, &chunk.sizes));
        let elements = |axes: &[u64]| axes.iter().product::<u64>();
        let before = chunk.offsets[0] * elements(&tensor.shape[1..]) * tensor.dtype.size_bytes();
        let all = counted(tensor.dtype, elements(&tensor.shape));
        let mut bytes = vec![0; (elements(&chunk.sizes) * tensor.dtype.size_bytes()) as usize];
        object.read_exact_at(found.at, &mut bytes).unwrap();
        assert_eq!(bytes, all[before as usize..before as usize + bytes.len()], "{}", tensor.name);
    }
}

#[test]
fn data_files_by_torch_are_found_without_their_metadata() {
    let found = index(&Dcp, RANK_0).unwrap();
    let shapes: Vec<&[u64]> = found.iter().map(|found| found.shape.as_slice()).collect();
    assert_eq!(shapes, [[5].as_slice(), &[1, 3]]);
    // The first archive of the other rank holds a number, not a tensor.
    let found = index(&Dcp, RANK_1).unwrap();
    let shapes: Vec<&[u64]> = found.iter().map(|found| found.shape.as_slice()).collect();
    assert_eq!(shapes, [[5].as_slice(), &[1, 3], &[4]]);
    assert!(found.iter().all(|found| found.path.is_empty()));
}

#[test]
fn metadata_of_ours_tells_where_every_piece_is() {
    let piece = |name: &str, len, total, first| Tensor {
        share: Share { name: name.to_owned(), total, first },
        ..tensor(&["x"], DType::Float32, len)
    };
    let ranks = [
        file(vec![piece("a", 5, 8, 0), piece("b", 0, 3, 0)]),
        file(vec![piece("a", 3, 8, 5), piece("b", 3, 3, 0)]),
        file(vec![piece("a", 3, 8, 5)]),
    ];
    let names = ["__0_0.distcp", "__1_0.distcp", "__2_0.distcp"];
    let files: Vec<DcpFile<'_>> = names
        .iter()
        .zip(&ranks)
        .map(|(relative_path, spec)| DcpFile { relative_path, spec })
        .collect();
    let index = read_dcp_metadata(&dcp_metadata(&files)).unwrap();
    let pieces = |tensor: &DcpTensor| -> Vec<(u64, u64, String, u64)> {
        let chunks = tensor.chunks.iter();
        chunks.map(|it| (it.offsets[0], it.sizes[0], it.file.to_string(), it.offset)).collect()
    };
    assert_eq!(index.tensors.len(), 2);
    assert_eq!(index.tensors[0].shape, [8]);
    // The third rank has what the second has, and no rank has the empty piece of `b`.
    assert_eq!(
        pieces(&index.tensors[0]),
        [(0, 5, names[0].to_owned(), 0), (5, 3, names[1].to_owned(), 0)]
    );
    let first = &index.tensors[0].chunks[1];
    assert_eq!(pieces(&index.tensors[1]), [(0, 3, names[1].to_owned(), first.length)]);

    let image = Dcp.image(&ranks[1]);
    let bytes = filled(&image, &random(&ranks[1].tensors));
    let found = find_dcp_chunk(&mut *stored(&bytes), &index.tensors[1].chunks[0]).unwrap();
    assert_eq!(found.at, image.tensor_at(1));
}

#[test]
fn finding_a_piece_takes_two_reads() {
    let spec = file((0..50).map(|_| tensor(&["x"], DType::Float64, 1000)).collect());
    let image = Dcp.image(&spec);
    let mut object = Imagined { image: &image, reads: 0 };
    let length = image.len / 50;
    let chunk = DcpChunk {
        offsets: vec![0],
        sizes: vec![1000],
        file: "x".into(),
        offset: 49 * length,
        length,
    };
    let found = find_dcp_chunk(&mut object, &chunk).unwrap();
    assert_eq!((found.at, object.reads), (image.tensor_at(49), 2));
}

/// Pieces of the file that torch 2.15 wrote for a, b and c, with the place of each.
const BEHIND_4_GIB: [(u64, &str); 9] = [
    (
        790,
        "504b0304000008080000000000000000000000000000000000000e003e00617263686976652f646174612f30\
           0100100005000000010000000000000000000000",
    ),
    (854, "464226005a5a5a5a5a5a"),
    (4294968221, "504b0304000008080000000000000000000000000000000000000e003700"),
    (4294968251, "617263686976652f646174612f31010008009d030000010000004642"),
    (4294968368, "504b0304000000080000000000000000000000000000000000000e002400"),
    (4294968514, "504b0708d19e675502000000000000000200000000000000"),
    (
        4294969355,
        "504b06062c000000000000001e032d000000000000000000090000000000000009000000000000\
                  008b020000000000008005000001000000",
    ),
    (4294969411, "504b0607000000000b0800000100000001000000"),
    (4294969431, "504b050600000000090009008b020000ffffffff0000"),
];

#[test]
fn archives_behind_4_gib_are_those_of_torch() {
    let spec = file(vec![
        tensor(&["a"], DType::UInt8, (4 << 30) + 5),
        tensor(&["b"], DType::Float64, 3),
        tensor(&["c"], DType::Float32, 0),
    ]);
    let image = Torch.image(&spec);
    image.check().unwrap();
    assert_eq!(image.len, 4_294_969_453);
    let mut object = Imagined { image: &image, reads: 0 };
    for (at, hex) in BEHIND_4_GIB {
        let mut bytes = vec![0; hex.len() / 2];
        object.read_exact_at(at, &mut bytes).unwrap();
        let found: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(found, hex, "at {at}");
    }
    let found = Torch.index(&mut object).unwrap();
    let places: Vec<u64> = found.iter().map(|found| found.at).collect();
    assert_eq!(places, [896, 4_294_968_320, 4_294_968_448]);
}

#[test]
fn huge_tensors_are_found_in_all_containers() {
    let spec = file(vec![
        tensor(&["a"], DType::Float32, 3 << 30),
        tensor(&["b"], DType::Float32, 3),
        tensor(&["c"], DType::Float32, 5 << 40),
        tensor(&["d"], DType::Float32, 1),
    ]);
    for &(name, container) in CONTAINERS {
        let image = container.image(&spec);
        image.check().unwrap();
        let found = container.index(&mut Imagined { image: &image, reads: 0 }).unwrap();
        let places: Vec<u64> = found.iter().map(|found| found.at).collect();
        let expected: Vec<u64> = (0..4).map(|index| image.tensor_at(index)).collect();
        assert_eq!(places, expected, "{name}");
        assert!(image.len > (20 << 40) + (12 << 30) && image.len < (20 << 40) + (12 << 30) + 8192);
    }
}

#[test]
fn more_tensors_than_16_bits_can_count_are_found() {
    let tensors = (0..70_000).map(|index| tensor(&["t", &format!("{index}")], DType::Int8, 1));
    let spec = file(tensors.collect());
    let image = Torch.image(&spec);
    image.check().unwrap();
    let mut object = Imagined { image: &image, reads: 0 };
    let found = Torch.index(&mut object).unwrap();
    assert_eq!(found.len(), 70_000);
    assert_eq!(found[69_999].path, ["t", "69999"]);
    assert_eq!(found[69_999].at, image.tensor_at(69_999));
    // The end, the directory, the pickle: none for tensors.
    assert_eq!(object.reads, 3);
}

#[test]
fn keys_that_come_apart_stay_in_one_dictionary() {
    let spec = file(vec![
        tensor(&["a", "x"], DType::Int8, 1),
        tensor(&["b"], DType::Int8, 2),
        tensor(&["a", "y"], DType::Int8, 3),
    ]);
    let bytes = filled(&Torch.image(&spec), &random(&spec.tensors));
    let found = index(&Torch, &bytes).unwrap();
    let paths: Vec<String> = found.iter().map(|found| found.path.join("/")).collect();
    assert_eq!(paths, ["a/x", "b", "a/y"]);
    let pickle = bytes.windows(8).filter(|window| window.starts_with(b"X\x01\0\0\0a")).count();
    assert_eq!(pickle, 1);
}

#[test]
fn parts_are_found_by_their_bytes() {
    let image = Raw.image(&file(vec![
        tensor(&["a"], DType::Int8, 70),
        tensor(&["b"], DType::Int8, 0),
        tensor(&["c"], DType::Int8, 64),
    ]));
    let begins = |range| image.overlapping(range).map(|part| part.at).collect::<Vec<_>>();
    assert_eq!(begins(0..1), [0]);
    assert_eq!(begins(69..71), [0, 70]);
    assert_eq!(begins(127..129), [70, 128]);
    assert_eq!(begins(128..192), [128]);
    assert_eq!(begins(191..image.len + 5), [128, 192]);
    assert!(begins(5..5).is_empty() && begins(image.len..image.len + 1).is_empty());
    assert_eq!((image.tensor_at(0), image.tensor_at(1), image.tensor_at(2)), (0, 128, 128));
}

/// A file of a tebibyte that is all zeros but for its end.
struct Ending<'a>(&'a [u8]);

impl Object for Ending<'_> {
    fn len(&mut self) -> Result<u64, StoreError> {
        Ok(1 << 40)
    }

    fn read_exact_at(&mut self, offset: u64, buf: &mut [u8]) -> Result<(), StoreError> {
        assert_eq!(offset + buf.len() as u64, 1 << 40, "only the end is read");
        buf.fill(0);
        let at = buf.len() - self.0.len();
        buf[at..].copy_from_slice(self.0);
        Ok(())
    }
}

#[test]
fn descriptions_larger_than_memory_are_refused() {
    let check = |container: &dyn Container, end: &[u8], expected: &str| {
        let error = container.index(&mut Ending(end)).unwrap_err();
        assert!(matches!(error, ContainerError::TooMuch { .. }), "{error:?}");
        assert_eq!(error.to_string(), expected);
    };
    let size = (300_u32 << 20).to_le_bytes();
    let footer = [&size[..], &[0; 4], b"FEEDRAW1"].concat();
    check(&Raw, &footer, "raw file: index of 314572800 bytes, the limit is 268435456");
    let end = [b"PK\x05\x06".as_slice(), &[0; 8], &size, &[0; 6]].concat();
    check(&Torch, &end, "torch file: directory of 314572800 bytes, the limit is 268435456");
    let error = read_dcp_metadata(&vec![0; (256 << 20) + 1]).unwrap_err().to_string();
    assert_eq!(error, "dcp file: metadata of 268435457 bytes, the limit is 268435456");
}

#[test]
fn broken_images_are_noticed() {
    let image = Torch.image(&golden());
    let check = |change: &dyn Fn(&mut Image), expected: &str| {
        let mut broken = image.clone();
        change(&mut broken);
        assert_eq!(broken.check().unwrap_err(), expected);
    };
    check(&|image| image.len += 1, "ends at 3153, not at 3154");
    check(&|image| image.parts[1].at += 1, "part 1 begins at 1217, not at 1216");
    check(
        &|image| {
            let holes = vec![Hole { at: 0, tensor: 3 }];
            image.parts[0].body = Body::Bytes { bytes: vec![0; 1216].into(), holes };
        },
        "part 0: hole at 0 comes before tensor 3",
    );
}
