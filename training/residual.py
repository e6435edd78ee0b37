"""ResNet34 (resnet.py), or one with other blocks and channels, as the engine runs it: `Walk` computes it in f32 and shows every activation to a probe, `quantize` turns it into
integers (export.py says how numbers are held). Activations are 11 bits, because patches of a plane are added up before they are multiplied
(assembly/nn/patch-convolution.ts). Weights are i16 in the first two stages, i8 in the others."""
import numpy as np, torch, torch.nn.functional as F
from export import BYTE, CONCATENATION_HIGH, FEATURE_STEP, WORD, Tensors, balanced, fine, stem
from resnet import BLOCKS, EPSILON

HIGH = 2047
MOST = 455  # the largest word that patches can hold
BINS = 10  # of the last stage
PATCH = 16  # so many times the sums of a patch stay below 2^31
POSITIONS = 4  # of so many positions in a plane, one counts for the moments


def strides_of(blocks):
    """Of the blocks of all stages."""
    return [2 if i == 0 and stage else 1 for stage, count in enumerate(blocks) for i in range(count)]


def words_of(blocks):
    """How many of the first blocks have words as weights."""
    return sum(blocks[:2])


class Walk:
    def __init__(self, state, blocks=BLOCKS):
        self.blocks = blocks
        self.layers = {name[:-7]: (state[name], state[name[:-7] + ".bias"]) for name in state if name.endswith(".weight")}

    @torch.no_grad()
    def __call__(self, features, probe=lambda name, x: x):
        """Log-mel features [frames][80], mean removed or not -> unit embedding [256]."""
        x = self.trunk(features, probe)
        return F.normalize(F.linear(torch.cat([x.mean(2).flatten(), (x.var(2) + EPSILON).sqrt().flatten()]), *self.layers["fc"]), dim=0)

    @torch.no_grad()
    def trunk(self, features, probe):
        """-> [channels][bins][frames] of the last stage. `probe(name, x)` sees what enters each layer in this form, and the shortcuts' outputs as
        `….shortcut.out`."""
        conv = lambda name, x, stride=1: F.conv2d(x[None], *self.layers[name], stride, self.layers[name][0].shape[2] // 2)[0]
        x = F.relu(conv("stem", (features - features.mean(0)).T[None]))
        for i, stride in enumerate(strides_of(self.blocks)):
            name = f"blocks.{i}"
            x = probe(name + ".conv1", x)
            h = probe(name + ".conv2", F.relu(conv(name + ".conv1", x, stride)))
            added = x if stride == 1 else probe(name + ".shortcut.out", conv(name + ".shortcut", x, stride))
            x = F.relu(conv(name + ".conv2", h) + added)
        return probe("fc", x)


def rows(name, x, blocks=BLOCKS):
    """What a 3 x 3 convolution of bytes reads, [frame · bin · channel][positions], for Seen."""
    block = name.split(".")
    if len(block) != 3 or block[2] == "shortcut" or int(block[1]) < words_of(blocks) or name.endswith(".out"):
        return None
    stride = strides_of(blocks)[int(block[1])] if block[2] == "conv1" else 1
    seen = F.unfold(x[None], 3, padding=1, stride=stride)[0].reshape(len(x), 3, 3, -1)
    return seen[..., ::POSITIONS].permute(2, 1, 0, 3).reshape(9 * len(x), -1)


def by_bins(weight):
    """Of a map that reads the statistics: a checkpoint flattens [channel][bin], the engine [bin][channel]."""
    return weight.reshape(len(weight), 2, -1, BINS).transpose(2, 3).reshape(len(weight), -1)


def quantize(net, seen):
    """-> [(name, array)] in the order in which the engine takes them."""
    made, x = trunk(net, seen)
    weight, bias = net.layers["fc"]
    net.layers["fc"] = by_bins(weight), bias
    made.dense("fc", x.repeat(weight.shape[1] // len(x)), BYTE, np.int8)
    return made.out


def trunk(net, seen):
    """-> Tensors up to the last stage, and the steps of its channels."""
    L, P, made = net.layers, seen.peak, Tensors(net.layers, seen)
    strides, words = strides_of(net.blocks), words_of(net.blocks)

    def steps(name, *also):
        """Of what enters a convolution, and others that read the same."""
        weight = torch.cat([L[n][0].abs().amax((2, 3)) for n in (name, *also)])
        return balanced(weight, P[name], HIGH)

    def plane(name, in_step, out_step, most, times=1):
        weight = L[name][0].permute(0, 3, 2, 1)  # [outputs][time][bin][channel]
        made.convolution(name, weight.reshape(len(weight), weight.shape[1], -1), in_step.repeat(weight.shape[2]), out_step, most, HIGH, times)

    x = steps("blocks.0.conv1")
    made.convolution("stem", stem(L["stem"][0]), torch.full((4,), FEATURE_STEP), x, WORD, CONCATENATION_HIGH)
    for i, stride in enumerate(strides):
        name, most = f"blocks.{i}", MOST if i < words else BYTE
        h, following = steps(name + ".conv2"), f"blocks.{i + 1}"
        last = i == len(strides) - 1
        y = fine(P["fc"]) if last else steps(following + ".conv1", *([following + ".shortcut"] if strides[i + 1] > 1 else []))
        plane(name + ".conv1", x, h, most, PATCH if stride == 1 else 1)
        added = x
        if stride > 1:
            added = fine(P[name + ".shortcut.out"])
            plane(name + ".shortcut", x, added, most)
        plane(name + ".conv2", h, y, most, PATCH)
        made.put(name + ".conv2.residual", added / y, np.float32)
        x = y
    return made, x
