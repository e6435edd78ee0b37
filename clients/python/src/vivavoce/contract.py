"""The contract in Python. Generated from proto/ by scripts/proto.mjs; do not edit."""
from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from .messages import ContractEnum, Message
from .transport import Transport


class AudioValidity(ContractEnum):
    """Whether audio is good enough to enroll or check."""
    UNSPECIFIED = "UNSPECIFIED", "AUDIO_VALIDITY_UNSPECIFIED"
    AUDIO_OK = "AUDIO_OK", "AUDIO_VALIDITY_AUDIO_OK"
    NOT_ENOUGH_SEGMENTS = "NOT_ENOUGH_SEGMENTS", "AUDIO_VALIDITY_NOT_ENOUGH_SEGMENTS"
    INVALID_AUDIO = "INVALID_AUDIO", "AUDIO_VALIDITY_INVALID_AUDIO"
    AUDIO_TOO_SHORT = "AUDIO_TOO_SHORT", "AUDIO_VALIDITY_AUDIO_TOO_SHORT"
    AUDIO_TOO_SOFT = "AUDIO_TOO_SOFT", "AUDIO_VALIDITY_AUDIO_TOO_SOFT"
    AUDIO_TOO_LOUD = "AUDIO_TOO_LOUD", "AUDIO_VALIDITY_AUDIO_TOO_LOUD"
    AUDIO_TOO_NOISY = "AUDIO_TOO_NOISY", "AUDIO_VALIDITY_AUDIO_TOO_NOISY"
    MULTIPLE_SPEAKERS_DETECTED = "MULTIPLE_SPEAKERS_DETECTED", "AUDIO_VALIDITY_MULTIPLE_SPEAKERS_DETECTED"
    INTERNAL_ERROR = "INTERNAL_ERROR", "AUDIO_VALIDITY_INTERNAL_ERROR"


class ConsentState(ContractEnum):
    UNSPECIFIED = "UNSPECIFIED", "CONSENT_STATE_UNSPECIFIED"
    GIVEN = "GIVEN", "CONSENT_STATE_GIVEN"
    WITHDRAWN = "WITHDRAWN", "CONSENT_STATE_WITHDRAWN"
    """Consent was withdrawn: the print is kept but not used."""


class ConsistencyDecision(ContractEnum):
    UNSPECIFIED = "UNSPECIFIED", "CONSISTENCY_DECISION_UNSPECIFIED"
    CONSISTENT = "CONSISTENT", "CONSISTENCY_DECISION_CONSISTENT"
    """Probably the same person."""
    INCONSISTENT = "INCONSISTENT", "CONSISTENCY_DECISION_INCONSISTENT"
    """Probably a different person."""


class Decision(ContractEnum):
    """The outcome of a check. Too little or poor speech gives UNCERTAIN, never a guess."""
    UNSPECIFIED = "UNSPECIFIED", "DECISION_UNSPECIFIED"
    AUTHENTIC = "AUTHENTIC", "DECISION_AUTHENTIC"
    """It is the person."""
    NO_MATCH = "NO_MATCH", "DECISION_NO_MATCH"
    """It is not the person, or none of the candidates."""
    FRAUD = "FRAUD", "DECISION_FRAUD"
    """A known fraudster, or an attack."""
    UNCERTAIN = "UNCERTAIN", "DECISION_UNCERTAIN"
    """The audio does not allow a decision; the reason says why."""
    FAILED = "FAILED", "DECISION_FAILED"
    """The check could not run."""
    NO_RISK_DETECTED = "NO_RISK_DETECTED", "DECISION_NO_RISK_DETECTED"
    """Neither a known fraudster nor an attack was detected."""


class DecisionReason(ContractEnum):
    UNSPECIFIED = "UNSPECIFIED", "DECISION_REASON_UNSPECIFIED"
    AUDIO_OK = "AUDIO_OK", "DECISION_REASON_AUDIO_OK"
    NOT_ENOUGH_SEGMENTS = "NOT_ENOUGH_SEGMENTS", "DECISION_REASON_NOT_ENOUGH_SEGMENTS"
    INVALID_AUDIO = "INVALID_AUDIO", "DECISION_REASON_INVALID_AUDIO"
    AUDIO_TOO_SHORT = "AUDIO_TOO_SHORT", "DECISION_REASON_AUDIO_TOO_SHORT"
    AUDIO_TOO_SOFT = "AUDIO_TOO_SOFT", "DECISION_REASON_AUDIO_TOO_SOFT"
    AUDIO_TOO_LOUD = "AUDIO_TOO_LOUD", "DECISION_REASON_AUDIO_TOO_LOUD"
    AUDIO_TOO_NOISY = "AUDIO_TOO_NOISY", "DECISION_REASON_AUDIO_TOO_NOISY"
    FRAUDSTER_INDICATION = "FRAUDSTER_INDICATION", "DECISION_REASON_FRAUDSTER_INDICATION"
    VOICEPRINT_MATCH = "VOICEPRINT_MATCH", "DECISION_REASON_VOICEPRINT_MATCH"
    VOICEPRINT_NO_MATCH = "VOICEPRINT_NO_MATCH", "DECISION_REASON_VOICEPRINT_NO_MATCH"
    LOW_RELIABILITY = "LOW_RELIABILITY", "DECISION_REASON_LOW_RELIABILITY"
    NO_RISK_DETECTED = "NO_RISK_DETECTED", "DECISION_REASON_NO_RISK_DETECTED"
    NO_SCORES = "NO_SCORES", "DECISION_REASON_NO_SCORES"
    INTERNAL_ERROR = "INTERNAL_ERROR", "DECISION_REASON_INTERNAL_ERROR"


class EnrollReason(ContractEnum):
    UNSPECIFIED = "UNSPECIFIED", "ENROLL_REASON_UNSPECIFIED"
    INTERNAL_ERROR = "INTERNAL_ERROR", "ENROLL_REASON_INTERNAL_ERROR"
    ENROLL_OK = "ENROLL_OK", "ENROLL_REASON_ENROLL_OK"
    TOO_SHORT = "TOO_SHORT", "ENROLL_REASON_TOO_SHORT"
    """Not enough speech."""
    MISSING_MODEL = "MISSING_MODEL", "ENROLL_REASON_MISSING_MODEL"
    """No valid audio model."""
    ALREADY_ADDED = "ALREADY_ADDED", "ENROLL_REASON_ALREADY_ADDED"
    WRONG_PRINT_TYPE = "WRONG_PRINT_TYPE", "ENROLL_REASON_WRONG_PRINT_TYPE"
    """The audio was processed for a different print type."""


class EnrollStatus(ContractEnum):
    UNSPECIFIED = "UNSPECIFIED", "ENROLL_STATUS_UNSPECIFIED"
    TRAIN_NOT_POSSIBLE = "TRAIN_NOT_POSSIBLE", "ENROLL_STATUS_TRAIN_NOT_POSSIBLE"
    """The minimum requirements are not met."""
    TRAIN_POSSIBLE = "TRAIN_POSSIBLE", "ENROLL_STATUS_TRAIN_POSSIBLE"
    """The minimum is met; more audio is recommended."""
    TRAIN_SUGGESTED = "TRAIN_SUGGESTED", "ENROLL_STATUS_TRAIN_SUGGESTED"
    """The optimal requirements are met."""
    FULL = "FULL", "ENROLL_STATUS_FULL"
    """Too many segments; none can be added."""


class OwnerType(ContractEnum):
    """Whose print it is."""
    UNSPECIFIED = "UNSPECIFIED", "OWNER_TYPE_UNSPECIFIED"
    PERSON = "PERSON", "OWNER_TYPE_PERSON"
    FRAUDSTER = "FRAUDSTER", "OWNER_TYPE_FRAUDSTER"


class RetrainingOutcome(ContractEnum):
    UNSPECIFIED = "UNSPECIFIED", "RETRAINING_OUTCOME_UNSPECIFIED"
    RETRAINED = "RETRAINED", "RETRAINING_OUTCOME_RETRAINED"
    """In a dry run: would be retrained."""
    NOT_NEEDED = "NOT_NEEDED", "RETRAINING_OUTCOME_NOT_NEEDED"
    """There is no template, or it is already of the model that the scope uses for new prints."""
    ENROLLMENT_NEEDED = "ENROLLMENT_NEEDED", "RETRAINING_OUTCOME_ENROLLMENT_NEEDED"
    """The audio was not kept: the owner must enroll again."""
    FAILED = "FAILED", "RETRAINING_OUTCOME_FAILED"
    WAITING_FOR_CALLS = "WAITING_FOR_CALLS", "RETRAINING_OUTCOME_WAITING_FOR_CALLS"
    """The audio was not kept, but the box has the template's model, which scores it. The print moves to the new model with calls that clearly match."""


class SessionType(ContractEnum):
    UNSPECIFIED = "UNSPECIFIED", "SESSION_TYPE_UNSPECIFIED"
    CALL_CENTER = "CALL_CENTER", "SESSION_TYPE_CALL_CENTER"
    IVR = "IVR", "SESSION_TYPE_IVR"
    DIGITAL = "DIGITAL", "SESSION_TYPE_DIGITAL"
    WEB = "WEB", "SESSION_TYPE_WEB"
    OTHER = "OTHER", "SESSION_TYPE_OTHER"


class TrainReason(ContractEnum):
    """Whether training succeeded, or why it failed."""
    UNSPECIFIED = "UNSPECIFIED", "TRAIN_REASON_UNSPECIFIED"
    TRAIN_OK = "TRAIN_OK", "TRAIN_REASON_TRAIN_OK"
    INCONSISTENCY = "INCONSISTENCY", "TRAIN_REASON_INCONSISTENCY"
    """The segments do not sound like one person."""
    NOT_READY_TO_TRAIN = "NOT_READY_TO_TRAIN", "TRAIN_REASON_NOT_READY_TO_TRAIN"
    """Too few segments, or too little speech."""
    INTERNAL_ERROR = "INTERNAL_ERROR", "TRAIN_REASON_INTERNAL_ERROR"


class TrainStatus(ContractEnum):
    UNSPECIFIED = "UNSPECIFIED", "TRAIN_STATUS_UNSPECIFIED"
    TRAINED = "TRAINED", "TRAIN_STATUS_TRAINED"
    FAILED = "FAILED", "TRAIN_STATUS_FAILED"


class VoiceprintProfileStatus(ContractEnum):
    UNSPECIFIED = "UNSPECIFIED", "VOICEPRINT_PROFILE_STATUS_UNSPECIFIED"
    NOT_TRAINED = "NOT_TRAINED", "VOICEPRINT_PROFILE_STATUS_NOT_TRAINED"
    BASIC_TRAINED = "BASIC_TRAINED", "VOICEPRINT_PROFILE_STATUS_BASIC_TRAINED"
    """Trained; can improve with more audio."""
    OPTIMAL_TRAINED = "OPTIMAL_TRAINED", "VOICEPRINT_PROFILE_STATUS_OPTIMAL_TRAINED"


class VoiceprintProfilesStatusJobState(ContractEnum):
    UNSPECIFIED = "UNSPECIFIED", "VOICEPRINT_PROFILES_STATUS_JOB_STATE_UNSPECIFIED"
    PENDING = "PENDING", "VOICEPRINT_PROFILES_STATUS_JOB_STATE_PENDING"
    """Created, not started."""
    STARTED = "STARTED", "VOICEPRINT_PROFILES_STATUS_JOB_STATE_STARTED"
    """Running."""
    COMPLETED = "COMPLETED", "VOICEPRINT_PROFILES_STATUS_JOB_STATE_COMPLETED"
    """Results published."""
    FAILED = "FAILED", "VOICEPRINT_PROFILES_STATUS_JOB_STATE_FAILED"


class AudioDecisionReason(ContractEnum):
    UNSPECIFIED = "UNSPECIFIED", "DECISION_REASON_UNSPECIFIED"
    AUDIO_OK = "AUDIO_OK", "DECISION_REASON_AUDIO_OK"
    NOT_ENOUGH_SEGMENTS = "NOT_ENOUGH_SEGMENTS", "DECISION_REASON_NOT_ENOUGH_SEGMENTS"
    INVALID_AUDIO = "INVALID_AUDIO", "DECISION_REASON_INVALID_AUDIO"
    AUDIO_TOO_SHORT = "AUDIO_TOO_SHORT", "DECISION_REASON_AUDIO_TOO_SHORT"
    AUDIO_TOO_SOFT = "AUDIO_TOO_SOFT", "DECISION_REASON_AUDIO_TOO_SOFT"
    AUDIO_TOO_LOUD = "AUDIO_TOO_LOUD", "DECISION_REASON_AUDIO_TOO_LOUD"
    AUDIO_TOO_NOISY = "AUDIO_TOO_NOISY", "DECISION_REASON_AUDIO_TOO_NOISY"
    SYNTHETIC_SPEECH_DETECTED = "SYNTHETIC_SPEECH_DETECTED", "DECISION_REASON_SYNTHETIC_SPEECH_DETECTED"
    PLAYBACK_INDICATION = "PLAYBACK_INDICATION", "DECISION_REASON_PLAYBACK_INDICATION"
    LOW_RELIABILITY = "LOW_RELIABILITY", "DECISION_REASON_LOW_RELIABILITY"
    INTERNAL_ERROR = "INTERNAL_ERROR", "DECISION_REASON_INTERNAL_ERROR"


class StatusCode(ContractEnum):
    UNSPECIFIED = "UNSPECIFIED", "UNSPECIFIED"
    OK = "OK", "OK"
    BAD_REQUEST = "BAD_REQUEST", "BAD_REQUEST"
    INVALID_REQUEST = "INVALID_REQUEST", "INVALID_REQUEST"
    CANCELLED = "CANCELLED", "CANCELLED"
    DEADLINE_EXCEEDED = "DEADLINE_EXCEEDED", "DEADLINE_EXCEEDED"
    NOT_AUTHORIZED = "NOT_AUTHORIZED", "NOT_AUTHORIZED"
    PERMISSION_DENIED = "PERMISSION_DENIED", "PERMISSION_DENIED"
    NOT_FOUND = "NOT_FOUND", "NOT_FOUND"
    ALREADY_EXISTS = "ALREADY_EXISTS", "ALREADY_EXISTS"
    NOT_IMPLEMENTED = "NOT_IMPLEMENTED", "NOT_IMPLEMENTED"
    TOO_LARGE = "TOO_LARGE", "TOO_LARGE"
    BUSY = "BUSY", "BUSY"
    OBSOLETE = "OBSOLETE", "OBSOLETE"
    RATE_EXCEEDED = "RATE_EXCEEDED", "RATE_EXCEEDED"
    QUOTA_EXCEEDED = "QUOTA_EXCEEDED", "QUOTA_EXCEEDED"
    INTERNAL_ERROR = "INTERNAL_ERROR", "INTERNAL_ERROR"


@dataclass(frozen=True)
class AddGroupMembersRequest(Message):
    context: Context | None = None
    gk_group_id: UniqueId | None = None
    gk_voiceprint_profile_ids: ListOfUniqueId | None = None
    gk_owner_ids: ListOfUniqueId | None = None


@dataclass(frozen=True)
class AddGroupMembersResponse(Message):
    status: Status | None = None


@dataclass(frozen=True)
class AddMediaSegmentRequest(Message):
    context: Context | None = None
    encoding: str = ""
    """`wav` or empty for a file with a header; `pcm16`, `alaw` or `mulaw` for headerless bytes, with `rate` and `channels`."""
    rate: int = 0
    """Samples per second; for headerless bytes only."""
    channels: int = 0
    """For headerless bytes only; 1 by default."""
    chunk: bytes = b""
    """A WAV file, or samples."""


@dataclass(frozen=True)
class AddMediaSegmentResponse(Message):
    status: Status | None = None
    gk_media_segment_id: UniqueId | None = None


@dataclass(frozen=True)
class AnalyzeAudioAuthenticationResult(Message):
    top_person_voiceprint_details: VoiceprintDetails | None = None
    authentication_score: AuthenticationScore | None = None
    decision: Decision = Decision.UNSPECIFIED
    reason: DecisionReason = DecisionReason.UNSPECIFIED
    number_of_persons_prints: int = 0
    """Valid prints used."""
    risk_engine_result: RiskEngineResult | None = None
    number_of_matches: int = 0
    """An addition to the contract, as in IdentifyResult."""


@dataclass(frozen=True)
class AnalyzeAudioFraudDetectionResult(Message):
    top_fraudster_voiceprint_details: VoiceprintDetails | None = None
    fraud_detection_score: FraudDetectionScore | None = None
    decision: Decision = Decision.UNSPECIFIED
    reason: DecisionReason = DecisionReason.UNSPECIFIED
    number_of_fraudsters_prints: int = 0
    """Valid prints used."""
    risk_engine_result: RiskEngineResult | None = None
    number_of_matches: int = 0
    """An addition to the contract, as in IdentifyResult."""


@dataclass(frozen=True)
class AnalyzeAudioRequest(Message):
    context: Context | None = None
    gk_media_segment_id: UniqueId | None = None
    gk_processed_audio_id: UniqueId | None = None
    gk_voiceprint_profile_ids: ListOfUniqueId | None = None
    group: UniqueIdAndTag | None = None
    watchlist: UniqueIdAndTag | None = None
    channel_selector: AudioChannelSelector | None = None
    ignore_checkpoints: bool = False
    """Processes the whole audio, even if a checkpoint has already decided."""
    syntheticSpeechDetectionParameters: SyntheticSpeechDetectionParameters | None = None
    """Setting it enables Synthetic Speech Detection."""
    channelPlaybackDetectionParameters: ChannelPlaybackDetectionParameters | None = None
    """Setting it enables Channel Playback Detection."""


@dataclass(frozen=True)
class AnalyzeAudioResponse(Message):
    status: Status | None = None
    result: AnalyzeAudioResult | None = None


@dataclass(frozen=True)
class AnalyzeAudioResult(Message):
    gk_media_segment_id: UniqueId | None = None
    gk_processed_audio_id: UniqueId | None = None
    decision: Decision = Decision.UNSPECIFIED
    """General decision over all factors: match found or fraud detected."""
    reason: DecisionReason = DecisionReason.UNSPECIFIED
    voice_class_score: float | None = None
    risk_engine_global_result: RiskEngineResult | None = None
    validity: AudioValidity = AudioValidity.UNSPECIFIED
    authentication_result: AnalyzeAudioAuthenticationResult | None = None
    """Parts that were not asked for, or have no targets, are absent."""
    fraud_detection_result: AnalyzeAudioFraudDetectionResult | None = None
    synthetic_speech_result: SyntheticSpeechDetectionResult | None = None
    channel_playback_result: ChannelPlaybackDetectionResult | None = None
    gk_calibration_model_revision_id: UniqueId | None = None
    audio_details: AudioDetails | None = None
    voiceprint_results: tuple[VoiceprintResult, ...] = ()
    calibration_model_details: CalibrationModelDetails | None = None


@dataclass(frozen=True)
class AudioChannelSelector(Message):
    """The channel to use of a recording with several. If absent, all are mixed."""
    channel: int | None = None
    """0 mixes all channels, 1 is the first, and so on."""
    voice_separation: VoiceSeparation | None = None
    """Two people share the channel: their voices are separated, and only the caller is checked. Not for enrollment."""


@dataclass(frozen=True)
class AudioDetails(Message):
    """Measurements of a recording."""
    gk_media_segment_id: UniqueId | None = None
    gk_processed_audio_id: UniqueId | None = None
    gross_audio: timedelta | None = None
    """Total duration."""
    net_audio: timedelta | None = None
    """Duration of speech."""
    snr_db: float | None = None
    """Signal-to-noise ratio of the speech, dB."""
    speech_level: float | None = None
    """Active speech level, dBov."""
    saturation_level: float | None = None
    """Saturated samples per minute."""
    media_number_of_channels: int | None = None
    media_sampling_rate_hz: int | None = None
    selected_channel: AudioChannelSelector | None = None
    processed_audio_sampling_rate_hz: int | None = None
    number_of_detected_speakers: int | None = None
    separated_audio: SeparatedAudio | None = None
    """Present if voices were separated: net_audio is then only the caller's."""


@dataclass(frozen=True)
class AudioProcessingResult(Message):
    gk_media_segment_id: UniqueId | None = None
    """The audio used for enrollment; differs from the input when only a subset is used."""
    gk_processed_audio_id: UniqueId | None = None
    validity: AudioValidity = AudioValidity.UNSPECIFIED
    audio_details: AudioDetails | None = None
    voice_class_score: float | None = None
    """0 to 100"""
    gk_calibration_model_revision_id: UniqueId | None = None


@dataclass(frozen=True)
class AuthenticationScore(Message):
    biometric_score: float | None = None
    ratio: float | None = None
    """Calibrated log-likelihood ratio (natural logarithm) of "same person" to "different people"."""
    threshold: float | None = None
    """The lowest ratio that is a match in this call, for audio of this quality."""
    false_accept_rate: float | None = None
    """The target of the threshold: the share of calls by somebody else in which at least one candidate reaches it."""


@dataclass(frozen=True)
class CalibrationModelDetails(Message):
    gk_calibration_model_revision_id: UniqueId | None = None
    calibration_model_id: str = ""


@dataclass(frozen=True)
class CheckWatchlistConsistencyRequest(Message):
    context: Context | None = None
    gk_voiceprint_profile_ids: ListOfUniqueId | None = None
    watchlist: UniqueIdAndTag | None = None


@dataclass(frozen=True)
class CheckWatchlistConsistencyResponse(Message):
    status: Status | None = None
    total_number_of_compatible_prints: int | None = None
    total_number_of_incompatible_prints: int | None = None
    incompatible_prints: tuple[IncompatiblePrintDetails, ...] = ()
    """Truncated when there are too many."""
    required_calibration_model: CalibrationModelDetails | None = None


@dataclass(frozen=True)
class Consent(Message):
    state: ConsentState = ConsentState.UNSPECIFIED
    time: datetime | None = None
    """When it was recorded here."""
    reference: str = ""
    """Where it is in your own records."""


@dataclass(frozen=True)
class Context(Message):
    """The context of a call. All four fields are mandatory, unless the operation says that it needs fewer."""
    gk_engagement_id: UniqueId | None = None
    """Returned by StartEngagement or StartSession."""
    gk_session_id: UniqueId | None = None
    """Returned by StartSession."""
    gk_scope_id: UniqueId | None = None
    """The biometric scope: voices are compared only within a scope. The token must be valid for it."""
    configset_id: str = ""
    """The configuration set: `ivr-text-dependent`, `text-independent`, or one that you defined."""


@dataclass(frozen=True)
class CreateGroupRequest(Message):
    context: Context | None = None
    tag: str = ""
    """A name of your choice."""
    gk_voiceprint_profile_ids: ListOfUniqueId | None = None
    gk_owner_ids: ListOfUniqueId | None = None
    """Owners whose prints all belong to it, including prints created later."""


@dataclass(frozen=True)
class CreateGroupResponse(Message):
    status: Status | None = None
    gk_group_id: UniqueId | None = None


@dataclass(frozen=True)
class CreateVoiceprintProfileRequest(Message):
    context: Context | None = None
    person_id: str | None = None
    """Your id of the person."""
    fraudster_id: str | None = None
    """Your id of the fraudster."""
    profile_tag: str = ""
    """Which of the owner's prints; empty if there is only one."""


@dataclass(frozen=True)
class CreateVoiceprintProfileResponse(Message):
    status: Status | None = None
    gk_voiceprint_profile_id: UniqueId | None = None
    gk_owner_id: UniqueId | None = None


@dataclass(frozen=True)
class DeleteGroupRequest(Message):
    context: Context | None = None
    gk_group_id: UniqueId | None = None


@dataclass(frozen=True)
class DeleteGroupResponse(Message):
    status: Status | None = None


@dataclass(frozen=True)
class DeleteVoiceprintProfileRequest(Message):
    context: Context | None = None
    gk_voiceprint_profile_id: UniqueId | None = None


@dataclass(frozen=True)
class DeleteVoiceprintProfileResponse(Message):
    status: Status | None = None


@dataclass(frozen=True)
class DetectKnownFraudstersRequest(Message):
    context: Context | None = None
    gk_media_segment_id: UniqueId | None = None
    gk_processed_audio_id: UniqueId | None = None
    gk_voiceprint_profile_ids: ListOfUniqueId | None = None
    watchlist: UniqueIdAndTag | None = None
    channel_selector: AudioChannelSelector | None = None
    ignore_checkpoints: bool = False
    """Processes the whole audio, even if a checkpoint has already decided."""


@dataclass(frozen=True)
class DetectKnownFraudstersResponse(Message):
    status: Status | None = None
    result: DetectKnownFraudstersResult | None = None


@dataclass(frozen=True)
class DetectKnownFraudstersResult(Message):
    voiceprint_details: VoiceprintDetails | None = None
    gk_media_segment_id: UniqueId | None = None
    gk_processed_audio_id: UniqueId | None = None
    decision: Decision = Decision.UNSPECIFIED
    reason: DecisionReason = DecisionReason.UNSPECIFIED
    voice_class_score: float | None = None
    risk_engine_result: RiskEngineResult | None = None
    gk_calibration_model_revision_id: UniqueId | None = None
    audio_details: AudioDetails | None = None
    fraud_detection_score: FraudDetectionScore | None = None
    voiceprint_results: tuple[VoiceprintResult, ...] = ()
    """Best first. With more than 256 candidates, only the best are listed."""
    number_of_prints: int = 0
    """Valid prints used."""
    calibration_model_details: CalibrationModelDetails | None = None
    """An addition to the contract: the calibration used for the decision."""
    number_of_matches: int = 0
    """An addition to the contract, as in IdentifyResult."""


@dataclass(frozen=True)
class EnrollRequest(Message):
    context: Context | None = None
    gk_voiceprint_profile_id: UniqueId | None = None
    gk_processed_audio_id: UniqueId | None = None
    """Returned by ProcessAudio."""


@dataclass(frozen=True)
class EnrollResponse(Message):
    status: Status | None = None
    result: EnrollResult | None = None


@dataclass(frozen=True)
class EnrollResult(Message):
    enroll_status: EnrollStatus = EnrollStatus.UNSPECIFIED
    voiceprint_details: VoiceprintDetails | None = None
    enrolled: bool | None = None
    reason: EnrollReason = EnrollReason.UNSPECIFIED
    audio_details: AudioDetails | None = None


@dataclass(frozen=True)
class EnrollmentSegmentDetails(Message):
    gk_media_segment_id: UniqueId | None = None
    gk_processed_audio_id: UniqueId | None = None
    consistency_decision: ConsistencyDecision = ConsistencyDecision.UNSPECIFIED
    consistency_score: float | None = None
    used_for_train: bool | None = None
    audio_details: AudioDetails | None = None
    voice_class_score: float | None = None
    gk_calibration_model_revision_id: UniqueId | None = None


@dataclass(frozen=True)
class ExportVoiceprintProfileRequest(Message):
    context: Context | None = None
    gk_voiceprint_profile_id: UniqueId | None = None


@dataclass(frozen=True)
class ExportVoiceprintProfileResponse(Message):
    status: Status | None = None
    profile: bytes = b""
    """JSON, UTF-8."""


@dataclass(frozen=True)
class FraudDetectionScore(Message):
    """Same as AuthenticationScore."""
    biometric_score: float | None = None
    ratio: float | None = None
    threshold: float | None = None
    false_accept_rate: float | None = None


@dataclass(frozen=True)
class GetEnrollStatusRequest(Message):
    context: Context | None = None
    gk_voiceprint_profile_id: UniqueId | None = None


@dataclass(frozen=True)
class GetEnrollStatusResponse(Message):
    status: Status | None = None
    result: EnrollStatus = EnrollStatus.UNSPECIFIED
    is_trained: bool | None = None
    """Trained and usable for verification."""


@dataclass(frozen=True)
class GetGkVoiceprintProfileIdRequest(Message):
    context: Context | None = None
    person_id: str | None = None
    """Your id of the person."""
    fraudster_id: str | None = None
    """Your id of the fraudster."""
    profile_tag: str = ""
    """Which of the owner's prints; empty if there is only one."""


@dataclass(frozen=True)
class GetGkVoiceprintProfileIdResponse(Message):
    status: Status | None = None
    gk_voiceprint_profile_id: UniqueId | None = None
    gk_owner_id: UniqueId | None = None


@dataclass(frozen=True)
class GetGroupRequest(Message):
    context: Context | None = None
    gk_group_id: UniqueId | None = None


@dataclass(frozen=True)
class GetGroupResponse(Message):
    status: Status | None = None
    gk_group_id: UniqueId | None = None
    tag: str = ""
    gk_voiceprint_profile_ids: ListOfUniqueId | None = None
    gk_owner_ids: ListOfUniqueId | None = None


@dataclass(frozen=True)
class GetSessionDecisionRequest(Message):
    context: Context | None = None


@dataclass(frozen=True)
class GetSessionDecisionResponse(Message):
    status: Status | None = None
    result: SessionDecisionResult | None = None


@dataclass(frozen=True)
class GetVoiceprintProfilesRetrainingJobRequest(Message):
    context: Context | None = None
    gk_job_id: UniqueId | None = None


@dataclass(frozen=True)
class GetVoiceprintProfilesRetrainingJobResponse(Message):
    status: Status | None = None
    state: VoiceprintProfilesStatusJobState = VoiceprintProfilesStatusJobState.UNSPECIFIED
    progress: float = 0.0
    """0..1"""
    profiles: tuple[VoiceprintProfileRetraining, ...] = ()


@dataclass(frozen=True)
class GetVoiceprintProfilesStatusJobRequest(Message):
    context: Context | None = None
    gk_job_id: UniqueId | None = None


@dataclass(frozen=True)
class GetVoiceprintProfilesStatusJobResponse(Message):
    status: Status | None = None
    state: VoiceprintProfilesStatusJobState = VoiceprintProfilesStatusJobState.UNSPECIFIED
    progress: float = 0.0
    """0..1"""
    profiles: tuple[VoiceprintProfileStatusDetails, ...] = ()
    """Published when the job is completed."""


@dataclass(frozen=True)
class GroupSummary(Message):
    gk_group_id: UniqueId | None = None
    tag: str = ""
    number_of_profiles: int = 0
    """Profiles that were added by their id."""
    number_of_owners: int = 0
    """Owners whose prints all belong to it."""


@dataclass(frozen=True)
class IdentifyRequest(Message):
    context: Context | None = None
    gk_media_segment_id: UniqueId | None = None
    gk_processed_audio_id: UniqueId | None = None
    gk_voiceprint_profile_ids: ListOfUniqueId | None = None
    group: UniqueIdAndTag | None = None
    channel_selector: AudioChannelSelector | None = None
    ignore_checkpoints: bool = False
    """Processes the whole audio, even if a checkpoint has already decided."""


@dataclass(frozen=True)
class IdentifyResponse(Message):
    status: Status | None = None
    result: IdentifyResult | None = None


@dataclass(frozen=True)
class IdentifyResult(Message):
    voiceprint_details: VoiceprintDetails | None = None
    gk_media_segment_id: UniqueId | None = None
    gk_processed_audio_id: UniqueId | None = None
    decision: Decision = Decision.UNSPECIFIED
    reason: DecisionReason = DecisionReason.UNSPECIFIED
    voice_class_score: float | None = None
    risk_engine_result: RiskEngineResult | None = None
    gk_calibration_model_revision_id: UniqueId | None = None
    audio_details: AudioDetails | None = None
    authentication_score: AuthenticationScore | None = None
    voiceprint_results: tuple[VoiceprintResult, ...] = ()
    """Best first. With more than 256 candidates, only the best are listed."""
    calibration_model_details: CalibrationModelDetails | None = None
    """An addition to the contract: the calibration used for the decision."""
    number_of_matches: int = 0
    """An addition to the contract: how many owners have prints in `voiceprint_results` that reach their threshold. Several: they sound alike, or one person is enrolled under several names."""


@dataclass(frozen=True)
class ImportVoiceprintProfileRequest(Message):
    context: Context | None = None
    profile: bytes = b""
    """As returned by ExportVoiceprintProfile."""
    owner_id: str = ""
    """External id of the owner here; if empty, the exported one."""


@dataclass(frozen=True)
class ImportVoiceprintProfileResponse(Message):
    status: Status | None = None
    gk_voiceprint_profile_id: UniqueId | None = None
    gk_owner_id: UniqueId | None = None


@dataclass(frozen=True)
class IncompatiblePrintDetails(Message):
    voiceprint_details: VoiceprintDetails | None = None
    incompatible_calibration_model: CalibrationModelDetails | None = None
    fraudster_id: str = ""
    """Owner of the print."""


@dataclass(frozen=True)
class ListGroupsRequest(Message):
    context: Context | None = None
    page_size: int = 0
    """1 to 500; 100 by default."""
    page_token: str = ""
    """`next_page_token` of the previous answer; empty for the first page."""


@dataclass(frozen=True)
class ListGroupsResponse(Message):
    status: Status | None = None
    groups: tuple[GroupSummary, ...] = ()
    next_page_token: str = ""
    """Empty on the last page."""


@dataclass(frozen=True)
class ListOfUniqueId(Message):
    """A list of ids."""
    unique_ids: tuple[UniqueId, ...] = ()


@dataclass(frozen=True)
class ListVoiceprintProfilesRequest(Message):
    context: Context | None = None
    owner_type: OwnerType = OwnerType.UNSPECIFIED
    """Only persons or only fraudsters; both if unspecified."""
    page_size: int = 0
    """1 to 500; 100 by default."""
    page_token: str = ""
    """`next_page_token` of the previous answer; empty for the first page."""
    owner_id: str = ""
    """External id of the owner whose profiles are listed; if empty, those of all owners."""


@dataclass(frozen=True)
class ListVoiceprintProfilesResponse(Message):
    status: Status | None = None
    profiles: tuple[VoiceprintProfileSummary, ...] = ()
    next_page_token: str = ""
    """Empty on the last page."""


@dataclass(frozen=True)
class ProcessAudioRequest(Message):
    context: Context | None = None
    gk_media_segment_id: UniqueId | None = None
    """New media segment."""
    gk_processed_audio_id: UniqueId | None = None
    """Segment to re-process."""
    is_for_enrollment: bool | None = None
    """If true, processing stops at the maximum speech of the configuration set; otherwise all available audio is used."""
    channel_selector: AudioChannelSelector | None = None


@dataclass(frozen=True)
class ProcessAudioResponse(Message):
    status: Status | None = None
    result: AudioProcessingResult | None = None


@dataclass(frozen=True)
class RemoveGroupMembersRequest(Message):
    context: Context | None = None
    gk_group_id: UniqueId | None = None
    gk_voiceprint_profile_ids: ListOfUniqueId | None = None
    gk_owner_ids: ListOfUniqueId | None = None


@dataclass(frozen=True)
class RemoveGroupMembersResponse(Message):
    status: Status | None = None


@dataclass(frozen=True)
class RiskEngineResult(Message):
    """Absent if there is no score."""
    risk: int | None = None
    """0..1000, higher is riskier."""
    reliability: int | None = None
    """0..100"""


@dataclass(frozen=True)
class SeparatedAudio(Message):
    other_net_audio: timedelta | None = None
    """Net speech that is not the caller's."""
    is_agent_recognized: bool = False
    """The other voice was recognized by the agent's print."""


@dataclass(frozen=True)
class SessionCheck(Message):
    operation: str = ""
    """The operation's name: `Verify`, `Identify`, `DetectKnownFraudsters`, `AnalyzeAudio`."""
    time: datetime | None = None
    decision: Decision = Decision.UNSPECIFIED
    reason: DecisionReason = DecisionReason.UNSPECIFIED
    risk_engine_result: RiskEngineResult | None = None
    gk_voiceprint_profile_id: UniqueId | None = None
    """The print with the best score."""


@dataclass(frozen=True)
class SessionDecisionResult(Message):
    decision: Decision = Decision.UNSPECIFIED
    reason: DecisionReason = DecisionReason.UNSPECIFIED
    risk_engine_result: RiskEngineResult | None = None
    checks: tuple[SessionCheck, ...] = ()
    """The checks that the decision is based on, oldest first."""
    person_id: str = ""
    """External id of the person that the decision is about: the claimed person or, without a claim, the person compared last (in a live call with two channels, the person of the first party)."""
    gk_voiceprint_profile_id: UniqueId | None = None
    """The print that the decision about the person is based on."""
    matched_person_id: str = ""
    """External id of the person whose print the latest comparison matched; empty if there was no match."""


@dataclass(frozen=True)
class SetVoiceprintProfileConsentRequest(Message):
    context: Context | None = None
    gk_voiceprint_profile_id: UniqueId | None = None
    state: ConsentState = ConsentState.UNSPECIFIED
    """Given or withdrawn."""
    reference: str = ""
    """Where it is in your own records, such as the id of a signed form."""


@dataclass(frozen=True)
class SetVoiceprintProfileConsentResponse(Message):
    status: Status | None = None
    consent: Consent | None = None


@dataclass(frozen=True)
class StartEngagementRequest(Message):
    context: Context | None = None
    external_id: str = ""
    """Your own id, for your records."""
    custom_data: str = ""
    """Your own data, stored unchanged."""


@dataclass(frozen=True)
class StartEngagementResponse(Message):
    status: Status | None = None
    gk_engagement_id: UniqueId | None = None


@dataclass(frozen=True)
class StartSessionRequest(Message):
    context: Context | None = None
    """If the context names no engagement, one is created."""
    session_type: SessionType = SessionType.UNSPECIFIED
    """Where the voice comes from."""
    external_id: str = ""
    """Your own id, for your records."""
    claimed_person_id: str = ""
    """External id of the person that the caller claims to be."""


@dataclass(frozen=True)
class StartSessionResponse(Message):
    status: Status | None = None
    gk_session_id: UniqueId | None = None
    gk_engagement_id: UniqueId | None = None


@dataclass(frozen=True)
class StartVoiceprintProfilesRetrainingJobRequest(Message):
    context: Context | None = None
    gk_voiceprint_profile_ids: ListOfUniqueId | None = None
    """If absent, all profiles of the scope."""
    dry_run: bool = False
    """Only reports the outcome for each profile; changes nothing."""


@dataclass(frozen=True)
class StartVoiceprintProfilesRetrainingJobResponse(Message):
    status: Status | None = None
    gk_job_id: UniqueId | None = None
    state: VoiceprintProfilesStatusJobState = VoiceprintProfilesStatusJobState.UNSPECIFIED


@dataclass(frozen=True)
class StartVoiceprintProfilesStatusJobRequest(Message):
    context: Context | None = None
    gk_voiceprint_profile_ids: ListOfUniqueId | None = None
    """If absent, all profiles of the scope."""


@dataclass(frozen=True)
class StartVoiceprintProfilesStatusJobResponse(Message):
    status: Status | None = None
    gk_job_id: UniqueId | None = None
    state: VoiceprintProfilesStatusJobState = VoiceprintProfilesStatusJobState.UNSPECIFIED


@dataclass(frozen=True)
class StopEngagementRequest(Message):
    context: Context | None = None


@dataclass(frozen=True)
class StopEngagementResponse(Message):
    status: Status | None = None
    gk_engagement_id: UniqueId | None = None


@dataclass(frozen=True)
class StopSessionRequest(Message):
    context: Context | None = None


@dataclass(frozen=True)
class StopSessionResponse(Message):
    status: Status | None = None
    gk_session_id: UniqueId | None = None


@dataclass(frozen=True)
class TrainRequest(Message):
    context: Context | None = None
    gk_voiceprint_profile_id: UniqueId | None = None
    only_if_changed: bool = False
    """An addition to the contract: if the enrollment segments give the template that the print has, it stays, with its version and added calls."""


@dataclass(frozen=True)
class TrainResponse(Message):
    status: Status | None = None
    result: TrainResult | None = None


@dataclass(frozen=True)
class TrainResult(Message):
    train_status: TrainStatus = TrainStatus.UNSPECIFIED
    reason: TrainReason = TrainReason.UNSPECIFIED
    status: VoiceprintProfileStatus = VoiceprintProfileStatus.UNSPECIFIED
    voiceprint_details: VoiceprintDetails | None = None
    gk_calibration_model_revision_id: UniqueId | None = None
    total_segments: int | None = None
    total_valid_segments: int | None = None
    min_segments_required: int | None = None
    total_net_audio: timedelta | None = None
    min_net_audio_required: timedelta | None = None
    enrollment_segments_details: tuple[EnrollmentSegmentDetails, ...] = ()


@dataclass(frozen=True)
class UniqueId(Message):
    """An id created by the box, or your own where the field says so."""
    value: str = ""


@dataclass(frozen=True)
class UniqueIdAndTag(Message):
    """A group or watchlist, and the tag of the prints to use."""
    unique_id: UniqueId | None = None
    tag: str = ""
    """Only prints with this tag are used; all if empty."""


@dataclass(frozen=True)
class VerifyRequest(Message):
    context: Context | None = None
    gk_media_segment_id: UniqueId | None = None
    gk_processed_audio_id: UniqueId | None = None
    gk_voiceprint_profile_id: UniqueId | None = None
    channel_selector: AudioChannelSelector | None = None
    ignore_checkpoints: bool = False
    """Processes the whole audio, even if a checkpoint has already decided."""


@dataclass(frozen=True)
class VerifyResponse(Message):
    status: Status | None = None
    result: VerifyResult | None = None


@dataclass(frozen=True)
class VerifyResult(Message):
    voiceprint_details: VoiceprintDetails | None = None
    gk_media_segment_id: UniqueId | None = None
    gk_processed_audio_id: UniqueId | None = None
    decision: Decision = Decision.UNSPECIFIED
    reason: DecisionReason = DecisionReason.UNSPECIFIED
    voice_class_score: float | None = None
    risk_engine_result: RiskEngineResult | None = None
    gk_calibration_model_revision_id: UniqueId | None = None
    audio_details: AudioDetails | None = None
    authentication_score: AuthenticationScore | None = None
    calibration_model_details: CalibrationModelDetails | None = None
    """An addition to the contract: the calibration used for the decision."""


@dataclass(frozen=True)
class VoiceSeparation(Message):
    gk_agent_voiceprint_profile_id: UniqueId | None = None
    """Profile of the person on the other end, such as the agent; the other voice is then the caller's. Without it, either voice may be the caller's: the better match counts, with the thresholds for two candidates."""


@dataclass(frozen=True)
class VoiceprintDetails(Message):
    gk_voiceprint_profile_id: UniqueId | None = None
    gk_owner_id: UniqueId | None = None
    """The person or fraudster who owns the print."""
    owner_type: OwnerType = OwnerType.UNSPECIFIED
    profile_tag: str = ""
    """Label of one of the owner's prints."""
    print_version: int | None = None
    """Incremented each time a print is retrained, or grows by a call."""


@dataclass(frozen=True)
class VoiceprintProfileRetraining(Message):
    gk_voiceprint_profile_id: UniqueId | None = None
    outcome: RetrainingOutcome = RetrainingOutcome.UNSPECIFIED
    print_version: int | None = None


@dataclass(frozen=True)
class VoiceprintProfileStatusDetails(Message):
    gk_voiceprint_profile_id: UniqueId | None = None
    status: VoiceprintProfileStatus = VoiceprintProfileStatus.UNSPECIFIED
    """UNSPECIFIED if what is stored of it is damaged: restore it from a backup, or delete it."""
    print_version: int | None = None
    gk_calibration_model_revision_id: UniqueId | None = None
    """The model of the template; absent until the profile is trained."""
    total_segments: int | None = None
    total_net_audio: timedelta | None = None
    is_obsolete: bool = False
    """The template is of another model and is not scored."""
    consent: Consent | None = None
    """Absent if none was recorded."""


@dataclass(frozen=True)
class VoiceprintProfileSummary(Message):
    gk_voiceprint_profile_id: UniqueId | None = None
    gk_owner_id: UniqueId | None = None
    owner_type: OwnerType = OwnerType.UNSPECIFIED
    owner_id: str = ""
    """External id of the owner."""
    profile_tag: str = ""
    status: VoiceprintProfileStatus = VoiceprintProfileStatus.UNSPECIFIED
    """UNSPECIFIED if what is stored of it is damaged: restore it from a backup, or delete it. owner_id may then be empty."""
    print_version: int = 0
    consent: Consent | None = None
    """Absent if none was recorded."""


@dataclass(frozen=True)
class VoiceprintResult(Message):
    gk_voiceprint_profile_id: UniqueId | None = None
    authentication_score: AuthenticationScore | None = None
    fraud_detection_score: FraudDetectionScore | None = None


@dataclass(frozen=True)
class AttackStretch(Message):
    """A part of the audio, a few seconds long. Times are from the beginning of the audio; the score is on the same scale as that of the whole audio."""
    start: timedelta | None = None
    end: timedelta | None = None
    score: float | None = None


@dataclass(frozen=True)
class ChannelPlaybackDetectionParameters(Message):
    """Its presence enables the check."""


@dataclass(frozen=True)
class ChannelPlaybackDetectionResult(Message):
    decision: Decision = Decision.UNSPECIFIED
    reason: AudioDecisionReason = AudioDecisionReason.UNSPECIFIED
    risk_engine_result: RiskEngineResult | None = None
    score: float | None = None
    gk_calibration_model_revision_id: UniqueId | None = None
    strongest_stretch: AttackStretch | None = None
    """Where the audio sounds most like an attack."""


@dataclass(frozen=True)
class SyntheticSpeechDetectionParameters(Message):
    """Its presence enables the check."""


@dataclass(frozen=True)
class SyntheticSpeechDetectionResult(Message):
    decision: Decision = Decision.UNSPECIFIED
    reason: AudioDecisionReason = AudioDecisionReason.UNSPECIFIED
    risk_engine_result: RiskEngineResult | None = None
    score: float | None = None
    gk_calibration_model_revision_id: UniqueId | None = None
    strongest_stretch: AttackStretch | None = None
    """Where the audio sounds most like an attack."""


@dataclass(frozen=True)
class FieldViolation(Message):
    field: str = ""
    """Path of the field in the request, with the names of the contract, such as `context.gk_session_id`."""
    violation: str = ""
    """The kind of error, for programs: `missing`, `malformed`, `unknown`, …"""
    message: str = ""


@dataclass(frozen=True)
class Status(Message):
    """The general status of an operation. A business outcome (too short, no match) is not an error; it is in the result."""
    status_code: StatusCode = StatusCode.UNSPECIFIED
    message: str = ""
    request_id: str = ""
    field_violations: tuple[FieldViolation, ...] = ()
    retry_after: timedelta | None = None


class Operations:
    """Every operation of the contract that HTTP can carry. A refusal is raised as a StatusError; a business outcome is an answer."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def process_audio(self, request: ProcessAudioRequest) -> ProcessAudioResponse:
        """Processes audio, checks its quality, and creates an audio model for a later Enroll or Verify."""
        return self._transport.call("POST", "/v1/audios/process", "*", request, ProcessAudioResponse)

    def enroll(self, request: EnrollRequest) -> EnrollResponse:
        """Adds processed audio to the profile's enrollment segments."""
        return self._transport.call("POST", "/v1/voiceprints/{gk_voiceprint_profile_id.value}/enrollment", "*", request, EnrollResponse)

    def get_enroll_status(self, request: GetEnrollStatusRequest) -> GetEnrollStatusResponse:
        """Returns whether enough was enrolled to train, and whether the profile is trained."""
        return self._transport.call("GET", "/v1/voiceprints/{gk_voiceprint_profile_id.value}/enrollment-status", None, request, GetEnrollStatusResponse)

    def train(self, request: TrainRequest) -> TrainResponse:
        """Creates a new voice template from the enrollment segments."""
        return self._transport.call("POST", "/v1/voiceprints/{gk_voiceprint_profile_id.value}/training", "*", request, TrainResponse)

    def check_watchlist_consistency(self, request: CheckWatchlistConsistencyRequest) -> CheckWatchlistConsistencyResponse:
        """Checks a watchlist against the current fraudster detection settings."""
        return self._transport.call("POST", "/v1/voiceprints/watchlist:check-consistency", "*", request, CheckWatchlistConsistencyResponse)

    def verify(self, request: VerifyRequest) -> VerifyResponse:
        """Checks audio against one profile."""
        return self._transport.call("POST", "/v1/voiceprints/{gk_voiceprint_profile_id.value}/verification", "*", request, VerifyResponse)

    def identify(self, request: IdentifyRequest) -> IdentifyResponse:
        """Checks audio against any of the given profiles."""
        return self._transport.call("POST", "/v1/voiceprints/identification", "*", request, IdentifyResponse)

    def detect_known_fraudsters(self, request: DetectKnownFraudstersRequest) -> DetectKnownFraudstersResponse:
        """Checks audio against the profiles of a watchlist."""
        return self._transport.call("POST", "/v1/voiceprints/known-fraudsters-detection", "*", request, DetectKnownFraudstersResponse)

    def analyze_audio(self, request: AnalyzeAudioRequest) -> AnalyzeAudioResponse:
        """Runs several checks on the audio, including detection of playback and synthesized speech."""
        return self._transport.call("POST", "/v1/voiceprints/audio-analysis", "*", request, AnalyzeAudioResponse)

    def start_engagement(self, request: StartEngagementRequest) -> StartEngagementResponse:
        """Starts an engagement; sessions started with its id belong to it."""
        return self._transport.call("POST", "/v1/engagements/start", "*", request, StartEngagementResponse)

    def stop_engagement(self, request: StopEngagementRequest) -> StopEngagementResponse:
        """Stops the engagement and its open sessions."""
        return self._transport.call("POST", "/v1/engagements/stop", "*", request, StopEngagementResponse)

    def start_session(self, request: StartSessionRequest) -> StartSessionResponse:
        """Starts a session; use its id in the context of the calls that follow."""
        return self._transport.call("POST", "/v1/sessions/start", "*", request, StartSessionResponse)

    def stop_session(self, request: StopSessionRequest) -> StopSessionResponse:
        """Stops a session. Its audio is deleted, unless the box is configured to keep it longer."""
        return self._transport.call("POST", "/v1/sessions/stop", "*", request, StopSessionResponse)

    def get_session_decision(self, request: GetSessionDecisionRequest) -> GetSessionDecisionResponse:
        """Combines the checks of a session into one decision; also for a stopped session."""
        return self._transport.call("GET", "/v1/sessions/decision", None, request, GetSessionDecisionResponse)

    def create_voiceprint_profile(self, request: CreateVoiceprintProfileRequest) -> CreateVoiceprintProfileResponse:
        """Creates an empty profile of a person or a fraudster. ALREADY_EXISTS if the owner has one with this tag."""
        return self._transport.call("POST", "/v1/voiceprints/profiles", "*", request, CreateVoiceprintProfileResponse)

    def list_voiceprint_profiles(self, request: ListVoiceprintProfilesRequest) -> ListVoiceprintProfilesResponse:
        """Lists the profiles of the scope and their owners, one page at a time."""
        return self._transport.call("GET", "/v1/voiceprints/profiles", None, request, ListVoiceprintProfilesResponse)

    def get_gk_voiceprint_profile_id(self, request: GetGkVoiceprintProfileIdRequest) -> GetGkVoiceprintProfileIdResponse:
        """Returns the id of a profile; the answer has no id if the owner has no such profile."""
        return self._transport.call("GET", "/v1/voiceprints/profiles/gkid", None, request, GetGkVoiceprintProfileIdResponse)

    def delete_voiceprint_profile(self, request: DeleteVoiceprintProfileRequest) -> DeleteVoiceprintProfileResponse:
        """Erases segments, audio models and template (right to erasure)."""
        return self._transport.call("DELETE", "/v1/voiceprints/{gk_voiceprint_profile_id.value}", None, request, DeleteVoiceprintProfileResponse)

    def export_voiceprint_profile(self, request: ExportVoiceprintProfileRequest) -> ExportVoiceprintProfileResponse:
        """Returns everything stored about a trained profile, for its owner or for another box or device."""
        return self._transport.call("GET", "/v1/voiceprints/{gk_voiceprint_profile_id.value}/export", None, request, ExportVoiceprintProfileResponse)

    def import_voiceprint_profile(self, request: ImportVoiceprintProfileRequest) -> ImportVoiceprintProfileResponse:
        """Creates a profile from the export of another box or device. It must come from the same model revision."""
        return self._transport.call("POST", "/v1/voiceprints/profiles/import", "*", request, ImportVoiceprintProfileResponse)

    def set_voiceprint_profile_consent(self, request: SetVoiceprintProfileConsentRequest) -> SetVoiceprintProfileConsentResponse:
        """Records that the person gave or withdrew consent. While consent is withdrawn, the print is neither compared nor changed."""
        return self._transport.call("POST", "/v1/voiceprints/{gk_voiceprint_profile_id.value}/consent", "*", request, SetVoiceprintProfileConsentResponse)

    def start_voiceprint_profiles_status_job(self, request: StartVoiceprintProfilesStatusJobRequest) -> StartVoiceprintProfilesStatusJobResponse:
        """Collects the state of many profiles in the background."""
        return self._transport.call("POST", "/v1/voiceprints/profiles/status", "*", request, StartVoiceprintProfilesStatusJobResponse)

    def get_voiceprint_profiles_status_job(self, request: GetVoiceprintProfilesStatusJobRequest) -> GetVoiceprintProfilesStatusJobResponse:
        """Returns the progress and the results of a status job."""
        return self._transport.call("GET", "/v1/voiceprints/profiles/status/{gk_job_id.value}", None, request, GetVoiceprintProfilesStatusJobResponse)

    def start_voiceprint_profiles_retraining_job(self, request: StartVoiceprintProfilesRetrainingJobRequest) -> StartVoiceprintProfilesRetrainingJobResponse:
        """After a model update: retrains obsolete prints whose audio was kept, and lists those that must be enrolled again."""
        return self._transport.call("POST", "/v1/voiceprints/profiles/retraining", "*", request, StartVoiceprintProfilesRetrainingJobResponse)

    def get_voiceprint_profiles_retraining_job(self, request: GetVoiceprintProfilesRetrainingJobRequest) -> GetVoiceprintProfilesRetrainingJobResponse:
        """Returns the progress of a retraining job and the outcome for each profile."""
        return self._transport.call("GET", "/v1/voiceprints/profiles/retraining/{gk_job_id.value}", None, request, GetVoiceprintProfilesRetrainingJobResponse)

    def add_media_segment(self, request: AddMediaSegmentRequest) -> AddMediaSegmentResponse:
        """The first message carries the context (and the format of headerless bytes); every message may carry bytes. Over HTTP, the body is the bytes themselves and the other fields are query parameters."""
        return self._transport.call("POST", "/v1/audios", "chunk", request, AddMediaSegmentResponse)

    def create_group(self, request: CreateGroupRequest) -> CreateGroupResponse:
        """Creates a group of persons' prints."""
        return self._transport.call("POST", "/v1/groups", "*", request, CreateGroupResponse)

    def list_groups(self, request: ListGroupsRequest) -> ListGroupsResponse:
        """Lists the groups of the scope in the order of their creation, one page at a time."""
        return self._transport.call("GET", "/v1/groups", None, request, ListGroupsResponse)

    def get_group(self, request: GetGroupRequest) -> GetGroupResponse:
        """Returns a group and its members."""
        return self._transport.call("GET", "/v1/groups/{gk_group_id.value}", None, request, GetGroupResponse)

    def delete_group(self, request: DeleteGroupRequest) -> DeleteGroupResponse:
        """Deletes the group; its members keep their prints."""
        return self._transport.call("DELETE", "/v1/groups/{gk_group_id.value}", None, request, DeleteGroupResponse)

    def add_group_members(self, request: AddGroupMembersRequest) -> AddGroupMembersResponse:
        """Adds profiles, or owners with all their prints."""
        return self._transport.call("POST", "/v1/groups/{gk_group_id.value}/members", "*", request, AddGroupMembersResponse)

    def remove_group_members(self, request: RemoveGroupMembersRequest) -> RemoveGroupMembersResponse:
        """Removes profiles or owners from the group."""
        return self._transport.call("DELETE", "/v1/groups/{gk_group_id.value}/members", "*", request, RemoveGroupMembersResponse)

    def create_watchlist(self, request: CreateGroupRequest) -> CreateGroupResponse:
        """Creates a watchlist, which contains only fraudsters' prints."""
        return self._transport.call("POST", "/v1/watchlists", "*", request, CreateGroupResponse)

    def list_watchlists(self, request: ListGroupsRequest) -> ListGroupsResponse:
        """Lists the watchlists of the scope in the order of their creation, one page at a time."""
        return self._transport.call("GET", "/v1/watchlists", None, request, ListGroupsResponse)

    def get_watchlist(self, request: GetGroupRequest) -> GetGroupResponse:
        """Returns a watchlist and its members."""
        return self._transport.call("GET", "/v1/watchlists/{gk_group_id.value}", None, request, GetGroupResponse)

    def delete_watchlist(self, request: DeleteGroupRequest) -> DeleteGroupResponse:
        """Deletes the watchlist; its members keep their prints."""
        return self._transport.call("DELETE", "/v1/watchlists/{gk_group_id.value}", None, request, DeleteGroupResponse)

    def add_watchlist_members(self, request: AddGroupMembersRequest) -> AddGroupMembersResponse:
        """Adds profiles of fraudsters, or fraudsters with all their prints."""
        return self._transport.call("POST", "/v1/watchlists/{gk_group_id.value}/members", "*", request, AddGroupMembersResponse)

    def remove_watchlist_members(self, request: RemoveGroupMembersRequest) -> RemoveGroupMembersResponse:
        """Removes profiles or fraudsters from the watchlist."""
        return self._transport.call("DELETE", "/v1/watchlists/{gk_group_id.value}/members", "*", request, RemoveGroupMembersResponse)
