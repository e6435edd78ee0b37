#!/bin/bash
# The accelerator's part of the recipe. FOLDER: first/ (a shard of pack.py's), pack/ (all of them), hifigan/, codecs/ (libraries), start.pt (widen.py's), abc.pt (the mean of LOG.md 15's three runs).
# bash run.sh begin FOLDER SECONDS       simulates rooms and trains vocoders of our own on the shards that are there, while others are still on their way
# bash run.sh rest FOLDER OUT SECONDS    the rest within SECONDS: copies, codecs, and three runs side by side, whose weights are copied to OUT as they come;
#                                        three corpora of genuine speech are left out, for calibration
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

rest() {
  out=$1 seconds=$2
  left() { echo $((seconds - (SECONDS - begun))); }
  keep() { for file in "$folder"/made/*; do [ -e "$file" ] && cp "$file" "$out/$(basename "$file" | tr -d + | sed 's/-linearshort//')"; done; }
  mkdir -p "$out"
  python3 bank.py decode "$folder/pack" "$bank"
  until [ -e "$folder/begun" ]; do sleep 0.5; done
  echo "decoded: $(left) s left"
  copying=()
  for i in 0 1 2; do
    timeout $((seconds * 20 / 100)) python3 bank.py copy "$bank" "$folder/hifigan" "$folder/nets" --share $i/3 &
    copying+=($!)
  done
  while kill -0 "${copying[@]}" 2>/dev/null; do python3 bank.py code "$bank"; sleep 1; done
  wait
  echo "copied: $(left) s left"
  python3 bank.py code "$bank"
  echo "coded: $(left) s left"
  each=$(($(left) - 45))
  train() { python3 train.py "$bank" "$folder/made/$1" wide --fronts linear+short --start "$folder/$3" --without persian,dspspeech,arabic --rooms "$folder/rooms.pt" --seconds $each --seed "$2" --options "$4" & }
  train d 4 abc.pt '{"rate":0.0012,"blend":0.4,"blends":["magnitudes","magnitudes","magnitudes","bands","spliced"],"made":0.1,"line":0.25,"coded":0.5}'
  train e 5 abc.pt '{"rate":0.0012,"blend":0.3,"line":0.25,"coded":0.4}'
  train f 6 start.pt '{"rate":0.002,"blend":0.4,"blends":["magnitudes","magnitudes","magnitudes","bands","spliced"],"made":0.1,"line":0.2,"coded":0.4}'
  while [ -n "$(jobs -rp)" ]; do
    sleep 5
    keep
  done
  keep
  echo "done: $(left) s left"
}

"$what" "${@:3}"
