"""Which clip is genuine and which is an attack, and by what system: rows (split, label, system, key, read) of every source.

split: train or dev. label: genuine or attack. system: what APCER is reported by. A system or a lineage that is in DEV is never in train.
"""
import glob, os, re, subprocess

AUDIO = re.compile(r"\.(wav|mp3|flac|ogg)$", re.I)
# A file that its page shows as recorded speech.
RECORDED = re.compile(r"(^|[/_.-])(gt|ground[_-]?truth|truth|real|ref|reference|3s_ref|orig|original|ori|source|target|prompt|prompts|human|natural|input|recording)s?([/_.0-9-]|$)", re.I)
# Systems and lineages of DEV that also show up on training pages.
DEV_LINEAGE = re.compile(r"styletts|flash|vall?e|yourtts|vits|naturalspeech|\bns[23]\b|clam|megatts|voicebox|freevc|vqmivc|pflow|encodec|dac", re.I)


def git_dir(mirror, repo):
    path = f"{mirror}/{repo}/repo"
    return path + "/.git" if os.path.isdir(path + "/.git") else path


def listing(mirror, repo):
    out = subprocess.run(["git", "--git-dir", git_dir(mirror, repo), "-c", "core.quotePath=false", "ls-tree", "-r", "-z", "HEAD"], capture_output=True, check=True).stdout.decode()
    for row in filter(None, out.split("\0")):
        head, path = row.split("\t", 1)
        if AUDIO.search(path):
            yield head.split()[2], path


def blob(mirror, repo, sha):
    return subprocess.run(["git", "--git-dir", git_dir(mirror, repo), "cat-file", "blob", sha], capture_output=True, check=True).stdout


def gallery(mirror, repo, split, system, skip=None):
    """system(path) names the attack, or None for recorded speech."""
    for sha, path in listing(mirror, repo):
        if skip and skip(path):
            continue
        name = system(path)
        yield split, "attack" if name else "genuine", name or repo.split("+")[1], f"{repo}/{path}", lambda sha=sha: blob(mirror, repo, sha)


def galleries(mirror):
    # google/tacotron (Apache-2.0): pages that are wholly synthetic, or whose file names tell recorded speech apart.
    yield from gallery(mirror, "google+tacotron", "train", lambda p: None if RECORDED.search(p) else "tacotron-" + p.split("/")[1][:24],
                       skip=lambda p: RECORDED.search(p) or DEV_LINEAGE.search(p) or not p.startswith("publications/") or "parrotron" in p or "speechssm" in p)
    # e1tts (CC0): its own systems; the systems of DEV that it compares with are left out.
    yield from gallery(mirror, "e1tts+e1tts.github.io", "train", lambda p: None if RECORDED.search(p) else "e1tts-" + p.split("/")[-2], skip=lambda p: DEV_LINEAGE.search(p))
    yield from gallery(mirror, "styletts2+styletts2.github.io", "dev", lambda p: None if RECORDED.search(p) else "styletts2-page/" + ("styletts2" if "StyleTTS2" in p or "/" + p.split("/")[-2] in ("/Long", "/abstract", "/LibriTTS", "/LJSpeech") else p.split("/")[-2].lower()),
                       skip=lambda p: "Ablation" in p)
    yield from gallery(mirror, "flashspeech+flashspeech.github.io", "dev", lambda p: None if RECORDED.search(p) else "flashspeech-page/" + re.sub(r"demo_s.*|norm|ours", "flashspeech", p.split("/")[-2]), skip=lambda p: "editing" in p)
    yield from gallery(mirror, "OlaWod+FreeVC-demo", "dev", lambda p: None if p.startswith("data/wavs/") else "freevc-page/" + p.split("/")[1], skip=lambda p: p.startswith("data/sr/"))
    # Opus and Speex are telephone codecs over recorded speech: genuine, as a caller's would be.
    yield from gallery(mirror, "exercise-book-yq+FreeCodec-Demo", "dev", lambda p: None if RECORDED.search(p) or "opus" in p or "speex" in p else "freecodec-page/" + p.split("/")[1])


def synthesized(folder):
    """The output of synthesize.py; kokoro-dev and silero are for measuring."""
    for path in sorted(glob.glob(f"{folder}/*/*/*.wav")):
        system, voice = path.split("/")[-3:-1]
        split = "dev" if system in ("kokoro-dev", "silero") else "train"
        yield split, "attack", system, f"{system}/{voice}/{os.path.basename(path)}", lambda path=path: open(path, "rb").read()
