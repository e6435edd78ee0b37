"""Does genuine speech of the claimed person help, in the engine and across calls (LOG.md 29)?

python3 beside.py list MIRROR OUT       clones beside their prompts and another recording of the same person (pages of FlashSpeech, StyleTTS 2 and FreeVC), and pairs of recordings of held-out voices
node beside.mjs MODEL.vvm CALLERS OUT   attack scores and embeddings of them and of CALLERS (bench:accuracy's recordings, speaker/session/file.wav), to OUT/scores.json
python3 beside.py table OUT             the table: score + slope · (-3 - the enrolled speech's score) + weight · (0.75 - cosine to it)
"""
import collections, json, os, random, re, sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import numpy as np, soundfile
import audio, corpora, sources
from extract import LEFT_OUT, SECONDS
from train import eer
from zlib import crc32

# page: (its files: case, system and number, the prompt's folder, the other recording's)
PAGES = {
    "flashspeech+flashspeech.github.io": (r"(?P<c>dataset|dataset_vctk|dataset_acoustic_maintenance)/(?P<s>\w+)/(?P<n>\d+)\.wav$", ("3s_ref", "ref"), ("truth", "gt")),
    "styletts2+styletts2.github.io": (r"wavs/(?P<c>LibriTTS|VCTK)/(?P<s>\w+)/(?P<n>[\w-]+)\.wav$", ("Ref",), ("GT",)),
}
MATCH = 0.5  # cosine, about what a match needs
CONVERTED = "OlaWod+FreeVC-demo", r"data/wavs/(?P<t>[MF]_\w+)\.wav$", r"data/(?P<s>[\w-]+)/\w2\w/[MF]_\w+?-(?P<t>[MF]_\w+?)(_gen)?\.wav$"


def clones(mirror):
    """-> person, enrolled, genuine or the system, page, samples, rate."""
    read = lambda repo, sha: audio.read(sources.blob(mirror, repo, sha))
    for repo, (pattern, prompts, others) in PAGES.items():
        cases = collections.defaultdict(dict)
        for sha, path in sources.listing(mirror, repo):
            if (m := re.match(pattern, path)) and not sources.DECODED.search(path):
                cases[m["c"], m["n"]][m["s"]] = sha
        for case, found in cases.items():
            if set(prompts) & set(found):
                for system, sha in found.items():
                    yield "/".join((repo, *case)), "enrolled" if system in prompts else "genuine" if system in others else system, repo, *read(repo, sha)
    repo, target, converted = CONVERTED
    for pattern, kind in ((target, "enrolled"), (converted, None)):
        for sha, path in sources.listing(mirror, repo):
            if m := re.match(pattern, path):
                yield f"{repo}/{m['t']}", kind or m["s"], repo, *read(repo, sha)


def pairs(name):
    """Two recordings of each held-out voice, short takes joined, of different sessions where it has some."""
    repo, _ = corpora.TRAIN[name]
    takes, chance = collections.defaultdict(lambda: collections.defaultdict(list)), random.Random(name)
    for sha, speaker, session in corpora.rows(name):
        if name in LEFT_OUT or crc32(f"{name}/{speaker}".encode()) % 10 == 0:
            takes[speaker][session].append(sha)
    for speaker in chance.sample(sorted(takes), min(60, len(takes))):
        sessions = [takes[speaker][s] for s in chance.sample(sorted(takes[speaker]), len(takes[speaker]))]
        parts = sessions if len(sessions) > 1 else [[sha] for sha in sessions[0]]
        for kind, half in (("enrolled", parts[: len(parts) // 2]), ("genuine", parts[len(parts) // 2 :])):
            read = [got for data in corpora.blobs(repo, sum(half, [])[:12]) if data and (got := audio.read(data))]
            if read:
                rate = read[-1][1]
                yield f"{name}/{speaker}", kind, name, np.concatenate([x for x, _ in read])[: SECONDS * rate], rate


def written(mirror, out):
    corpora.MIRROR, rows = mirror, []
    os.makedirs(out, exist_ok=True)
    for found in (clones(mirror), *map(pairs, corpora.TRAIN)):
        for person, kind, source, x, rate in found:
            rows.append(dict(file=f"{out}/{len(rows)}.wav", person=person, kind=kind, source=source))
            soundfile.write(rows[-1]["file"], np.clip(audio.resample(x, rate), -1, 1), audio.RATE, subtype="PCM_16")
    json.dump(rows, open(out + "/list.json", "w"))


def trials(rows):
    """-> source, genuine or the system, score, enrolled speech's score, cosine. A caller's first session is enrolled."""
    people = collections.defaultdict(list)
    for r in rows:
        if r["embedding"] and r["score"] is not None:
            people[r["person"]].append(r)
    for found in people.values():
        first = min((r["session"] for r in found if "session" in r), default=None)
        enrolled = [r for r in found if r["kind"] == "enrolled" or (first and r["session"] == first)]
        if enrolled:
            mean = np.mean([r["embedding"] for r in enrolled], 0)
            score = np.average([r["score"] for r in enrolled], weights=[r["seconds"] + 0.1 for r in enrolled])
            for r in found:
                if r not in enrolled:
                    yield r["source"], "genuine" if first else r["kind"], r["score"], score, float(np.dot(r["embedding"], mean) / np.linalg.norm(mean))


def table(out):
    found = list(trials(json.load(open(out + "/scores.json"))))
    source, kind = (np.array([t[i] for t in found]) for i in (0, 1))
    score, enrolled, cosine = (np.array([t[i] for t in found]) for i in (2, 3, 4))
    genuine, page = kind == "genuine", np.char.find(source, "+") >= 0
    for name in sorted(set(source)):
        if (at := (source == name) & genuine).sum() > 5:
            print(f"{name:36s} {at.sum():4d} genuine, correlation with the enrolled speech's score {np.corrcoef(score[at], enrolled[at])[0, 1]:.2f}, slope {np.polyfit(enrolled[at], score[at], 1)[0]:.2f}, cosine {np.median(cosine[at]):.2f}")
    held = genuine & np.isin(source, list(corpora.TRAIN))
    callers, both = genuine & ~page & ~held, page & np.isin(source, list(PAGES))
    print(f"slope over all held-out voices {np.polyfit(enrolled[held], score[held], 1)[0]:.2f}; {callers.sum()} of callers, {(page & ~genuine).sum()} clones")
    for slope in (0, 0.2, 0.44, 0.6):
        for weight in (0, 3, 6, 10):
            more = np.clip(slope * (-3 - enrolled) + weight * (0.75 - cosine), -2, 2)
            x = score + more
            rates = [100 * eer(s[both], (~genuine[both]).astype(float)) for s in (x, score + np.where(cosine > MATCH, more, 0))]
            at = {rate: np.quantile(x[callers], 1 - rate) for rate in (0.02, 0.06)}
            told = ", ".join(f"above what {100 * r:.0f} % of callers reach {100 * np.mean(x[page & ~genuine] > t):.0f} %" for r, t in at.items())
            print(f"slope {slope}, weight {weight}: EER of {(both & genuine).sum()} and {(both & ~genuine).sum()} clones {rates[0]:.1f} %, used only if they match {rates[1]:.1f} %; clones {told}")


if __name__ == "__main__":
    written(*sys.argv[2:]) if sys.argv[1] == "list" else table(sys.argv[2])
