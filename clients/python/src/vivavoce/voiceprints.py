"""The easy door: voices by name, in one line each, over the operations of the contract."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Callable, Literal, TypeVar

from . import contract as c
from .recording import Audio, Encoding, Recording, recording_of
from .transport import Credentials, FieldViolation, StatusError, Transport

__all__ = ["Analysis", "Answer", "Audio", "Candidate", "EnrolledSegment", "Enrollment", "Identification", "Voiceprints", "connect"]

Kind = Literal["person", "fraudster"]
T = TypeVar("T")

_PAGE = 500
_RECORDING_FIELDS = {"chunk", "encoding", "rate", "channels"}


@dataclass(frozen=True)
class Comparison:
    """The comparison that counts; `None` where nothing was compared."""

    score: float | None
    """Cosine, -1..1."""
    ratio: float | None
    """Calibrated log-likelihood ratio (natural logarithm)."""
    threshold: float | None
    """The lowest ratio that is a match in this call, for audio of this quality."""
    false_accept_rate: float | None
    """The target that the threshold keeps."""


@dataclass(frozen=True)
class Candidate(Comparison):
    """One of those that were compared."""

    name: str


@dataclass(frozen=True)
class Answer(Comparison):
    """What a check says."""

    decision: c.Decision
    reason: c.DecisionReason
    risk: int | None
    """0..1000, higher is riskier."""
    reliability: int | None
    """0..100"""
    net_speech_seconds: float
    result: Any
    """The contract's result, with all it says."""


@dataclass(frozen=True)
class Identification(Answer):
    """Who of several it is."""

    person: str | None
    """`None` unless the decision is AUTHENTIC."""
    candidates: tuple[Candidate, ...]
    """Best first."""


@dataclass(frozen=True)
class Analysis(Answer):
    """Several checks at once."""

    validity: c.AudioValidity
    likeliest_person: str | None
    likeliest_fraudster: str | None
    """The most likely that were compared, whatever the decision."""


@dataclass(frozen=True)
class EnrolledSegment:
    """What became of one recording."""

    enrolled: bool
    reason: c.EnrollReason
    validity: c.AudioValidity
    net_speech_seconds: float
    snr_db: float | None
    used_for_training: bool | None
    """`None` when no training took place."""


@dataclass(frozen=True)
class Enrollment:
    """A print after recordings were added to it."""

    trained: bool
    reason: c.TrainReason
    """TRAIN_OK, or what is missing."""
    status: c.VoiceprintProfileStatus
    print_version: int
    enroll_status: c.EnrollStatus
    net_speech_seconds: float
    """Of the speech that the print was trained from."""
    missing_speech_seconds: float | None
    missing_recordings: int | None
    """What is still needed before it can be trained; `None` where training was not tried."""
    profile_id: str
    segments: tuple[EnrolledSegment, ...]
    """One for each recording given."""


def connect(
    url: str,
    *,
    client_id: str | None = None,
    client_secret: str | None = None,
    token_url: str | None = None,
    token: str | Callable[[], str] | None = None,
    scope: str = "default",
    configset: str = "ivr-text-dependent",
    timeout_seconds: float = 60.0,
    retries: int = 3,
    cafile: str | None = None,
) -> "Voiceprints":
    """A box. With client credentials tokens are asked for and renewed; with a token (or a function that gives one) it is used as it is.

    `cafile` is a certificate (PEM) to trust, where the box has one of its own making. Calls that the box refuses as BUSY or RATE_EXCEEDED
    are made again `retries` times, when the box says they may be.
    """
    if (client_id is None) != (client_secret is None):
        raise ValueError("client_id and client_secret must be given together")
    credentials = Credentials(client_id, client_secret, token_url) if client_id is not None and client_secret is not None else None
    transport = Transport(
        url, token=token, credentials=credentials, timeout_seconds=timeout_seconds, retries=retries, cafile=cafile
    )
    return Voiceprints(c.Operations(transport), scope, configset)


class Voiceprints:
    """Voices of one scope, by name. Every call is a session of its own, so that its audio is deleted when it has been answered."""

    def __init__(self, operations: c.Operations, scope: str, configset: str) -> None:
        self.operations = operations
        """The contract's operations, for everything that the easy door has no word for."""
        self._scope = c.UniqueId(value=scope)
        self._configset = configset

    def __enter__(self) -> "Voiceprints":
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is held open: every call has a connection of its own."""

    def enroll(
        self,
        person: str,
        recordings: Sequence[Audio],
        *,
        rate: int | None = None,
        encoding: Encoding | None = None,
        channel: int | None = None,
        tag: str = "",
        train: bool = True,
    ) -> Enrollment:
        """Adds recordings to a person's print and trains it when there is enough. Can be called again with more."""
        return self._enroll("person", person, recordings, rate, encoding, channel, tag, train)

    def enroll_fraudster(
        self,
        fraudster: str,
        recordings: Sequence[Audio],
        *,
        rate: int | None = None,
        encoding: Encoding | None = None,
        channel: int | None = None,
        tag: str = "",
        train: bool = True,
    ) -> Enrollment:
        """As `enroll`, for somebody to be watched for."""
        return self._enroll("fraudster", fraudster, recordings, rate, encoding, channel, tag, train)

    def verify(
        self,
        person: str,
        audio: Audio,
        *,
        rate: int | None = None,
        encoding: Encoding | None = None,
        channel: int | None = None,
        tag: str = "",
        ignore_checkpoints: bool = False,
    ) -> Answer:
        """Is it this person?"""
        recording = recording_of(audio, rate, encoding)
        profile = self._profile("person", person, tag)
        with self._session() as context:
            request = c.VerifyRequest(
                context=context,
                gk_media_segment_id=self._upload(context, recording),
                gk_voiceprint_profile_id=c.UniqueId(value=profile),
                channel_selector=_channel(channel),
                ignore_checkpoints=ignore_checkpoints,
            )
            result = _present(self.operations.verify(request).result)
        return Answer(**_answer(result, result.authentication_score, result.risk_engine_result))

    def identify(
        self,
        audio: Audio,
        persons: Sequence[str] | None = None,
        *,
        rate: int | None = None,
        encoding: Encoding | None = None,
        channel: int | None = None,
        tag: str | None = None,
        ignore_checkpoints: bool = False,
    ) -> Identification:
        """Which of these persons is it, if any? Without names: of all that are enrolled."""
        recording = recording_of(audio, rate, encoding)

        def identified() -> tuple[dict[str, str], c.IdentifyResult]:
            names = self._profiles("person", persons, tag)
            with self._session() as context:
                request = c.IdentifyRequest(
                    context=context,
                    gk_media_segment_id=self._upload(context, recording),
                    gk_voiceprint_profile_ids=_ids(names),
                    channel_selector=_channel(channel),
                    ignore_checkpoints=ignore_checkpoints,
                )
                return names, _present(self.operations.identify(request).result)

        names, result = _unless_erased(persons is None, identified)
        candidates = tuple(
            Candidate(**_comparison(one.authentication_score), name=names[_id(one.gk_voiceprint_profile_id)])
            for one in result.voiceprint_results
        )
        found = result.decision == c.Decision.AUTHENTIC and bool(candidates)
        return Identification(
            **_answer(result, result.authentication_score, result.risk_engine_result),
            person=candidates[0].name if found else None,
            candidates=candidates,
        )

    def watch(self, audio: Audio, fraudsters: Sequence[str] | None = None, **choices: Any) -> Analysis:
        """Is it a known fraudster? FRAUD, NO_RISK_DETECTED, or why neither. Without names: any that is enrolled.

        Takes the choices of `analyze`.
        """
        return self.analyze(audio, fraudsters=True if fraudsters is None else fraudsters, **choices)

    def analyze(
        self,
        audio: Audio,
        *,
        persons: Sequence[str] = (),
        fraudsters: Sequence[str] | Literal[True] = (),
        synthetic: bool = False,
        playback: bool = False,
        rate: int | None = None,
        encoding: Encoding | None = None,
        channel: int | None = None,
        tag: str | None = None,
        ignore_checkpoints: bool = False,
    ) -> Analysis:
        """Several checks at once, or, with none asked for, what the audio is like. `fraudsters=True`: all that are enrolled."""
        recording = recording_of(audio, rate, encoding)

        def analyzed() -> tuple[dict[str, str], c.AnalyzeAudioResult]:
            names = self._profiles("person", persons, tag) if persons else {}
            if fraudsters is True or fraudsters:
                watched = self._profiles("fraudster", None if fraudsters is True else fraudsters, tag)
                if not watched:
                    raise StatusError(c.StatusCode.NOT_FOUND, "no fraudster is enrolled to be watched for")
                names = names | watched
            with self._session() as context:
                request = c.AnalyzeAudioRequest(
                    context=context,
                    gk_media_segment_id=self._upload(context, recording),
                    gk_voiceprint_profile_ids=_ids(names) if names else None,
                    channel_selector=_channel(channel),
                    ignore_checkpoints=ignore_checkpoints,
                    syntheticSpeechDetectionParameters=c.SyntheticSpeechDetectionParameters() if synthetic else None,
                    channelPlaybackDetectionParameters=c.ChannelPlaybackDetectionParameters() if playback else None,
                )
                return names, _present(self.operations.analyze_audio(request).result)

        names, result = _unless_erased(fraudsters is True, analyzed)
        person, fraudster = result.authentication_result, result.fraud_detection_result
        is_fraud = fraudster is not None and fraudster.decision == c.Decision.FRAUD
        own = None if is_fraud or person is None else person.authentication_score
        score = own or (fraudster.fraud_detection_score if fraudster else None)
        top_person = person.top_person_voiceprint_details if person else None
        top_fraudster = fraudster.top_fraudster_voiceprint_details if fraudster else None
        return Analysis(
            **_answer(result, score, result.risk_engine_global_result),
            validity=result.validity,
            likeliest_person=names.get(_id(top_person.gk_voiceprint_profile_id)) if top_person else None,
            likeliest_fraudster=names.get(_id(top_fraudster.gk_voiceprint_profile_id)) if top_fraudster else None,
        )

    def people(self) -> list[str]:
        """The names of all persons that have a profile."""
        return sorted({one.owner_id for one in self._listed("person")})

    def fraudsters(self) -> list[str]:
        """The names of all fraudsters that have a profile."""
        return sorted({one.owner_id for one in self._listed("fraudster")})

    def erase(self, person: str, tag: str | None = None) -> bool:
        """Erases a person: prints, recordings, keys; with a tag only that print. False when there was nothing."""
        return self._erase("person", person, tag)

    def erase_fraudster(self, fraudster: str, tag: str | None = None) -> bool:
        """As `erase`."""
        return self._erase("fraudster", fraudster, tag)

    def _enroll(
        self,
        kind: Kind,
        name: str,
        recordings: Sequence[Audio],
        rate: int | None,
        encoding: Encoding | None,
        channel: int | None,
        tag: str,
        train: bool,
    ) -> Enrollment:
        _check_name(name)
        if isinstance(recordings, (str, bytes)) or len(recordings) == 0:
            raise ValueError("recordings must be a list of at least one recording")
        # All are read before anything is kept: a call that is refused leaves nobody, and no half of an enrollment, behind.
        read = [recording_of(one, rate, encoding) for one in recordings]
        with self._session() as context:
            sent = [self._upload(context, one) for one in read]
            profile = c.UniqueId(value=self._find_or_create(kind, name, tag))
            segments: list[EnrolledSegment] = []
            processed: list[str] = []
            status = c.EnrollStatus.UNSPECIFIED
            for media in sent:
                segment, heard, status = self._enroll_segment(context, profile, media, channel)
                segments.append(segment)
                processed.append(heard)
            if not train:
                return Enrollment(
                    trained=False,
                    reason=c.TrainReason.UNSPECIFIED,
                    status=c.VoiceprintProfileStatus.UNSPECIFIED,
                    print_version=0,
                    enroll_status=status,
                    net_speech_seconds=0.0,
                    missing_speech_seconds=None,
                    missing_recordings=None,
                    profile_id=profile.value,
                    segments=tuple(segments),
                )
            request = c.TrainRequest(context=context, gk_voiceprint_profile_id=profile)
            result = _present(self.operations.train(request).result)
        used = {_id(one.gk_processed_audio_id): bool(one.used_for_train) for one in result.enrollment_segments_details}
        trained = result.reason == c.TrainReason.TRAIN_OK
        net = _seconds(result.total_net_audio)
        return Enrollment(
            trained=trained,
            reason=result.reason,
            status=result.status,
            print_version=(result.voiceprint_details.print_version or 0) if result.voiceprint_details else 0,
            enroll_status=status,
            net_speech_seconds=net,
            missing_speech_seconds=0.0 if trained else max(0.0, _seconds(result.min_net_audio_required) - net),
            missing_recordings=0 if trained else max(0, (result.min_segments_required or 0) - (result.total_valid_segments or 0)),
            profile_id=profile.value,
            segments=tuple(replace(one, used_for_training=used.get(id)) for one, id in zip(segments, processed)),
        )

    def _enroll_segment(
        self, context: c.Context, profile: c.UniqueId, media: c.UniqueId, channel: int | None
    ) -> tuple[EnrolledSegment, str, c.EnrollStatus]:
        processed = _present(
            self.operations.process_audio(
                c.ProcessAudioRequest(
                    context=context, gk_media_segment_id=media, is_for_enrollment=True, channel_selector=_channel(channel)
                )
            ).result
        )
        details = processed.audio_details or c.AudioDetails()
        segment = EnrolledSegment(
            enrolled=False,
            reason=c.EnrollReason.INTERNAL_ERROR,
            validity=processed.validity,
            net_speech_seconds=_seconds(details.net_audio),
            snr_db=details.snr_db,
            used_for_training=None,
        )
        if processed.gk_processed_audio_id is None:
            return segment, "", c.EnrollStatus.UNSPECIFIED
        request = c.EnrollRequest(
            context=context, gk_voiceprint_profile_id=profile, gk_processed_audio_id=processed.gk_processed_audio_id
        )
        result = _present(self.operations.enroll(request).result)
        enrolled = result.enrolled is True
        # A full print has no reason of its own in the contract; the status says it.
        full = result.enroll_status == c.EnrollStatus.FULL and not enrolled
        segment = replace(segment, enrolled=enrolled, reason=c.EnrollReason.UNSPECIFIED if full else result.reason)
        return segment, processed.gk_processed_audio_id.value, result.enroll_status

    @contextmanager
    def _session(self) -> Iterator[c.Context]:
        scope = c.Context(gk_scope_id=self._scope)
        started = self.operations.start_session(c.StartSessionRequest(context=scope, session_type=c.SessionType.OTHER))
        context = c.Context(
            gk_scope_id=self._scope,
            gk_engagement_id=started.gk_engagement_id,
            gk_session_id=started.gk_session_id,
            configset_id=self._configset,
        )
        try:
            yield context
        finally:
            self.operations.stop_engagement(c.StopEngagementRequest(context=context))

    def _upload(self, context: c.Context, recording: Recording) -> c.UniqueId:
        request = c.AddMediaSegmentRequest(
            context=context,
            encoding=recording.encoding,
            rate=recording.rate,
            channels=recording.channels,
            chunk=recording.chunk,
        )
        try:
            return _present(self.operations.add_media_segment(request).gk_media_segment_id)
        except StatusError as error:
            about_it = error.field_violations and all(one.field in _RECORDING_FIELDS for one in error.field_violations)
            if not recording.name or not about_it:
                raise
            named = tuple(
                FieldViolation(one.field, one.violation, f"{recording.name}: {one.message}") for one in error.field_violations
            )
            message = f"{recording.name}: {error.message}"
            raise StatusError(error.code, message, error.request_id, named, error.retry_after_seconds) from error

    def _profile(self, kind: Kind, name: str, tag: str) -> str:
        found = self._find(kind, name, tag)
        if found is None:
            which = f' with the tag "{tag}"' if tag else ""
            raise StatusError(c.StatusCode.NOT_FOUND, f'the {kind} "{name}" has no voiceprint{which}')
        return found

    def _find(self, kind: Kind, name: str, tag: str) -> str | None:
        _check_name(name)
        owner = {f"{kind}_id": name}
        request = c.GetGkVoiceprintProfileIdRequest(context=self._scope_only(), profile_tag=tag, **owner)
        return _id(self.operations.get_gk_voiceprint_profile_id(request).gk_voiceprint_profile_id) or None

    def _find_or_create(self, kind: Kind, name: str, tag: str) -> str:
        found = self._find(kind, name, tag)
        if found is not None:
            return found
        try:
            owner = {f"{kind}_id": name}
            request = c.CreateVoiceprintProfileRequest(context=self._scope_only(), profile_tag=tag, **owner)
            return _id(self.operations.create_voiceprint_profile(request).gk_voiceprint_profile_id)
        except StatusError as error:
            # Somebody else created it at the same moment.
            if error.code != c.StatusCode.ALREADY_EXISTS:
                raise
            return self._profile(kind, name, tag)

    def _profiles(self, kind: Kind, names: Sequence[str] | None, tag: str | None) -> dict[str, str]:
        """Names by the ids of their profiles."""
        if names is None:
            listed = self._listed(kind)
            return {_id(one.gk_voiceprint_profile_id): one.owner_id for one in listed if tag in (None, one.profile_tag)}
        if isinstance(names, str):
            raise ValueError(f"names must be a list, got the text {names!r}")
        return {self._profile(kind, name, tag or ""): name for name in names}

    def _listed(self, kind: Kind, owner: str = "") -> Iterator[c.VoiceprintProfileSummary]:
        owner_type = c.OwnerType.PERSON if kind == "person" else c.OwnerType.FRAUDSTER
        page = ""
        while True:
            answer = self.operations.list_voiceprint_profiles(
                c.ListVoiceprintProfilesRequest(
                    context=self._scope_only(), owner_type=owner_type, owner_id=owner, page_size=_PAGE, page_token=page
                )
            )
            yield from answer.profiles
            page = answer.next_page_token
            if page == "":
                return

    def _erase(self, kind: Kind, name: str, tag: str | None) -> bool:
        _check_name(name)
        ids = [_id(one.gk_voiceprint_profile_id) for one in self._listed(kind, name) if tag in (None, one.profile_tag)]
        erased = False
        for id in ids:
            request = c.DeleteVoiceprintProfileRequest(
                context=self._scope_only(), gk_voiceprint_profile_id=c.UniqueId(value=id)
            )
            try:
                self.operations.delete_voiceprint_profile(request)
                erased = True
            except StatusError as error:
                # Somebody else erased it at the same moment; the others must not stay.
                if error.code != c.StatusCode.NOT_FOUND:
                    raise
        return erased

    def _scope_only(self) -> c.Context:
        return c.Context(gk_scope_id=self._scope)


def _check_name(name: str) -> None:
    if not isinstance(name, str) or name == "":
        raise ValueError(f"a name must be a text that is not empty, got {name!r}")


def _unless_erased(everybody: bool, work: Callable[[], T]) -> T:
    """Where everybody is compared, somebody may be erased in the meantime: then again, without them. Somebody who was named must be there."""
    tries_left = 8
    while True:
        try:
            return work()
        except StatusError as error:
            gone = error.code == c.StatusCode.NOT_FOUND and any(
                one.field.startswith("gk_voiceprint_profile_ids") for one in error.field_violations
            )
            if not everybody or not gone or tries_left == 0:
                raise
            tries_left -= 1


def _present(part: T | None) -> T:
    if part is None:
        raise StatusError(c.StatusCode.INTERNAL_ERROR, "the box answered without a result")
    return part


def _id(id: c.UniqueId | None) -> str:
    return id.value if id else ""


def _ids(names: dict[str, str]) -> c.ListOfUniqueId:
    return c.ListOfUniqueId(unique_ids=tuple(c.UniqueId(value=id) for id in names))


def _channel(channel: int | None) -> c.AudioChannelSelector | None:
    return None if channel is None else c.AudioChannelSelector(channel=channel)


def _seconds(duration: Any) -> float:
    return float(duration.total_seconds()) if duration else 0.0


def _comparison(score: c.AuthenticationScore | c.FraudDetectionScore | None) -> dict[str, float | None]:
    return {
        "score": score.biometric_score if score else None,
        "ratio": score.ratio if score else None,
        "threshold": score.threshold if score else None,
        "false_accept_rate": score.false_accept_rate if score else None,
    }


def _answer(result: Any, score: c.AuthenticationScore | c.FraudDetectionScore | None, risk: c.RiskEngineResult | None) -> dict[str, Any]:
    return {
        **_comparison(score),
        "decision": result.decision,
        "reason": result.reason,
        "risk": risk.risk if risk else None,
        "reliability": risk.reliability if risk else None,
        "net_speech_seconds": _seconds(result.audio_details.net_audio if result.audio_details else None),
        "result": result,
    }
