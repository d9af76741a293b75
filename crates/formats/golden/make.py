"""Makes the golden files beside this script: python3 make.py (needs NumPy; run it with Python 3.11.4 or later).

`old-python.npz` is the one exception: the script ran under Python 3.11.2 for it (python3 make.py old).
"""

import pathlib
import sys
import zipfile

import numpy as np

HERE = pathlib.Path(__file__).parent
X = np.arange(6, dtype=np.uint8).reshape(2, 3, 1)
Y = np.zeros(1, dtype=np.int64)

if sys.argv[1:] == ["old"]:
    assert sys.version_info < (3, 11, 4)
    np.savez(HERE / "old-python.npz", x=X, y=Y)
    sys.exit()

assert sys.version_info >= (3, 11, 4)
np.savez(HERE / "new-python.npz", x=X, y=Y)
np.savez(HERE / "labels-first.npz", y=Y, x=X)
np.savez(HERE / "no-samples.npz", y=Y)
np.savez_compressed(HERE / "deflated.npz", x=X, y=Y)
np.savez(HERE / "comment.npz", x=X, y=Y)
with zipfile.ZipFile(HERE / "comment.npz", "a") as archive:
    archive.comment = b"PK\x05\x06 is how a directory ends" * 70
np.save(HERE / "float16.npy", np.zeros((2, 3, 2), dtype=np.float16))
np.save(HERE / "fortran-big-endian.npy", np.asfortranarray(np.ones((2, 3), dtype=">i4")))
np.save(HERE / "no-axes.npy", np.float64(1.5))
for version in (2, 3):
    with open(HERE / f"version-{version}.npy", "wb") as file:
        np.lib.format.write_array(file, X, version=(version, 0))
with open(HERE / "headers.txt", "w") as file:
    for dtype in "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128".split():
        for shape in [(), (7,), (338, 338, 1), (1, 2, 3, 4, 5), (12107, 12107, 1)]:
            header = bytearray()
            file_like = type("", (), {"write": lambda self, data: header.extend(data)})()
            np.lib.format.write_array_header_1_0(
                file_like, {"descr": np.lib.format.dtype_to_descr(np.dtype(dtype)), "fortran_order": False, "shape": shape}
            )
            axes = ",".join(map(str, shape))
            file.write(f"{dtype} {axes}; {header.hex()}\n")
