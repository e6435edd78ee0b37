"""python3 mobile.py LEFT OUT: the recordings of extract.py's folder as mobile calls carry them (codec.telephone: AMR at 5.9 or 4.75 kbit/s, after GSM, or with lost frames, in turn), for
rates.py. CODECS: as ../codec.py says."""
import os, sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import numpy as np, soundfile
import audio, codec

LINES = ("amr2", "amr0", "after-gsm", "lossy")


def main(folder, out):
    np.random.seed(1)
    rows = open(folder + "/list.tsv").read().splitlines()
    for number, row in enumerate(rows):
        file = row.split("\t")[0]
        x = audio.resample(*soundfile.read(f"{folder}/{file}", dtype="float32"))
        os.makedirs(os.path.dirname(f"{out}/{file}"), exist_ok=True)
        soundfile.write(f"{out}/{file}", codec.half_rate(codec.telephone(LINES[number % len(LINES)])(x)), 8000, subtype="PCM_16")
    open(out + "/list.tsv", "w").write("\n".join(rows) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
