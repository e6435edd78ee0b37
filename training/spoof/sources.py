"""Which clip is genuine and which is an attack, and by what system: rows (split, label, system, key, read) of every source.

split: train, choose or dev. label: genuine, attack, or coded (recorded speech through a low-rate codec that a page compares with: neither). system: what APCER is reported by. A system or a lineage that is in DEV is never in train.
choose, said: galleries that state no licence, of vocoders and converters, and of what is made of text; nothing is trained on them, choices are made on them so that none is made on DEV.
"""
import glob, io, os, re, subprocess

LINEAGE = ("styletts2-page/styletts", "kokoro-dev", "freecodec-page/lyra")  # of kinds that were trained on: apart

AUDIO = re.compile(r"\.(wav|mp3|flac|ogg)$", re.I)
# A file that its page shows as recorded speech.
RECORDED = re.compile(r"(^|[/_.-])(gt|ground[_-]?truth|truth|real|ref|reference|3s_ref|orig|original|ori|source|target|prompt|prompts|human|natural|input|recording)s?([/_.0-9-]|$)", re.I)
# Systems and lineages of DEV that also show up on training pages.
DEV_LINEAGE = re.compile(r"styletts|flash|vall?e|yourtts|vits|naturalspeech|\bns[23]\b|clam|megatts|voicebox|freevc|vqmivc|pflow|encodec|dac", re.I)
# Pages of google/tacotron whose recordings are not plainly recorded speech, or of speakers that are met elsewhere.
UNSURE = re.compile(r"/(parrotron|speechssm|nat|semisupervised|speaker_adaptation|zero_shot_voice_transfer)/|atypical|vctk", re.I)

# Shown as recorded, but through a neural codec (LOG.md 28): what VALL-E's page calls ground truth of telephone calls, and one of its prompts.
DECODED = re.compile(r"LibriTTS/(GT/[345]|Ref/61-70970-0007)\.wav$|acoustic_maintenance/gt/[012]\.wav$")
HEARD = re.compile(r"/(joe|arctic|l2arctic)/")  # voices of rhasspy/piper-samples that training hears too, or of the speakers whom flite and festival were built from
FRAME = 320  # samples that Make-A-Voice's decoder makes at a time


# Pages of google/tacotron with numbers for names: the page itself says which are recorded.
NUMBERED = ("capacitron", "end_to_end_prosody_transfer", "location_relative_attention", "very_attentive_tacotron", "wave-tacotron")


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


def gallery(mirror, repo, split, system, skip=None, coded=None):
    """system(path) names the attack, or None for recorded speech; coded(path) is true where that went through a codec."""
    for sha, path in listing(mirror, repo):
        if skip and skip(path):
            continue
        name = system(path)
        label = "attack" if name else "coded" if coded and coded(path) else "genuine"
        yield split, label, name or repo.split("+")[1] + (" coded" if label == "coded" else ""), f"{repo}/{path}", lambda sha=sha: blob(mirror, repo, sha)


def recorded_on(page):
    """The files that a page shows as recorded: under the words Reference or Ground Truth, or first beside a sentence in a table with such a column."""
    page = re.sub(r"<(style|script).*?</\1>", " ", page, flags=re.S)
    parts = re.split(r"<[^>]*?[\"']([^\"'<>]*\.(?:wav|mp3))[\"'][^>]*>", page)
    column, found = False, set()
    for text, path in zip(parts[::2], parts[1::2]):
        text = re.sub(r"(<[^>]*>|&nbsp;|\s)+", " ", text).strip()
        column = "Text Ground Truth" in text or column and not re.search(r"\d\. [A-Z]", text)
        if re.search(r"(Reference|Ground Truth):?$", text) or column and len(text.split()) > 2:
            found.add(os.path.normpath(path))
    return found


def galleries(mirror):
    numbered = {}
    for page in NUMBERED:
        html = subprocess.run(["git", "--git-dir", git_dir(mirror, "google+tacotron"), "show", f"HEAD:publications/{page}/index.html"], capture_output=True, check=True).stdout.decode()
        numbered[page] = {f"publications/{page}/{path}" for path in recorded_on(html)}
    recorded = lambda p: RECORDED.search(p) or p in numbered.get(p.split("/")[1], ())
    # google/tacotron (Apache-2.0): pages that are wholly synthetic, or whose file names tell recorded speech apart.
    yield from gallery(mirror, "google+tacotron", "train", lambda p: "tacotron-" + p.split("/")[1][:24],
                       skip=lambda p: not p.startswith("publications/") or recorded(p) or DEV_LINEAGE.search(p) or "parrotron" in p or "speechssm" in p)
    # Recorded speech of the same pages: the same rooms, rates and hands as the attacks'.
    yield from gallery(mirror, "google+tacotron", "train", lambda p: None,
                       skip=lambda p: not p.startswith("publications/") or not recorded(p) or UNSURE.search(p) or "/png_bert/" in p and not re.search(r"recording|_gt\.wav$", p))
    # e1tts (CC0): its own systems; its recordings (other pages show them too) and the systems of DEV that it compares with are left out.
    yield from gallery(mirror, "e1tts+e1tts.github.io", "train", lambda p: "e1tts-" + p.split("/")[-2], skip=lambda p: DEV_LINEAGE.search(p) or p.split("/")[-2] in ("prompt", "gt", "ground_truth"))
    yield from undecided(mirror)
    yield from gallery(mirror, "styletts2+styletts2.github.io", "dev", lambda p: None if RECORDED.search(p) else "styletts2-page/" + ("styletts2" if "StyleTTS2" in p or "/" + p.split("/")[-2] in ("/Long", "/abstract", "/LibriTTS", "/LJSpeech") else p.split("/")[-2].lower()),
                       skip=lambda p: "Ablation" in p, coded=DECODED.search)
    yield from gallery(mirror, "flashspeech+flashspeech.github.io", "dev", lambda p: None if RECORDED.search(p) else "flashspeech-page/" + re.sub(r"demo_s.*|norm|ours", "flashspeech", p.split("/")[-2]), skip=lambda p: "editing" in p, coded=DECODED.search)
    yield from gallery(mirror, "OlaWod+FreeVC-demo", "dev", lambda p: None if p.startswith("data/wavs/") else "freevc-page/" + p.split("/")[1], skip=lambda p: p.startswith("data/sr/"))
    # Opus and Speex at the lowest rates, over recorded speech.
    line = re.compile("opus|speex").search
    yield from gallery(mirror, "exercise-book-yq+FreeCodec-Demo", "dev", lambda p: None if RECORDED.search(p) or line(p) else "freecodec-page/" + p.split("/")[1], coded=line)


def undecided(mirror):
    """The galleries that choices are made on: file names or folders tell recorded speech apart."""
    folder = lambda p: None if re.search(r"gt|ground.?truth", p.split("/")[-2], re.I) else p.split("/")[-2]
    system = lambda page, name: lambda p: name(p) and f"{page}/{name(p)}"
    music = re.compile(r"/(bass|dance|drum\d|guitar|hardcore|music|queen|spooky|vocal\d|wa)\.")
    yield from gallery(mirror, "bigvgan-demo+bigvgan-demo.github.io", "choose", system("bigvgan", folder), skip=music.search)
    yield from gallery(mirror, "jik876+hifi-gan-demo", "choose", system("hifigan", folder))
    yield from gallery(mirror, "diffwave-demo+diffwave-demo.github.io", "choose", system("diffwave", folder), skip=lambda p: "/ljspeech-" not in p)
    yield from gallery(mirror, "espnet+espnet-tts-sample", "choose", system("espnet", lambda p: None if "ground_truth" in p else p.split("/")[-2]))
    yield from gallery(mirror, "auspicious3000+autovc-demo", "choose", system("autovc", folder))
    spoken = re.compile(r"data/(tts|vc|valle|voicebox|speartts|emotion_new|cross_style|ablation_[^/]*)/\d+_([^/]*)\.wav$")
    said = lambda p: None if RECORDED.search(p) else spoken.search(p)[2]
    for row in gallery(mirror, "Make-A-Voice+Make-A-Voice.github.io", "choose", system("makeavoice", said), skip=lambda p: not spoken.search(p) or DEV_LINEAGE.search(p.split("_")[-1])):
        if row[1] == "attack" or not whole_frames(row[4]()):
            yield row


def said(mirror):
    """What is made of text, to choose by beside the galleries, most of which are copies of recordings (LOG.md 33): VITS voices of rhasspy/piper-samples as MP3, which state no licence."""
    some = re.compile(r"speaker_[0-5]\.mp3$").search  # of the hundreds that a few voices have
    yield from gallery(mirror, "rhasspy+piper-samples", "said", lambda p: "piper/" + p.split("/")[-2], skip=lambda p: not some(p) or HEARD.search(p))


def whole_frames(data):
    """A recording that may have come out of a decoder."""
    import soundfile

    return soundfile.info(io.BytesIO(data)).frames % FRAME == 0


def synthesized(folder):
    """The output of synthesize.py; kokoro-dev, silero and rhvoice are for measuring."""
    for path in sorted(glob.glob(f"{folder}/*/*/*.wav")):
        system, voice = path.split("/")[-3:-1]
        split = "dev" if system in ("kokoro-dev", "silero", "rhvoice") else "train"
        yield split, "attack", system, f"{system}/{voice}/{os.path.basename(path)}", lambda path=path: open(path, "rb").read()
