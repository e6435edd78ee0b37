"""python3 floats.py MODEL.vvm SPEECH OUT.pt SCALE: the residual network for synthetic speech of a model file as floats (slim.py's Slim), so that training can go on from what ships.

SPEECH: a folder of .wav at 16 kHz; the statistics before the last two maps, which the model file has folded in, are measured on it. SCALE: what quantize.py multiplied the score by.
The engine's activations are whole numbers in steps that the model file does not tell. A rectified network does not change if a channel is scaled before a layer and back behind it,
so each plane gets steps of its own: the mean square of every channel is one, but where a channel hardly speaks its largest weight is.
"""
import os, sys

import torch

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from export import FEATURE_STEP
from network import Fronts, prepared
from residual import BINS
from slim import Slim
from teacher import statistics
from widen import clips, section


def shaped(weight):
    """[outputs][time][bins · channels], as the engine has it -> [outputs][channels][bins][time]"""
    outputs, time, run = weight.shape
    return weight.reshape(outputs, time, time, run // time).permute(0, 3, 2, 1)


@torch.no_grad()
def restored(tensors, speech, scale):
    get = lambda name: (tensors[f"slim.{name}.weight"] * tensors[f"slim.{name}.gain"].reshape(-1, *[1] * (tensors[f"slim.{name}.weight"].dim() - 1)), tensors[f"slim.{name}.bias"])
    count = sum(name.endswith("conv1.weight") for name in tensors)
    wide = [len(tensors[f"slim.blocks.{i}.conv1.weight"]) for i in range(count)]
    channels = tuple(sorted(set(wide)))
    net = Slim(tuple(wide.count(c) for c in channels), channels).eval()
    mel = prepared(Fronts(("mel",))(speech)["mel"])

    def loud(x, *layers):
        """A step for every channel of a plane in whole numbers, which these layers give."""
        heaviest = torch.stack([layer.weight.abs().amax((1, 2, 3)) for layer in layers]).amax(0)
        return 1 / torch.maximum(x.square().mean((0, 2, 3)).sqrt(), heaviest).clamp(min=1)

    def put(layer, weight, bias, before, after):
        layer.weight.copy_(weight / before.reshape(1, -1, 1, 1) * after.reshape(-1, 1, 1, 1))
        layer.bias.copy_(bias * after)

    weight, bias = get("stem")
    weight = weight[:, :, :3].permute(0, 2, 1)[:, None] / FEATURE_STEP  # one channel: a run is 3 bins and a zero
    put(net.base.stem, weight, bias, torch.ones(1), torch.ones(channels[0]))
    step = loud(torch.relu(net.base.stem(mel.transpose(1, 2)[:, None])), net.base.stem)
    put(net.base.stem, weight, bias, torch.ones(1), step)
    x = torch.relu(net.base.stem(mel.transpose(1, 2)[:, None]))
    for i, block in enumerate(net.base.blocks):
        name, none = f"blocks.{i}", torch.ones(wide[i])
        weight, bias = get(name + ".conv1")
        put(block.conv1, shaped(weight), bias, step, none)
        inside = loud(torch.relu(block.conv1(x)), block.conv1)
        put(block.conv1, shaped(weight), bias, step, inside)
        residual = tensors[f"slim.{name}.conv2.residual"]
        # the sum of a block without a shortcut keeps the steps of what it adds to, which are in units of the block's own: residual
        after = step / residual if block.shortcut is None else none
        weight, bias = get(name + ".conv2")
        put(block.conv2, shaped(weight), bias, inside, after)
        if block.shortcut is not None:
            side, side_bias = get(name + ".shortcut")
            put(block.shortcut, shaped(side), side_bias, step, residual)
            after = loud(block(x), block.conv2, block.shortcut)
            put(block.conv2, shaped(weight), bias, inside, after)
            put(block.shortcut, shaped(side), side_bias, step, residual * after)
        x, step = block(x), after
    pooled = torch.cat(statistics(x), 1)
    weight, bias = get("hidden")
    weight = weight.reshape(len(weight), 2, BINS, -1).transpose(2, 3)  # [channel][bin], as statistics flattens it
    weight = (weight / step.reshape(1, 1, -1, 1)).reshape(len(weight), -1)
    mean, deviation = pooled.mean(0), torch.sqrt(pooled.var(0) + net.norm.eps)
    net.norm.running_mean.copy_(mean)
    net.norm.running_var.copy_(pooled.var(0))
    net.hidden.weight.copy_(weight * deviation)
    net.hidden.bias.copy_(bias + weight @ mean)
    weight, bias = get("out")
    net.out.weight.copy_(weight[:1] / scale)
    net.out.bias.copy_(bias[:1] / scale)
    return net


if __name__ == "__main__":
    net = restored(section(sys.argv[1], "synthetic"), clips(sys.argv[2]), float(sys.argv[4]))
    torch.save({k: v.half() if v.is_floating_point() else v for k, v in net.state_dict().items()}, sys.argv[3])
