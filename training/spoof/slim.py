"""A ResNet with fewer blocks, and fewer channels where they are asked for, than a Teacher (teacher.py), which begins with what fits the Teacher best (LOG.md 19, 20).

python3 slim.py TEACHER.pt PACK OUT.pt BLOCKS CHANNELS   blocks and channels of the four stages, as 1,3,4,2 and 16,32,64,128; TEACHER may be a Slim that is larger
                                                           PACK: pack.py's output, of which 48 clips are used; takes a minute or two
"""
import glob, io, json, os, random, sys

import numpy as np, torch, torch.nn as nn, torch.nn.functional as F

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from network import Fronts, Judging, prepared, restored
from resnet import ResNet34
from teacher import BANDS, stages, statistics

HIDDEN = 32
CLIPS, FRAMES, POSITIONS, DAMPING = 48, 200, 60000, 1e-3


class Slim(Judging):
    kind, names = "slim", ("mel",)

    def __init__(self, blocks, channels, drop=0.3, hint=0):
        super().__init__()
        self.blocks = blocks
        self.base = ResNet34(blocks, channels)
        del self.base.fc
        width = 2 * BANDS * channels[-1]
        self.norm, self.hidden, self.out = nn.BatchNorm1d(width, affine=False), nn.Linear(width, HIDDEN), nn.Linear(HIDDEN, 1)
        if hint:
            self.hint = nn.Linear(width, hint)
        self.drop = nn.Dropout(drop)
        for k, count in enumerate(channels):  # of the Teacher's channels, those that a stage has
            self.register_buffer(f"kept{k}", torch.arange(count))

    def stages(self, features):
        return stages(self.base, features["mel"], self.blocks)

    def pooled(self, features):
        """-> mean and deviation over time of the last stage's channels, bin by bin."""
        return self.pooled_stages(self.stages(features))

    def pooled_stages(self, planes):
        return self.norm(torch.cat(statistics(planes[-1].float()), 1))

    def away(self, planes, of_teacher):
        """How far the stages' outputs are from the Teacher's in the same channels, in units of their mean square."""
        total = 0
        for k, (x, y) in enumerate(zip(planes, of_teacher)):
            y = y[:, getattr(self, f"kept{k}")].float()
            total = total + (x.float() - y).square().mean() / y.square().mean()
        return total / len(planes)


def shape_of(state):
    """Blocks and channels of a checkpoint."""
    wide = [len(state[name]) for name in state if name.endswith("conv1.weight")]
    return tuple(wide.count(c) for c in sorted(set(wide))), tuple(sorted(set(wide)))


def solved(inputs, target):
    """Weights [outputs][inputs] and biases by least squares; inputs and target are [batch][…][positions]."""
    a, y = (v.transpose(0, 1).flatten(1) for v in (torch.cat(inputs, 1), target.flatten(2)))
    some = torch.randperm(a.shape[1])[:POSITIONS]
    a, y = torch.cat([a[:, some], torch.ones(1, len(some))]).double(), y[:, some].double()
    moments = a @ a.T
    moments += torch.eye(len(moments)) * moments.diagonal().mean() * DAMPING
    w = torch.linalg.solve(moments, a @ y.T).T.float()
    return w[:, :-1], w[:, -1]


@torch.no_grad()
def fitted(teacher, mel, blocks, channels):
    """A Slim that begins near the Teacher. Channels are kept that move most and are read most; then every convolution is solved for what the Teacher has in
    those channels, from what the Slim has before it. A block also stands for the Teacher's blocks behind it that are left out."""
    big, net, (all_blocks, all_channels) = teacher.base, Slim(blocks, channels), shape_of(teacher.state_dict())
    x = F.relu(big.stem(mel.transpose(1, 2)[:, None]))
    inside, sums, outputs = [], [], []
    for b in big.blocks:
        inside.append(b.conv1(x))
        sums.append(b.conv2(F.relu(inside[-1])) + (b.shortcut(x) if b.shortcut else x))
        outputs.append(x := F.relu(sums[-1]))
    first = [sum(all_blocks[:k]) for k in range(5)]
    moves, reads = lambda x: x.transpose(0, 1).flatten(1).var(1), lambda w: w.transpose(0, 1).flatten(1).square().sum(1)
    best = lambda weight, count: weight.topk(count).indices.sort().values
    for k, count in enumerate(channels):
        after = big.blocks[first[k + 1]] if k < 3 else None
        by_head = teacher.hidden.weight[:, -2 * BANDS * all_channels[-1] :].reshape(len(teacher.hidden.weight), 2, -1, BANDS).square().sum((0, 1, 3))
        getattr(net, f"kept{k}").copy_(best(moves(outputs[first[k + 1] - 1]) * (reads(after.conv1.weight) + reads(after.shortcut.weight) if after else by_head), count))
    net.base.stem.weight.copy_(big.stem.weight[net.kept0])
    net.base.stem.bias.copy_(big.stem.bias[net.kept0])
    x, left = F.relu(net.base.stem(mel.transpose(1, 2)[:, None])), iter(net.base.blocks)
    patches = lambda x, stride=1: F.unfold(x, 3, padding=1, stride=stride)
    for k, (count, c) in enumerate(zip(blocks, channels)):
        kept, chosen = getattr(net, f"kept{k}"), [0, *range(all_blocks[k] - count + 1, all_blocks[k])]
        for i, following in zip(chosen, [*chosen[1:], all_blocks[k]]):
            at, to = first[k] + i, next(left)
            between = best(moves(F.relu(inside[at])) * reads(big.blocks[at].conv2.weight[kept]), c)
            weight, bias = solved([patches(x, 2 if to.shortcut else 1)], inside[at][:, between])
            to.conv1.weight.copy_(weight.reshape(to.conv1.weight.shape))
            to.conv1.bias.copy_(bias)
            h, goal = patches(F.relu(to.conv1(x))), sums[first[k] + following - 1][:, kept]
            weight, bias = solved([h, x[:, :, ::2, ::2].flatten(2)], goal) if to.shortcut else solved([h], goal - x)
            to.conv2.weight.copy_(weight[:, : h.shape[1]].reshape(to.conv2.weight.shape))
            to.conv2.bias.copy_(bias)
            if to.shortcut:
                to.shortcut.weight.copy_(weight[:, h.shape[1] :, None, None])
                to.shortcut.bias.zero_()
            x = to(x)
    return net


def clips(pack):
    import soundfile
    from pack import STEP

    out, shards = [], sorted(glob.glob(pack + "/train-*.json"))
    for shard in shards:
        raw = open(shard[:-5] + ".bin", "rb").read()
        for row in random.Random(os.path.basename(shard)).sample(json.load(open(shard)), -(-CLIPS // len(shards))):
            x = soundfile.read(io.BytesIO(raw[row["off"] : row["off"] + row["bytes"]]), dtype="int16")[0]
            out.append(torch.from_numpy(x.astype(np.float32) * STEP / 32768))
    return torch.stack(out[:CLIPS])


if __name__ == "__main__":
    torch.manual_seed(1)
    teacher, mel = restored(sys.argv[1]), prepared(Fronts(("mel",))(clips(sys.argv[2]))["mel"])[:, :FRAMES]
    net = fitted(teacher, mel, *(tuple(map(int, given.split(","))) for given in sys.argv[4:]))
    with torch.no_grad():
        print(f"away {net.away(net.stages({'mel': mel}), teacher.stages({'mel': mel})):.3f}")
    for name, kept in net.named_buffers():
        if name.startswith("kept") and isinstance(teacher, Slim):  # of the channels that the first Teacher had
            kept.copy_(teacher.get_buffer(name)[kept])
    torch.save({k: v.half() if v.is_floating_point() else v for k, v in net.state_dict().items() if k.startswith(("base.", "kept"))}, sys.argv[3])
