"""python3 published_onnx.py PUBLISHED: writes campplus.onnx and ecapa.onnx beside what published.py brought there, to try
`vivavoce model import` on. Needs the package onnx besides torch. Features in, [1][frames][80] as networks.py makes them."""
import os, sys
import torch
import networks


def export(kind, folder):
    network = networks.load(kind, folder).network.eval()
    path = os.path.join(folder, kind + ".onnx")
    axes = {"features": {1: "frames"}}
    torch.onnx.export(network, torch.randn(1, 200, 80), path, input_names=["features"], output_names=["embedding"], dynamic_axes=axes, opset_version=13, dynamo=False)


if __name__ == "__main__":
    for kind in ("campplus", "ecapa"):
        export(kind, sys.argv[1])
