"""People who are erased while another call is in progress. Run by test/python of the repository, after drive_box.py.

python erased_meanwhile.py URL CLIENT_ID CLIENT_SECRET FOLDER   (FOLDER/ada-1.wav … of three people; ada, bob and mallory are enrolled)
"""
import sys
from pathlib import Path

import vivavoce
from vivavoce import Decision, StatusCode, StatusError

url, client_id, client_secret, folder = sys.argv[1:]


def recordings(name):
    return [Path(folder) / f"{name}-{i}.wav" for i in (1, 2, 3)]


with vivavoce.connect(url, client_id=client_id, client_secret=client_secret) as voice:
    operations = voice.operations
    upload, delete = operations.add_media_segment, operations.delete_voiceprint_profile

    def erase_during_the_next_upload():
        """Somebody else erases dave and trudy after they were listed."""

        def erase_and_upload(request):
            operations.add_media_segment = upload
            voice.erase("dave")
            voice.erase_fraudster("trudy")
            return upload(request)

        voice.enroll("dave", recordings("mallory"))
        voice.enroll_fraudster("trudy", recordings("bob"))
        operations.add_media_segment = erase_and_upload

    ada, mallory = Path(folder) / "ada-4.wav", Path(folder) / "mallory-4.wav"
    erase_during_the_next_upload()
    found = voice.identify(ada)
    assert found.person == "ada" and [one.name for one in found.candidates] == ["ada", "bob"], found
    erase_during_the_next_upload()
    watched = voice.watch(mallory)
    assert watched.decision == Decision.FRAUD and watched.likeliest_fraudster == "mallory", watched
    # Somebody who was named must be there.
    erase_during_the_next_upload()
    try:
        voice.identify(ada, ["ada", "dave"])
        raise AssertionError("expected a refusal")
    except StatusError as error:
        assert error.code == StatusCode.NOT_FOUND, error

    # Two erasures at the same moment: nothing stays.
    def delete_after_somebody_else(request):
        delete(request)
        return delete(request)

    for tag in ("", "mobile"):
        voice.enroll("carol", recordings("ada")[:1], tag=tag)
    operations.delete_voiceprint_profile = delete_after_somebody_else
    assert voice.erase("carol") is False
    operations.delete_voiceprint_profile = delete
    assert voice.people() == ["ada", "bob"], voice.people()
print("ok")
