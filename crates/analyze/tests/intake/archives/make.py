"""Writes the archives beside it, with what Python's tarfile can put around members."""

import gzip
import io
import json
import tarfile

HOST = "6882804a826580cd"
LONG = "a-folder-with-a-long-name/" * 8 + "rank-0.pfw"


def trace(pid):
    def line(**fields):
        fields["args"] = {"hhash": HOST, **fields["args"]}
        return json.dumps({"pid": pid, "tid": pid, **fields}, separators=(",", ":")) + "\n"

    def meta(name, args):
        return line(name=name, cat="dftracer", type=1, ph=4, args=args)

    start = 1_800_000_000_000_000
    text = meta("HH", {"name": "vm", "value": HOST})
    text += meta("CM", {"name": "time_metric", "value": "US"})
    for at in range(3):
        args = {"fhash": f"{pid:016x}", "count": 4096, "offset": 4096 * at, "ret": 4096}
        text += line(id=at, name="pread64", cat="POSIX", type=3, ts=start + 10 * at, dur=5, ph=1, args=args)
    return (text + meta("FH", {"name": f"/data/{pid}.npz", "value": f"{pid:016x}"})).encode()


def add(tar, name, data=b"", kind=tarfile.REGTYPE, size=None, **fields):
    member = tarfile.TarInfo(name)
    member.type = kind
    member.size = len(data) if size is None else size
    for field, value in fields.items():
        setattr(member, field, value)
    tar.addfile(member, io.BytesIO(data) if data else None)


for name, layout in [("pax", tarfile.PAX_FORMAT), ("gnu", tarfile.GNU_FORMAT)]:
    out = io.BytesIO()
    headers = {"comment": "for all members"} if name == "pax" else None
    with tarfile.open(fileobj=out, mode="w", format=layout, pax_headers=headers) as tar:
        add(tar, "a-folder-with-a-long-name", kind=tarfile.DIRTYPE, size=1024)
        # Neither has data, whatever its size says.
        add(tar, "link", kind=tarfile.SYMTYPE, size=700, linkname="t" * 150)
        add(tar, "hard-link", kind=tarfile.LNKTYPE, size=900, linkname=LONG)
        add(tar, LONG, trace(100))
        add(tar, "r\u00e4nk-1.pfw", trace(101), mtime=1.5, uname="\u00fcser" * 20)
        add(tar, "notes.txt", b"hello")
    with open(f"{name}.tar.gz", "wb") as file:
        file.write(gzip.compress(out.getvalue(), mtime=0))
