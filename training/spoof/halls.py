"""python3 halls.py PACK MIRROR OUT: what voice activity is loosened by for the playback check (LOG.md 12): clips of the galleries that choices are made on,
as they are and out of a loudspeaker into simulated rooms and halls, and noise without speech (ESC-50). OUT/list.tsv as extract.py writes it."""
import json, os, random, sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import numpy as np, soundfile
import audio, corpora
from channel import image_rooms
from compare import packed
from extract import replayed


def main(pack, mirror, out):
    corpora.MIRROR = mirror
    chance, count = random.Random(5), 0
    rooms = [r / np.sqrt((r**2).sum()) for r in image_rooms(40, (0.5, 6.0), (0.4, 2.5), "cpu", 9).numpy()]
    os.makedirs(out, exist_ok=True)
    with open(out + "/list.tsv", "w") as table:

        def put(label, x):
            nonlocal count
            count += 1
            soundfile.write(f"{out}/{count}.wav", np.clip(x, -1, 1), audio.RATE, subtype="PCM_16")
            table.write(f"{count}.wav\t{label}\tsimulated\n")

        for label, _, x in packed(pack):
            if label == "genuine" and chance.random() < 0.4:
                put("genuine", x)
                put("replay", replayed(x, audio.RATE, chance.choice(rooms), chance))
        repo, _ = corpora.NOISE["esc50"]
        for data in corpora.blobs(repo, [sha for sha, _, _ in chance.sample(corpora.rows("esc50"), 60)]):
            x, rate = audio.read(data)
            put("noise", audio.resample(x, rate) * 0.3)


if __name__ == "__main__":
    main(*sys.argv[1:4])
