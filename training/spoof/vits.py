"""Copies of genuine speech by a whole VITS: PyPI tiny-tts 0.2.0 (Apache-2.0), whose source archive also has the encoder that others leave out.

python3 vits.py export G.pth VITS.pt      G.pth: checkpoints/G.pth of the archive; what copies, as f16

It was made of one speaker at 44.1 kHz: of others it copies what is said and how, in a voice between the two. bank.py also tunes it on many voices.
"""
import sys
import torch, torch.nn as nn, torch.nn.functional as F

RATE, POINTS, HOP = 44100, 2048, 512
LAYERS, SIZE, FIRST = 16, 80, 256
UPS = ((8, 16), (8, 16), (2, 8), (2, 2), (2, 2))  # times, kernel
KERNELS, DILATIONS = (3, 7, 11), (1, 3, 5)


class Residual(nn.Module):
    def __init__(self, c, kernel):
        super().__init__()
        self.convs1 = nn.ModuleList(nn.Conv1d(c, c, kernel, 1, d * (kernel - 1) // 2, d) for d in DILATIONS)
        self.convs2 = nn.ModuleList(nn.Conv1d(c, c, kernel, 1, (kernel - 1) // 2) for _ in DILATIONS)

    def forward(self, x):
        for a, b in zip(self.convs1, self.convs2):
            x = x + b(F.leaky_relu(a(F.leaky_relu(x, 0.1)), 0.1))
        return x


class Vits(nn.Module):
    """Spectrum to a code with noise on it, and from there to samples."""

    def __init__(self, path=""):
        super().__init__()
        c = SIZE
        self.pre, self.proj, self.cond_layer = nn.Conv1d(POINTS // 2 + 1, c, 1), nn.Conv1d(c, 2 * c, 1), nn.Conv1d(c, 2 * c * LAYERS, 1)
        self.in_layers = nn.ModuleList(nn.Conv1d(c, 2 * c, 5, padding=2) for _ in range(LAYERS))
        self.res_skip_layers = nn.ModuleList(nn.Conv1d(c, 2 * c if i < LAYERS - 1 else c, 1) for i in range(LAYERS))
        self.speaker = nn.Parameter(torch.zeros(1, c, 1))
        self.conv_pre, self.cond = nn.Conv1d(c, FIRST, 7, padding=3), nn.Conv1d(c, FIRST, 1)
        self.ups = nn.ModuleList(nn.ConvTranspose1d(FIRST >> i, FIRST >> i + 1, k, u, (k - u) // 2) for i, (u, k) in enumerate(UPS))
        self.blocks = nn.ModuleList(Residual(FIRST >> i + 1, k) for i in range(len(UPS)) for k in KERNELS)
        self.conv_post = nn.Conv1d(FIRST >> len(UPS), 1, 7, padding=3, bias=False)
        self.register_buffer("window", torch.hann_window(POINTS))
        if path:
            self.load_state_dict({k: v.float() for k, v in torch.load(path, map_location="cpu").items()}, strict=False)

    def code(self, x):
        """-> mean and log deviation."""
        s = torch.stft(F.pad(x[:, None], 2 * ((POINTS - HOP) // 2,), mode="reflect")[:, 0], POINTS, HOP, POINTS, self.window, center=False, return_complex=True)
        x, out, given = self.pre(torch.sqrt(s.abs() ** 2 + 1e-6)), 0, self.cond_layer(self.speaker).chunk(LAYERS, 1)
        for i in range(LAYERS):
            a, b = (self.in_layers[i](x) + given[i]).chunk(2, 1)
            y = self.res_skip_layers[i](torch.tanh(a) * torch.sigmoid(b))
            x, out = (x + y[:, :SIZE], out + y[:, SIZE:]) if i < LAYERS - 1 else (x, out + y)
        return self.proj(out).chunk(2, 1)

    def forward(self, x, predicted=False):
        from vocoders import resampled

        samples = x.shape[1]
        x = resampled(x, samples * RATE // 16000)
        wanted = x.shape[1]
        mean, deviation = self.code(F.pad(x, (0, -wanted % HOP)))
        if predicted:  # as a prior gives it: smoother
            mean = mean + (0.2 + 0.5 * torch.rand(len(x), 1, 1, device=x.device)) * (F.avg_pool1d(mean, 3, 1, 1, count_include_pad=False) - mean)
        z = mean + torch.exp(deviation.detach()) * torch.randn_like(mean)
        with torch.autocast(x.device.type, torch.bfloat16, enabled=self.training and x.is_cuda):
            z = self.conv_pre(z) + self.cond(self.speaker)
            for i, up in enumerate(self.ups):
                z = up(F.leaky_relu(z, 0.1))
                z = sum(block(z) for block in self.blocks[3 * i : 3 * i + 3]) / 3
            y = torch.tanh(self.conv_post(F.leaky_relu(z)).float())[:, 0]
        return resampled(F.pad(y, (0, max(0, wanted - y.shape[1])))[:, :wanted], samples)


def export(path, out):
    plain, kept = {}, torch.load(path, map_location="cpu", weights_only=True)["model"]
    for name, value in kept.items():
        if not name.startswith(("enc_q.", "dec.")) or name.endswith("weight_g"):
            continue
        if name.endswith("weight_v"):
            value, name = value.float(), name.removesuffix("_v")
            value = value * kept[name + "_g"].float() / value.flatten(1).norm(dim=1).reshape(-1, 1, 1)
        plain[name.removeprefix("enc_q.").removeprefix("enc.").removeprefix("dec.").replace("resblocks.", "blocks.")] = value.half()
    plain["speaker"] = kept["emb_g.weight"].reshape(1, SIZE, 1).half()
    missing = Vits().load_state_dict(plain, strict=False)
    assert missing.missing_keys == ["window"] and not missing.unexpected_keys, missing
    torch.save(plain, out)


if __name__ == "__main__":
    export(*sys.argv[2:])
