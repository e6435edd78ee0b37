"""The open speech corpora the model is adapted and measured on: where each lies in its public repository and how a path
names the speaker. `python3 corpora.py MIRROR` counts what is there.

MIRROR holds the repositories as git directories, OWNER+NAME/repo (bare) or OWNER+NAME/repo/.git. A row is (blob id, speaker,
session). TRAIN may become weights that ship (CC BY, CC BY-SA, CC0, MIT, public domain). DEV is measured on and never
trained on; of C-VAU, Harper Valley and Speech Commands it is half of the speakers, the other half stays unseen.
"""
import csv, hashlib, io, json, os, re, subprocess, sys
from collections import Counter
from functools import partial

HERE = os.path.dirname(os.path.abspath(__file__))
MIRROR = os.environ.get("MIRROR", "mirror")  # commands that take the folder as an argument set it before they read


def git_dir(repo):
    path = f"{MIRROR}/{repo}/repo"
    return path + "/.git" if os.path.isdir(path + "/.git") else path


def git(repo, *args):
    return subprocess.run(["git", "--git-dir", git_dir(repo), "-c", "core.quotePath=false", *args], capture_output=True, check=True).stdout.decode("utf8", "replace")


def files(repo, revision="HEAD"):
    for row in filter(None, git(repo, "ls-tree", "-r", "-z", revision).split("\0")):
        head, path = row.split("\t", 1)
        yield head.split()[2], path


def blobs(repo, ids):
    """The bytes of each blob, in order; None where the copy lacks it."""
    p = subprocess.Popen(["git", "--git-dir", git_dir(repo), "cat-file", "--batch"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        for i in ids:
            p.stdin.write((i + "\n").encode())
            p.stdin.flush()
            head = p.stdout.readline().split()
            yield p.stdout.read(int(head[2]) + 1)[:-1] if head[1:2] == [b"blob"] else None
    finally:  # also where the reader stops early
        p.stdin.close()
        p.stdout.close()
        p.wait()


def paths(repo, pattern, revision="HEAD"):
    """Rows whose path matches; group s is the speaker, group e the session or take."""
    rule = re.compile(pattern)
    for blob, path in files(repo, revision):
        if m := rule.search(path):
            yield blob, m["s"], m.groupdict().get("e") or ""


def table(repo, names, path_column, who_column, prefix=""):
    """Rows whose speaker stands in a tab-separated table of the repository."""
    who = {}
    for name in names:
        for row in csv.DictReader(io.StringIO(git(repo, "show", "HEAD:" + name)), delimiter="\t", quoting=csv.QUOTE_NONE):
            if row.get(who_column) and row.get(path_column):
                who[prefix + row[path_column]] = row[who_column][:16]
    for blob, path in files(repo):
        if path in who:
            yield blob, who[path], ""


def half(rows, salt):
    """The half of the speakers that may be seen while developing."""
    return (row for row in rows if int(hashlib.md5((salt + row[1]).encode()).hexdigest(), 16) % 2 == 0)


GSC, GSC_WORD = "thegtagamer+PICO-tinyML-benchmark", r"/(?P<s>[0-9a-f]{8})_nohash_(?P<e>\d+)\.wav$"


def gsc_train(repo):
    held_out = {s for _, s, _ in paths(GSC, GSC_WORD)}
    return (row for row in paths(repo, r"^data/\w+" + GSC_WORD) if row[1] not in held_out)


def wuw(repo):
    """Telephone calls, headerless 8 kHz mu-law. wuw-dev.json: call -> [speaker hash, group]; a group collects spellings
    that may be one person, so two of one group are never different speakers."""
    calls = json.load(open(HERE + "/wuw-dev.json"))
    for blob, path in files(repo):
        m = re.search(r"^calls/(\d+)/.*\.ulaw$", path)
        if m and m[1] in calls:
            yield blob, calls[m[1]][0], m[1]


def wuw_groups():
    return {speaker: group for speaker, group in json.load(open(HERE + "/wuw-dev.json")).values()}


def harper_valley(repo):
    """Contact-centre calls at 8 kHz, agent and caller on a file each; the other party's turns are silence there. Session = campaign,
    so other sessions lie days or months apart."""
    metadata = [(blob, path) for blob, path in files(repo) if path.startswith("data/metadata/")]
    who = {}
    for (_, path), data in zip(metadata, blobs(repo, (blob for blob, _ in metadata))):
        call = json.loads(data)
        for role in ("agent", "caller"):
            who[f"data/audio/{role}/{os.path.basename(path)[:-5]}.wav"] = f"hv{call[role]['speaker_id']}", str(call["session"])
    for blob, path in files(repo):
        if path in who:
            yield blob, *who[path]


def by(pattern, revision="HEAD"):
    return partial(paths, pattern=pattern, revision=revision)


TRAIN = {  # name: (repository, rows of it)                                                  speakers, kind, licence
    "audiomnist": ("soerenab+AudioMNIST", by(r"^data/(?P<s>\d\d)/\d_\d\d_(?P<e>\d+)\.wav$")),  # 60, digits, MIT
    "speechocean": ("jimbozhang+speechocean762", by(r"^WAVE/(?P<s>SPEAKER\d+)/(?P<e>\d+)\.WAV$")),  # 250, half children, CC BY 4.0
    "dspspeech": ("zhongyuchen+DSPSpeech-20", by(r"^speech_data/(?P<s>\d+)/.*-(?P<e>\d+)\.wav$")),  # 34, words, MIT
    "arabic": ("abdulkaderghandoura+arabic-speech-commands-dataset", by(r"^dataset/\w+/(?P<s>\d{8})_NO_(?P<e>\d+)\.wav$")),  # 30, words, CC BY 4.0
    "iban": ("sarahjuan+iban", by(r"^data/wav/(?P<s>\w+)/(?P<e>\w+)\.wav$")),  # 23, radio, CC BY-SA 2.0
    "malayalam": ("smc+msc", partial(table, names=["speech.tsv"], path_column="fileName", who_column="user")),  # 114, webm, CC BY-SA 3.0
    "persian": ("yasaman999+SR", partial(table, names=["other.tsv", "validated.tsv"], path_column="path", who_column="client_id", prefix="clips/")),  # 42, CC0
    "russian": ("TPODAvia+Speech_Dataset", by(r"^ruls_data/\w+/audio/(?P<s>\d+)/(?P<e>\d+)/.*\.wav$")),  # 5, books, public domain
    "alphanumeric": ("Sakshee5+alphanumeric-audio-dataset", by(r"^audio_data/(?P<e>[^/]+)/(?P<s>R_\w+)\.wav$")),  # 70, MIT
    "speechcommands": ("manashmandal+DeadSimpleSpeechRecognizer", gsc_train),  # 1564, 1 to 3 s each, CC BY 4.0
    "commonvoice-5": ("CherokeeLanguage+Cherokee-TTS", by(r"^data/comvoi_clean/mp3/(?P<s>[a-z]{2}-\d{2})-[a-z]{2}-(?P<e>\d{9})\.mp3$", "ef0825ad")),  # 84, five languages, CC0
    "hindi": ("aashishyadavally+Hindi-Speech-Corpus", by(r"^corpus/data/(?P<s>\w+)/(?P<e>.*)\.mp3$")),  # 3, MIT
    "librispeech-100": ("resemble-ai+Resemblyzer", by(r"librispeech_train-clean-100/(?P<s>\d+)-(?P<e>\d+-\d+)\.flac$")),  # 251, one utterance each, CC BY 4.0
    "librispeech-3": ("Walleclipse+Deep_Speaker-speaker_recognition_system", by(r"train-clean-100/(?P<s>\d+)/(?P<e>\d+)/\d+-\d+-\d+\.wav$")),  # 3, CC BY 4.0
}
DEV = {
    "cvau-dev": ("matthias-wolff+C-VAU", lambda repo: half(paths(repo, r"^common/sig/(?P<e>s\d\d|none/002)/(?:.*/)?(?P<s>[A-Z]{3})_[^/]*\.wav$"), "cvau")),  # sessions months apart, MIT
    "wuw-dev": ("wake-up-word+wuw-corpus-ii", wuw),  # telephone, several calls a speaker, CC BY-SA 4.0
    "hv-dev": ("cricketclub+gridspace-stanford-harper-valley", lambda repo: half(harper_valley(repo), "hv")),  # contact centre, 8 kHz, CC BY 4.0
    "gsc-dev": (GSC, lambda repo: half(paths(repo, GSC_WORD), "gsc")),  # one-second commands, CC BY 4.0
    "fsdd": ("Jakobovski+free-spoken-digit-dataset", by(r"^recordings/\d_(?P<s>\w+)_(?P<e>\d+)\.wav$")),  # 6, 8 kHz digits, CC BY-SA 4.0
}
NOISE = {"esc50": ("karolpiczak+ESC-50", by(r"^audio/(?P<e>.*)-(?P<s>\d+)\.wav$"))}  # CC BY-NC: mixed in while training, not shipped


def rows(name):
    repo, of = {**TRAIN, **DEV, **NOISE}[name]
    return list(of(repo))


if __name__ == "__main__":
    MIRROR = sys.argv[1]
    for group, sets in (("train", TRAIN), ("dev", DEV), ("noise", NOISE)):
        for name, (repo, _) in sets.items():
            if not os.path.isdir(git_dir(repo)):
                print(f"{group:6s} {name:16s} missing: {repo.replace('+', '/', 1)}")
                continue
            count = Counter(speaker for _, speaker, _ in rows(name))
            print(f"{group:6s} {name:16s} files {sum(count.values()):6d} speakers {len(count):5d}")
