"""python3 insert.py MODEL.vvm OUT.vvm NAME=FROM…: puts sections into a model file, or in the place of those of that name; NAME= takes one out.
FROM: quantize.py's folder, calibrate.py's JSON, or another model file (.vvm), whose section of that name is taken. synthetic=FROM+FROM: a narrow network and
a slim one, of a model file its narrow one; the description is the last one's.

Everything else of the file stays as it is, byte for byte, so the revision of network and templates stays too. OUT may be MODEL.
"""
import hashlib, json, os, struct, sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import numpy as np
from export import model_file, section

TYPES = {"i8": "<i1", "i16": "<i2", "f32": "<f4"}


def opened(path):
    """Header, {name: bytes of the section} of a model file."""
    data = open(path, "rb").read()
    if hashlib.sha256(data[:-32]).digest() != data[-32:]:
        raise SystemExit(f"{path} was altered")
    header = json.loads(data[16 : 16 + struct.unpack_from("<I", data, 12)[0]])
    return header, {s["name"]: data[s["offset"] : s["offset"] + s["bytes"]] for s in header["sections"]}


def parts(data):
    """Description and tensors of a section."""
    described = json.loads(data[16 : 16 + int.from_bytes(data[:4], "little")])
    tensors = described.pop("tensors")
    return described, [(t["name"], np.frombuffer(data, TYPES[t["dtype"]], t["bytes"] // np.dtype(TYPES[t["dtype"]]).itemsize, t["offset"]).reshape(t["shape"])) for t in tensors]


def shipped(folder):
    """The same of quantize.py's folder."""
    return json.load(open(folder + "/description.json")), [(t, np.load(f"{folder}/{t}.npy")) for t in json.load(open(folder + "/order.json"))]


def written(out, header, sections):
    made = model_file(header["family"], header["licence"], header["trainingData"], sections)
    with open(out + ".part", "wb") as f:
        f.write(made)
    os.replace(out + ".part", out)
    print(f"{out}: {len(made):,} bytes", {name: len(part) for name, part in sections.items()})


def main(source, out, *named):
    header, sections = opened(source)
    for name, folder in (n.split("=", 1) for n in named):
        if not folder:
            sections.pop(name, None)
            continue
        if folder.endswith(".json"):
            sections[name] = section(json.load(open(folder)), [])
            continue
        if folder.endswith(".vvm"):
            sections[name] = opened(folder)[1][name]
            continue
        if "+" in folder:
            (_, narrow), (description, slim) = (parts(opened(path)[1][name]) if path.endswith(".vvm") else shipped(path) for path in folder.split("+"))
            narrow = [(t, a) for t, a in narrow if not t.startswith(("wide.", "slim."))]
            sections[name] = section(description, [(f"{of}.{t.removeprefix('narrow.')}", a) for of, some in (("narrow", narrow), ("slim", slim)) for t, a in some])
            continue
        sections[name] = section(*shipped(folder))
    written(out, header, sections)


if __name__ == "__main__":
    main(*sys.argv[1:])
