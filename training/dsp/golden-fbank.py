"""Golden vectors of the log-mel front end: kaldi-native-fbank on synthesized audio.

    pip install numpy kaldi-native-fbank==1.22.4 && python golden-fbank.py ../../test/dsp/golden

Writes fbank.i16 (one second at 16 kHz, 16-bit), fbank.f32 (98 frames of 80 bins) and fbank-hamming.f32 (the same under a Hamming window).
"""
import sys
import kaldi_native_fbank as knf, numpy as np

t = np.arange(16000) / 16000
rng = np.random.default_rng(20)
x = sum(np.sin(2 * np.pi * 130 * k * t * (1 + 0.05 * t) + k) / k for k in range(1, 40)) * (0.5 + 0.5 * np.sin(2 * np.pi * 3 * t)) * 0.1
x += rng.standard_normal(16000) * 10 ** (-1 - 4 * t)  # noise from -20 to -100 dB
x[:3200] += 0.2  # a constant offset
x[11200:12800] = 0  # digital silence: the floor
x[12800:14400] = np.where(np.sin(2 * np.pi * 440 * t[12800:14400]) > 0, 0.999, -0.999)  # full scale
samples = np.clip(np.round(x * 32768), -32768, 32767).astype(np.int16)

samples.astype("<i2").tofile(sys.argv[1] + "/fbank.i16")

for window, name in ("povey", "fbank.f32"), ("hamming", "fbank-hamming.f32"):
    options = knf.FbankOptions()
    options.frame_opts.dither = 0
    options.frame_opts.samp_freq = 16000
    options.frame_opts.window_type = window
    options.frame_opts.preemph_coeff = 0.97
    options.frame_opts.remove_dc_offset = True
    options.frame_opts.snip_edges = True
    options.mel_opts.num_bins = 80
    options.mel_opts.low_freq = 20
    options.mel_opts.high_freq = 8000
    options.use_energy = False
    bank = knf.OnlineFbank(options)
    bank.accept_waveform(16000, (samples / 32768).astype(np.float32).tolist())
    bank.input_finished()
    frames = np.stack([bank.get_frame(i) for i in range(bank.num_frames_ready)]).astype("<f4")
    assert frames.shape == (98, 80), frames.shape
    frames.tofile(sys.argv[1] + "/" + name)
    print(window, frames.min(), frames.max(), "at the floor:", (frames < -15.94).mean())
