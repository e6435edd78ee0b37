#!/bin/bash
# The accelerator's part of the recipe. FOLDER: first/ (a shard of pack.py's), pack/ (all of them), hifigan/, codecs/ (libraries), start.pt (widen.py's), abc.pt (the mean of LOG.md 15's three runs).
# bash run.sh begin FOLDER SECONDS       simulates rooms and trains vocoders of our own on the shards that are there, while others are still on their way
# bash run.sh copies FOLDER SECONDS      copies and codecs; makers that take longer are cut off
# bash run.sh networks FOLDER OUT SECONDS    three runs of the wide network side by side, whose weights are copied to OUT as they come
# bash run.sh pretrained FOLDER OUT SECONDS  a teacher from FOLDER/resnet34.pt (../resnet.py's), and CAM++'s first half from FOLDER/campplus.pt (../published.py's) twice
# bash run.sh taught FOLDER OUT SECONDS      slim networks of six and of four blocks from FOLDER/six.pt and four.pt (slim.py's) with FOLDER/t-mel.pt as the teacher
# bash run.sh whisper FOLDER OUT SECONDS     another teacher from FOLDER/whisper.pt (whisper.py's), which brought nothing
# bash run.sh narrower FOLDER OUT SECONDS    slim networks on the same batches, from FOLDER/six.pt (that of `taught`), mid.pt and small.pt (slim.py's, of those of `taught`)
# bash run.sh sharper FOLDER OUT SECONDS     LOG.md 25: two teachers from FOLDER/resnet34.pt, and on from what ships (floats.py's FOLDER/six.pt and mid.pt, widen.py's narrow.pt); brought nothing
# bash run.sh after FOLDER OUT SECONDS       slim networks from those that `sharper` left in OUT, with its two teachers; brought nothing
# bash run.sh long FOLDER SECONDS        LOG.md 26: whole decoders, trained for so long beside each other; at once after `begin`
# bash run.sh more FOLDER                copies of what `long` trained, after `copies`, and codecs
# bash run.sh on FOLDER OUT SECONDS      the networks that ship (FOLDER/six.pt, mid.pt and narrow.pt) and LOG.md 25's teacher (b-mel.pt) learn on with all copies
# bash run.sh five FOLDER OUT SECONDS    LOG.md 27: slim networks of five blocks from FOLDER/early.pt and late.pt (slim.py's, of mid.pt), with FOLDER/six.pt twice and c-mel.pt (`on`) as teachers
# bash run.sh lines FOLDER OUT SECONDS   LOG.md 28: slim networks on from FOLDER/late.pt (`five`) and six.pt (`on`), with c-mel.pt (`on`) twice and b-mel.pt (`sharper`) as teachers
# bash run.sh rivals FOLDER OUT SECONDS  LOG.md 30: slim networks on from FOLDER/late.pt and six.pt (floats.py's, of what ships) against decoders that learn to pass; the narrow network on from FOLDER/narrow.pt, with mobile lines
# bash run.sh said FOLDER SECONDS        LOG.md 32: what says genuine clips again (respoken.py; FOLDER/whisper.pt: whisper.py's), beside `copies`; then what it said, attacks through decoders, and codecs
# bash run.sh spoken FOLDER OUT SECONDS  LOG.md 32: slim networks on from FOLDER/late.pt and six.pt (floats.py's, of what ships): a tells what was made of text whichever decoder it has, b all attacks
# bash run.sh voices FOLDER SECONDS      LOG.md 34: speech made of text (voices.py; FOLDER/models, jobs.npz), beside `copies`
# bash run.sh text FOLDER OUT SECONDS    LOG.md 34: the networks that ship learn on, more of what networks made of text: slim ones from FOLDER/late.pt and six.pt (floats.py's), the narrow one from FOLDER/narrow.pt (widen.py's)
#                                        three corpora of genuine speech are left out of every run, for calibration
set -u
here=$(cd "$(dirname "$0")" && pwd) what=$1 folder=$2 bank=$2/bank begun=$SECONDS
export CODECS=$folder/codecs PYTHONUNBUFFERED=1 OMP_NUM_THREADS=4
mkdir -p "$folder/made"
cd "$here"

# Processes beside each other share the accelerator better through NVIDIA's server, where there is one that works.
export CUDA_MPS_PIPE_DIRECTORY=$folder/mps CUDA_MPS_LOG_DIRECTORY=$folder/mps
shared() {
  mkdir -p "$folder/mps"
  nvidia-cuda-mps-control -d 2>/dev/null
  if timeout 40 python3 -c "import torch; torch.ones(8, device='cuda').sum().item()" && [ -e "$folder/mps/nvidia-cuda-mps-control.pid" ]; then
    echo "shared by MPS"
  else
    echo quit | timeout 5 nvidia-cuda-mps-control 2>/dev/null
    rm -rf "$folder/mps"
    echo "not shared by MPS"
  fi
}

begin() {
  shared
  python3 channel.py "$folder/rooms.pt" &
  python3 bank.py decode "$folder/first" "$folder/little"
  for i in 0 1 2; do python3 bank.py train "$folder/little" "$folder/hifigan" "$folder/nets" --share $i/3 --seconds $((10 * $1 / 21)) & done
  wait
  touch "$folder/begun"
  echo "begun: $((SECONDS - begun)) s"
}

copies() {
  python3 bank.py decode "$folder/pack" "$bank"
  until [ -e "$folder/begun" ]; do sleep 0.5; done
  echo "decoded: $((SECONDS - begun)) s"
  copying=()
  for i in 0 1 2; do
    timeout "$1" python3 bank.py copy "$bank" "$folder/hifigan" "$folder/nets" --share $i/3 &
    copying+=($!)
  done
  while kill -0 "${copying[@]}" 2>/dev/null; do python3 bank.py code "$bank"; sleep 1; done
  wait
  echo "copied: $((SECONDS - begun)) s"
  python3 bank.py code "$bank"
  echo "coded: $((SECONDS - begun)) s"
}

# train NAME KIND FRONTS SEED SECONDS OPTIONS …
train() { python3 train.py "$bank" "$folder/made/$1" "$2" --fronts "$3" --seed "$4" --seconds "$5" --options "$6" --without persian,dspspeech,arabic --rooms "$folder/rooms.pt" "${@:7}" & }

# Copies weights to the folder $1 as they come, until all runs are done.
kept() {
  mkdir -p "$1"
  while
    for file in "$folder"/made/*; do [ -e "$file" ] && cp -u "$file" "$1/$(basename "$file" | tr -d + | sed 's/-linearshort//')"; done
    [ -n "$(jobs -rp)" ]
  do sleep 5; done
  echo "done: $((SECONDS - begun)) s"
}

networks() {
  train d wide linear+short 4 "$2" '{"rate":0.0012,"blend":0.4,"blends":["magnitudes","magnitudes","magnitudes","bands","spliced"],"made":0.1,"line":0.25,"coded":0.5}' --start "$folder/abc.pt"
  train e wide linear+short 5 "$2" '{"rate":0.0012,"blend":0.3,"line":0.25,"coded":0.4}' --start "$folder/abc.pt"
  train f wide linear+short 6 "$2" '{"rate":0.002,"blend":0.4,"blends":["magnitudes","magnitudes","magnitudes","bands","spliced"],"made":0.1,"line":0.2,"coded":0.4}' --start "$folder/start.pt"
  kept "$1"
}

pretrained() {
  train t teacher mel 7 "$2" '{"rate":0.001,"line":0.25,"coded":0.4,"size":128}' --start "$folder/resnet34.pt"
  train q campplus mel 11 "$2" '{"rate":0.001,"line":0.25,"coded":0.4,"size":192}' --start "$folder/campplus.pt"
  train s campplus mel 14 "$2" '{"rate":0.001,"slow":0.5,"blend":0.4,"blends":["magnitudes","magnitudes","magnitudes","bands","spliced"],"made":0.1,"line":0.25,"coded":0.4,"size":192}' --start "$folder/campplus.pt"
  kept "$1"
}

taught() {
  options='{"rate":0.002,"slow":0.5,"line":0.25,"coded":0.4,"size":192,"drop":0.2,"labels":0.4,"hint":0.3}' # those of p in LOG.md 19 too; x: "labels":1.0, "hint":0, "away":0.5
  train six slim mel 21 "$2" "$options" --start "$folder/six.pt" --teachers "$folder/t-mel.pt"
  train four slim mel 22 "$2" "$options" --start "$folder/four.pt" --teachers "$folder/t-mel.pt"
  kept "$1"
}

whisper() {
  train w whisper mel 32 "$2" '{"rate":0.001,"line":0.25,"coded":0.4,"size":192}' --start "$folder/whisper.pt"
  kept "$1"
}

narrower() {
  options='{"rate":0.0015,"slow":0.5,"line":0.25,"coded":0.4,"size":192,"drop":0.2,"labels":0.4,"hint":0.3}'
  train s slim mel 33 "$2" "$options" --start "$folder/six.pt,$folder/mid.pt,$folder/small.pt" --teachers "$folder/t-mel.pt"
  kept "$1"
}

sharper() {
  train a teacher mel 41 "$2" '{"rate":0.001,"line":0.25,"coded":0.4,"size":128,"sharp":0.05}' --start "$folder/resnet34.pt"
  train b teacher mel 42 "$2" '{"rate":0.001,"blend":0.4,"blends":["magnitudes","magnitudes","magnitudes","bands","spliced"],"made":0.1,"line":0.25,"coded":0.4,"size":128}' --start "$folder/resnet34.pt"
  train s slim mel 43 "$2" '{"rate":0.001,"slow":0.5,"line":0.25,"coded":0.4,"size":192,"drop":0.2,"labels":0.6,"sharp":0.05}' --start "$folder/six.pt,$folder/mid.pt" --teachers "$folder/six.pt,$folder/six.pt,$folder/narrow.pt"
  kept "$1"
}

after() {
  train d slim mel 51 "$2" '{"rate":0.001,"slow":0.5,"line":0.25,"coded":0.4,"size":192,"drop":0.2,"labels":0.4,"hint":0.3,"away":0}' --start "$1/s-six.pt,$1/s-mid.pt" --teachers "$1/a-mel.pt,$1/b-mel.pt"
  kept "$1"
}

long() {
  for i in 0 1 2 3; do python3 bank.py train "$folder/little" "$folder/hifigan" "$folder/nets" --long --share $i/4 --seconds "$1" & done
  wait
  touch "$folder/longer"
  echo "long: $((SECONDS - begun)) s"
}

more() {
  until [ -e "$folder/longer" ]; do sleep 0.5; done
  for i in 0 1 2 3; do python3 bank.py copy "$bank" "$folder/hifigan" "$folder/nets" --long --share $i/4 --told "$folder/six.pt,$folder/mid.pt,$folder/narrow.pt" & done
  wait
  python3 bank.py code "$bank"
  echo "more: $((SECONDS - begun)) s"
}

on() {
  train m slim mel 61 "$2" '{"rate":0.001,"slow":0.5,"line":0.25,"coded":0.4,"size":192,"drop":0.2,"labels":0.6}' --start "$folder/six.pt,$folder/mid.pt" --teachers "$folder/b-mel.pt"
  train c teacher mel 62 "$2" '{"rate":0.0007,"slow":0.5,"line":0.25,"coded":0.4,"size":128}' --start "$folder/b-mel.pt"
  train o narrow linear+short 63 "$2" '{"rate":0.001,"line":0.2,"coded":0.3}' --start "$folder/narrow.pt"
  kept "$1"
}

five() {
  options='{"rate":0.0015,"slow":0.5,"line":0.25,"coded":0.4,"size":192,"drop":0.2,"labels":0.4,"hint":0.3}'
  train v slim mel 71 "$2" "$options" --start "$folder/early.pt,$folder/late.pt" --teachers "$folder/six.pt,$folder/six.pt,$folder/c-mel.pt"
  kept "$1"
}

lines() {
  options='{"rate":0.001,"slow":0.5,"line":0.25,"coded":0.45,"size":192,"drop":0.2,"labels":0.5,"hint":0.3,"away":0}'
  train w slim mel 81 "$2" "$options" --start "$folder/late.pt,$folder/six.pt" --teachers "$folder/c-mel.pt,$folder/c-mel.pt,$folder/b-mel.pt"
  kept "$1"
}

rivals() {
  train x slim mel 91 "$2" '{"rate":0.001,"slow":0.5,"line":0.25,"coded":0.4,"size":192,"drop":0.2,"labels":0.5,"made":0.5,"rivals":["spectral-24","istftnet","vits"]}' --start "$folder/late.pt,$folder/six.pt" --teachers "$folder/six.pt,$folder/late.pt"
  train n narrow linear+short 93 "$2" '{"rate":0.001,"line":0.25,"coded":0.45}' --start "$folder/narrow.pt"
  kept "$1"
}

said() {
  until [ -e "$bank/genuine.json" ] && [ -e "$folder/begun" ]; do sleep 0.5; done
  python3 respoken.py units "$bank" "$folder/whisper.pt"
  for kind in flow turns direct; do python3 respoken.py train "$bank" "$folder/hifigan" "$folder/nets" $kind --seconds "$1" & done
  wait
  python3 bank.py again "$bank" "$folder/hifigan" "$folder/nets" &
  python3 respoken.py speak "$bank" "$folder/hifigan" "$folder/nets" --told "$folder/six.pt,$folder/late.pt,$folder/narrow.pt"
  wait
  python3 bank.py code "$bank"
  echo "said: $((SECONDS - begun)) s"
}

spoken() {
  train a slim mel 101 "$2" '{"rate":0.0015,"slow":0.5,"line":0.25,"coded":0.4,"size":192,"drop":0.2,"labels":1.0,"blend":0,"spoken":true}' --start "$folder/late.pt,$folder/six.pt"
  train b slim mel 102 "$2" '{"rate":0.001,"slow":0.5,"line":0.25,"coded":0.4,"size":192,"drop":0.2,"labels":0.6,"blend":0.15}' --start "$folder/late.pt,$folder/six.pt" --teachers "$folder/six.pt,$folder/late.pt"
  kept "$1"
}

voices() {
  mkdir -p "$bank"
  for i in {0..11}; do PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True python3 voices.py bank "$folder/models" "$folder/jobs.npz" "$bank" "$1" $i/12 & done
  wait
  echo "voices: $((SECONDS - begun)) s"
}

text() {
  python3 bank.py code "$bank"
  train b slim mel 111 "$2" '{"rate":0.001,"slow":0.5,"line":0.25,"coded":0.4,"size":192,"drop":0.2,"labels":0.6,"blend":0.15,"said":0.5,"copies":0.4}' --start "$folder/late.pt,$folder/six.pt" --teachers "$folder/six.pt,$folder/late.pt"
  train c slim mel 113 "$2" '{"rate":0.0015,"slow":0.5,"line":0.25,"coded":0.4,"size":192,"drop":0.2,"labels":0.8,"blend":0.15,"said":0.7,"copies":0.3}' --start "$folder/late.pt" --teachers "$folder/late.pt"
  train n narrow linear+short 112 "$2" '{"rate":0.001,"line":0.25,"coded":0.4,"labels":0.6,"said":0.5,"copies":0.4}' --start "$folder/narrow.pt" --teachers "$folder/narrow.pt"
  kept "$1"
}

"$what" "${@:3}"
