"""One data set, read by both: what was counted, side by side."""

import strace

KEYS = ("opens", "stats", "reads", "bytes", "maps")


def entry(data_set, size, workers, theirs, mine):
    """What is kept of a comparison; counts are per sample, histograms those of the whole run."""
    return {
        "data_set": data_set.name, "format": data_set.format, "variant": data_set.variant,
        "framework": data_set.framework, "block_size": size, "workers": workers,
        "samples": data_set.samples, "real": per_sample(theirs.counts, data_set.samples),
        "feedline": per_sample(mine.counts, data_set.samples),
        "distance": strace.distance(theirs.counts.asked, mine.counts.asked),
        "same_order": orders(data_set, theirs) == orders(data_set, mine),
    }


def orders(data_set, measured):
    """What is compared of the order of reads: all of it, but only that within each file with tf.data,
    which opens files ahead in threads of its own that race each other, and with DLIO's indexed reader,
    which reads all indexes before the first sample where Feedline reads one with its file."""
    if data_set.framework == "tensorflow" or data_set.format == "indexed_binary":
        return measured.order_in_files()
    return measured.order


def per_sample(counts, samples):
    """Counts per sample, and the histogram of sizes asked."""
    return {
        **{key: getattr(counts, key) / samples for key in KEYS},
        "asked": {str(size): count for size, count in sorted(counts.asked.items())},
    }


def difference(compared):
    """The largest relative difference of the counts, or the distance of the histograms if larger."""
    return max(compared["distance"], *(apart(compared["real"][key], compared["feedline"][key])
                                       for key in KEYS))


def apart(expected, found):
    """Relative difference; 1 where there should be nothing and is something."""
    if expected == 0:
        return 0.0 if found == 0 else 1.0
    return abs(found - expected) / expected
