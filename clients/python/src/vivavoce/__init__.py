"""A client of a vivavoce box, and error rates of an evaluation."""
from .contract import AudioValidity, Decision, DecisionReason, Operations, StatusCode
from .transport import Credentials, FieldViolation, StatusError
from .voiceprints import (
    Analysis,
    Answer,
    Audio,
    Candidate,
    EnrolledSegment,
    Enrollment,
    Identification,
    Voiceprints,
    connect,
)

__all__ = [
    "Analysis",
    "Answer",
    "Audio",
    "AudioValidity",
    "Candidate",
    "Credentials",
    "Decision",
    "DecisionReason",
    "EnrolledSegment",
    "Enrollment",
    "FieldViolation",
    "Identification",
    "Operations",
    "StatusCode",
    "StatusError",
    "Voiceprints",
    "connect",
]
