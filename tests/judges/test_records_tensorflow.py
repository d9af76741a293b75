"""TensorFlow judges tfrecord files (tensorflow-cpu 2.21.0)."""

import pytest
import tensorflow as tf

from conftest import generate_two
from test_records import DTYPES, SHAPES, expected_samples, train

FEATURES = {
    "image": tf.io.FixedLenFeature([], tf.string),
    "size": tf.io.FixedLenFeature([], tf.int64),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dims,samples", SHAPES)
def test_tensorflow_reads_tfrecord(feedline, dims, samples, dtype):
    dataset = {"record_dims": dims, "record_element_type": dtype}
    data = generate_two(feedline, format="tfrecord", num_samples_per_file=samples, **dataset)
    for i, expected in enumerate(expected_samples(feedline, samples, **dataset)):
        name = f"img_{i}_of_2.tfrecord"
        records = list(tf.data.TFRecordDataset(str(data / "train" / name)))
        assert len(records) == samples
        stored = (data / "train" / name).read_bytes()
        index = (data / "index" / "train" / f"{name}.idx").read_text().splitlines()
        assert len(index) == samples
        for record, line, sample in zip(records, index, expected):
            example = tf.io.parse_single_example(record, FEATURES)
            assert example["image"].numpy() == sample.tobytes()
            assert int(example["size"]) == sample.nbytes
            offset, length = map(int, line.split(" "))
            assert stored[offset + 12 : offset + length - 4] == record.numpy()


@pytest.mark.parametrize("compression", ["", "GZIP"])
def test_tfrecord_of_tensorflow_is_read(feedline, compression):
    data = feedline.folder / "data"
    (data / "train").mkdir(parents=True)
    for i in range(2):
        path = str(data / "train" / f"img_{i}_of_2.tfrecord")
        with tf.io.TFRecordWriter(path, compression) as file:
            for sample in range(3):
                image = bytes([sample]) * 64
                example = tf.train.Example(features=tf.train.Features(feature={
                    "image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[image])),
                    "size": tf.train.Feature(int64_list=tf.train.Int64List(value=[64])),
                    "label": tf.train.Feature(float_list=tf.train.FloatList(value=[0.5])),
                }))
                file.write(example.SerializeToString())
    if compression:
        with pytest.raises(AssertionError, match="compression with gzip"):
            train(feedline, data, 3, format="tfrecord", record_dims=[8, 8])
    else:
        assert train(feedline, data, 3, format="tfrecord", record_dims=[8, 8]) == 6
