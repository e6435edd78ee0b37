#!/bin/bash
# Makes the vectors in this folder: a synthesized sweep and tone, encoded and decoded again by ffmpeg.
set -euo pipefail
cd "$(dirname "$0")"
sound="aevalsrc=0.6*sin(2*PI*(200+900*t)*t)*(0.3+0.7*sin(9*t)^2)|0.9*sin(2*PI*440*t):s=8000:d=0.25"
ffmpeg -v error -y -f lavfi -i "$sound" -c:a pcm_s16le -f wav sound.wav
for channels in 1 2; do
  ffmpeg -v error -y -i sound.wav -af "pan=${channels}c|c0=c0$([ $channels = 2 ] && echo '|c1=c1')" -c:a adpcm_ima_wav -block_size 256 "ima-$channels.wav"
  ffmpeg -v error -y -i "ima-$channels.wav" -f s16le "ima-$channels.s16"
done
ffmpeg -v error -y -i sound.wav -ac 1 -c:a adpcm_ms ms.wav
printf '%b' "$(for i in $(seq 0 255); do printf '\\x%02x' "$i"; done)" > codes.raw
for law in alaw mulaw; do ffmpeg -v error -y -f "$law" -ar 8000 -ac 1 -i codes.raw -f s16le "$law.s16"; done
rm sound.wav codes.raw
