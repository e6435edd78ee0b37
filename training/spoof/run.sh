#!/bin/bash
# bash run.sh FOLDER OUT SECONDS: the accelerator's part of the recipe in one go, within SECONDS. FOLDER: pack/ (pack.py's files), hifigan/, start.pt (widen.py's), CODECS' libraries in codecs/.
# Two runs side by side, with the copies blended in one way (b) and in several (a); their weights are copied to OUT as they come.
set -u
here=$(cd "$(dirname "$0")" && pwd) folder=$1 out=$2 seconds=$3 bank=$1/bank
export CODECS=$folder/codecs PYTHONUNBUFFERED=1 WIDER=1 OMP_NUM_THREADS=4
begun=$SECONDS
left() { echo $((seconds - (SECONDS - begun))); }
cd "$here"
mkdir -p "$out" "$bank" "$folder/made"
python3 bank.py decode "$folder/pack" "$bank"
# Vocoders of our own get 11 s of every 100 s that there are, each; all copies together must be done after 42.
for i in 0 1 2; do timeout $((seconds * 42 / 100)) python3 bank.py copy "$bank" "$folder/hifigan" --share $i/3 --seconds $((seconds * 11 / 100)) & done
wait
echo "copies: $(left) s left"
python3 bank.py code "$bank"
echo "coded: $(left) s left"
each=$(($(left) - seconds * 10 / 100))
train() { python3 train.py "$bank" "$folder/made/$1" synthetic --fronts linear+short --start "$folder/start.pt" --seconds $each --seed "$2" --options "$3"; }
train a 1 '{"rate":0.0012,"blend":0.5,"blends":["magnitudes","magnitudes","phases","bands"]}' &
a=$!
train b 2 '{"rate":0.0012}' &
b=$!
keep() { for file in "$folder"/made/*; do [ -e "$file" ] && cp "$file" "$out/$(basename "$file" | tr -d + | sed 's/-linearshort//')"; done; }
while kill -0 $a 2>/dev/null || kill -0 $b 2>/dev/null; do
  sleep 10
  keep
done
keep
echo "done: $(left) s left"
