"""The ResNet34 of WeSpeaker, batch norms folded into the convolutions as the published ONNX graph has them: a stem, sixteen basic
blocks, mean and deviation over time, a linear map. Features [batch, frames, 80] -> embedding [batch, 256].

python3 resnet.py SPEAKER.onnx OUT.pt reads the published weights and checks the result against onnxruntime."""
import sys
import torch, torch.nn as nn, torch.nn.functional as F

BLOCKS, CHANNELS, BANDS, WIDTH = (3, 4, 6, 3), (32, 64, 128, 256), 80, 256
EPSILON = 1e-8  # added to the variance over time


class Block(nn.Module):
    def __init__(self, i, o, stride):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(i, o, 3, stride, 1), nn.Conv2d(o, o, 3, 1, 1)
        self.shortcut = nn.Conv2d(i, o, 1, stride) if stride > 1 else None

    def forward(self, x):
        return F.relu(self.conv2(F.relu(self.conv1(x))) + (self.shortcut(x) if self.shortcut else x))


class ResNet34(nn.Module):
    def __init__(self, blocks=BLOCKS, channels=CHANNELS):
        super().__init__()
        self.stem = nn.Conv2d(1, channels[0], 3, 1, 1)
        self.blocks, i = nn.ModuleList(), channels[0]
        for layer, (count, o) in enumerate(zip(blocks, channels)):
            for k in range(count):
                self.blocks.append(Block(i, o, 2 if k == 0 and layer else 1))
                i = o
        self.fc = nn.Linear(2 * channels[-1] * (BANDS // 8), WIDTH)

    def forward(self, features):
        x = F.relu(self.stem(features.transpose(1, 2)[:, None]))  # [batch, channel, band, frame]
        for block in self.blocks:
            x = block(x)
        x = x.float()
        return self.fc(torch.cat([x.mean(3).flatten(1), (x.var(3) + EPSILON).sqrt().flatten(1)], 1))


def published(path):
    """The weights of the published graph; its last step, the mean embedding taken off, goes into the linear map's bias."""
    import onnx
    from onnx.numpy_helper import to_array

    graph = onnx.load(path).graph
    value = {t.name: torch.from_numpy(to_array(t).copy()).float() for t in graph.initializer}
    net, convolutions = ResNet34(), iter([node for node in graph.node if node.op_type == "Conv"])
    layers = [net.stem] + [layer for b in net.blocks for layer in (b.conv1, b.shortcut, b.conv2) if layer is not None]
    for layer, node in zip(layers, convolutions, strict=True):
        if layer.weight.shape != value[node.input[1]].shape:
            raise SystemExit(f"{path}: {node.name} has the shape {tuple(value[node.input[1]].shape)}, expected {tuple(layer.weight.shape)}")
        layer.weight.data, layer.bias.data = value[node.input[1]], value[node.input[2]]
    net.fc.weight.data, net.fc.bias.data = value["model.seg_1.weight"], value["model.seg_1.bias"] - value["mean_vec"]
    return net.eval()


def difference(path, net):
    """The largest difference to onnxruntime on noise shaped as features, relative to the largest value."""
    import onnxruntime

    x = torch.randn(2, 203, BANDS, generator=torch.Generator().manual_seed(3)) * 3
    expected = torch.from_numpy(onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, {"input_features": x.numpy()})[0])
    with torch.no_grad():
        return ((net(x) - expected).abs().max() / expected.abs().max()).item()


if __name__ == "__main__":
    network = published(sys.argv[1])
    print(f"relative difference to onnxruntime {difference(sys.argv[1], network):.1e}")
    torch.save(network.state_dict(), sys.argv[2])
