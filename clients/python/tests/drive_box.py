"""Drives a running box through the whole client, and checks what it answers. Run by test/python of the repository.

python drive_box.py URL CLIENT_ID CLIENT_SECRET FOLDER   (FOLDER/ada-1.wav … of three people)
"""
import sys
import wave
from pathlib import Path

import numpy as np

import vivavoce
from vivavoce import Decision, StatusCode, StatusError, contract

url, client_id, client_secret, folder = sys.argv[1:]


def samples_of(name):
    with wave.open(str(Path(folder) / f"{name}.wav")) as file:
        return np.frombuffer(file.readframes(file.getnframes()), dtype="<i2"), file.getframerate()


def refused(call, kind=StatusError):
    try:
        call()
    except kind as error:
        return error
    raise AssertionError("expected a refusal")


def encode_mulaw(samples):
    """G.711, by its definition: the decoder of the box is the other side of it."""
    magnitude = np.minimum(np.abs(samples.astype(np.int32)), 32635) + 132
    exponent = np.floor(np.log2(magnitude)).astype(np.int32) - 7
    mantissa = (magnitude >> (exponent + 3)) & 15
    return (~((np.where(samples < 0, 128, 0) | (exponent << 4) | mantissa)) & 255).astype(np.uint8)


with vivavoce.connect(url, client_id=client_id, client_secret=client_secret) as voice:
    # Files, 16-bit arrays and float arrays enroll alike.
    ada = voice.enroll("ada", [Path(folder) / f"ada-{i}.wav" for i in (1, 2, 3)])
    assert ada.trained and ada.reason == "TRAIN_OK" and ada.print_version == 1, ada
    assert [one.used_for_training for one in ada.segments] == [True, True, True], ada
    assert ada.missing_speech_seconds == 0
    bobs = [samples_of(f"bob-{i}") for i in (1, 2, 3)]
    bob = voice.enroll("bob", [samples for samples, _ in bobs], rate=bobs[0][1])
    assert bob.trained, bob
    mallory = [samples_of(f"mallory-{i}") for i in (1, 2, 3)]
    floats = [(samples / 32768).astype(np.float32) for samples, _ in mallory]
    assert voice.enroll_fraudster("mallory", floats, rate=mallory[0][1]).trained
    assert voice.people() == ["ada", "bob"] and voice.fraudsters() == ["mallory"]

    little = voice.enroll("carol", [Path(folder) / "ada-1.wav"])
    assert not little.trained and little.missing_recordings == 2, little
    assert voice.erase("carol") and not voice.erase("carol")

    # The same answer whatever form the samples had.
    spoken, rate = samples_of("ada-4")
    answers = [
        voice.verify("ada", Path(folder) / "ada-4.wav"),
        voice.verify("ada", (Path(folder) / "ada-4.wav").read_bytes()),
        voice.verify("ada", spoken, rate=rate),
        voice.verify("ada", (spoken / 32768).astype(np.float32), rate=rate),
        voice.verify("ada", np.stack([spoken, spoken], axis=1), rate=rate, channel=1),
        voice.verify("ada", spoken.astype("<i2").tobytes(), rate=rate, encoding="pcm16"),
    ]
    for answer in answers:
        assert answer.decision == Decision.AUTHENTIC == "AUTHENTIC", answer
        assert answer.score == answers[0].score and answer.ratio >= answer.threshold, answer
        assert answer.false_accept_rate > 0 and answer.net_speech_seconds > 1
        assert answer.result.audio_details.media_sampling_rate_hz == rate
    telephone = voice.verify("ada", encode_mulaw(spoken), rate=rate, encoding="mulaw")
    assert telephone.decision == Decision.AUTHENTIC, telephone
    assert voice.verify("bob", spoken, rate=rate).decision == Decision.NO_MATCH

    found = voice.identify(spoken, rate=rate)
    assert found.not_compared == ""
    assert found.person == "ada" and [one.name for one in found.candidates] == ["ada", "bob"], found
    # A hundred names are looked for in the list of all profiles.
    assert voice.identify(spoken, ["ada", "bob"] * 50, rate=rate).candidates == found.candidates
    nobody = refused(lambda: voice.identify(spoken, rate=rate, tag="mobile"))
    assert nobody.message == 'nobody is enrolled with the tag "mobile"; enroll somebody before identifying', nobody
    fraud, fraud_rate = samples_of("mallory-4")
    assert voice.identify(fraud, ["ada", "bob"], rate=fraud_rate).person is None
    assert voice.watch(fraud, rate=fraud_rate).decision == Decision.FRAUD
    calm = voice.analyze(spoken, persons=["ada"], fraudsters=True, rate=rate)
    assert calm.decision == Decision.AUTHENTIC and calm.likeliest_person == "ada", calm
    assert calm.likeliest_fraudster == "mallory" and calm.validity == "AUDIO_OK"

    # Refusals, in the contract's words.
    nobody = refused(lambda: voice.verify("nobody", spoken, rate=rate))
    assert nobody.code == StatusCode.NOT_FOUND and "nobody" in str(nobody), nobody
    text = Path(folder) / "text.wav"
    text.write_text("this is no audio")
    unread = refused(lambda: voice.verify("ada", text))
    assert unread.code == StatusCode.INVALID_REQUEST and "text.wav" in unread.message, unread
    assert unread.request_id and unread.field_violations[0].field == "chunk", vars(unread)
    for wrong, kind in [
        (lambda: voice.verify("ada", np.zeros(16000, dtype=np.int32), rate=16000), TypeError),
        (lambda: voice.verify("ada", np.full(16000, np.nan), rate=16000), ValueError),
        (lambda: voice.verify("ada", spoken.astype(np.float32), rate=rate), ValueError),
        (lambda: voice.verify("ada", spoken), ValueError),
        (lambda: voice.verify("ada", np.stack([spoken, spoken]), rate=rate), ValueError),
        (lambda: voice.verify("", spoken, rate=rate), ValueError),
        (lambda: voice.enroll("ada", []), ValueError),
        (lambda: voice.verify("ada", "no-such-file.wav"), FileNotFoundError),
    ]:
        assert str(refused(wrong, kind)) != ""

    # Every operation is there, typed; a query, a path variable and a body.
    scope = contract.Context(gk_scope_id=contract.UniqueId(value="default"))
    made = voice.operations.create_group(
        contract.CreateGroupRequest(
            context=scope,
            tag="staff",
            gk_voiceprint_profile_ids=contract.ListOfUniqueId(unique_ids=(contract.UniqueId(value=ada.profile_id),)),
        )
    )
    group = voice.operations.get_group(contract.GetGroupRequest(context=scope, gk_group_id=made.gk_group_id))
    assert group.tag == "staff" and group.gk_voiceprint_profile_ids.unique_ids[0].value == ada.profile_id
    voice.operations.delete_group(contract.DeleteGroupRequest(context=scope, gk_group_id=made.gk_group_id))
    gone = refused(lambda: voice.operations.get_group(contract.GetGroupRequest(context=scope, gk_group_id=made.gk_group_id)))
    assert gone.code == StatusCode.NOT_FOUND

    # A token that the box no longer takes is renewed, once.
    tokens = voice.operations._transport._tokens
    before = tokens.token()
    tokens._held = before[:-4] + "AAAA"
    assert voice.people() == ["ada", "bob"] and tokens.token() != before[:-4] + "AAAA"
    tokens._renew_at = 0
    held = tokens.token()
    assert voice.people() == ["ada", "bob"] and tokens.token() == held

wrong = refused(lambda: vivavoce.connect(url, client_id=client_id, client_secret="wrong").people())
assert wrong.code == StatusCode.NOT_AUTHORIZED and "/oauth2/token" in wrong.message, wrong
bare = refused(lambda: vivavoce.connect(url).people())
assert bare.code == StatusCode.NOT_AUTHORIZED, bare
away = refused(lambda: vivavoce.connect("http://127.0.0.1:1").people(), ConnectionError)
assert "cannot connect to http://127.0.0.1:1" in str(away), away
refused(lambda: vivavoce.connect("127.0.0.1:8080"), ValueError)
print("ok")
