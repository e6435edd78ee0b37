"""Enroll and check voices by name: one call for each task, made of operations of the contract."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Callable, Literal, TypeVar

from . import contract as c
from .recording import Audio, Encoding, Recording, recording_of
from .transport import Credentials, FieldViolation, StatusError, Transport

__all__ = ["Analysis", "Answer", "Audio", "Candidate", "EnrolledSegment", "Enrollment", "Identification", "Voiceprints", "connect"]

Kind = Literal["person", "fraudster"]
T = TypeVar("T")

_PAGE = 500
_NAMES_PER_PAGE = 100
"""Reading a page of the list takes about as long as finding this many names, or less."""
_RECORDING_FIELDS = {"chunk", "encoding", "rate", "channels"}


@dataclass(frozen=True)
class Comparison:
    """The comparison behind a decision. All values are `None` if nothing was compared."""

    score: float | None
    """Cosine similarity, -1 to 1."""
    ratio: float | None
    """Calibrated log-likelihood ratio (natural logarithm). Higher means more likely the same person."""
    threshold: float | None
    """A ratio at or above this threshold is a match. It depends on the quality of the audio."""
    false_accept_rate: float | None
    """The target false-accept rate from which the threshold follows."""


@dataclass(frozen=True)
class Candidate(Comparison):
    """The comparison with one enrolled person."""

    name: str


@dataclass(frozen=True)
class Answer(Comparison):
    """The result of a check."""

    decision: c.Decision
    reason: c.DecisionReason
    risk: int | None
    """0 to 1000; higher is riskier."""
    reliability: int | None
    """0 to 100; higher is more reliable."""
    net_speech_seconds: float
    """Seconds of speech in the audio, without pauses."""
    not_compared: str
    """Which voiceprints could not be compared, why, and what to do; empty if all were compared."""
    result: Any
    """The result message of the contract, with all its fields."""


@dataclass(frozen=True)
class Identification(Answer):
    """The result of `identify`."""

    person: str | None
    """The identified person; `None` unless the decision is AUTHENTIC."""
    candidates: tuple[Candidate, ...]
    """The persons that were compared, best match first."""


@dataclass(frozen=True)
class Analysis(Answer):
    """The result of `analyze` and `watch`."""

    validity: c.AudioValidity
    """Whether the audio is good enough for the checks."""
    likeliest_person: str | None
    """The best match among the persons, whatever the decision is."""
    likeliest_fraudster: str | None
    """The best match among the fraudsters, whatever the decision is."""


@dataclass(frozen=True)
class EnrolledSegment:
    """The result of enrolling one recording."""

    enrolled: bool
    reason: c.EnrollReason
    """Why it was enrolled or not."""
    validity: c.AudioValidity
    net_speech_seconds: float
    snr_db: float | None
    used_for_training: bool | None
    """Whether the voiceprint was trained with it; `None` if there was no training."""


@dataclass(frozen=True)
class Enrollment:
    """The result of `enroll`: the state of the voiceprint after the recordings were added."""

    trained: bool
    """True if the voiceprint can now be used in checks."""
    reason: c.TrainReason
    """TRAIN_OK, or why the voiceprint could not be trained."""
    status: c.VoiceprintProfileStatus
    print_version: int
    enroll_status: c.EnrollStatus
    net_speech_seconds: float
    """Seconds of speech in the recordings that count for training."""
    missing_speech_seconds: float | None
    """Seconds of speech still needed for training; `None` with `train=False`."""
    missing_recordings: int | None
    """Number of recordings still needed for training; `None` with `train=False`."""
    profile_id: str
    segments: tuple[EnrolledSegment, ...]
    """One result for each recording, in the order given."""


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
    """Returns a client of the box at `url`. Nothing is sent before the first call.

    client_id, client_secret: the client gets access tokens with these credentials, and renews them in time.
    token_url: where to get the tokens; by default from the box itself.
    token: instead of credentials, an access token, or a function that returns one for each call.
    scope: the scope of the voices; voices of different scopes are never compared.
    configset: the configuration set, which has the limits and target rates of the checks.
    timeout_seconds: how long to wait for each answer of the box.
    retries: how often to repeat a call that the box refused as BUSY or RATE_EXCEEDED, each time after the delay that the box asks for.
    cafile: a file with the certificate (PEM) to trust, if the box has a self-signed one.
    """
    if (client_id is None) != (client_secret is None):
        raise ValueError("client_id and client_secret must be given together")
    credentials = Credentials(client_id, client_secret, token_url) if client_id is not None and client_secret is not None else None
    transport = Transport(
        url, token=token, credentials=credentials, timeout_seconds=timeout_seconds, retries=retries, cafile=cafile
    )
    return Voiceprints(c.Operations(transport), scope, configset)


class Voiceprints:
    """The voices of one scope, by name. Each check or enrollment is a separate session: the box deletes its audio after the answer.

    Can be used in several threads at once.
    """

    def __init__(self, operations: c.Operations, scope: str, configset: str) -> None:
        self.operations = operations
        """All operations of the contract, for everything that the methods of this class do not cover."""
        self._scope = c.UniqueId(value=scope)
        self._configset = configset

    def __enter__(self) -> "Voiceprints":
        return self

    def __exit__(self, *_: object) -> None:
        """Does nothing: each call opens and closes its own connection, so there is nothing to close."""

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
        """Adds recordings to a person's voiceprint, and trains it if there is enough speech. Call it again to add more.

        `train=False` only adds the recordings. `tag` separates several voiceprints of one person.
        `channel` is the channel to use (1 is the first); by default all channels are mixed.
        """
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
        """Like `enroll`, for a fraudster that `watch` and `analyze` search for."""
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
        """Checks whether the voice is that of this person: AUTHENTIC, NO_MATCH, or UNCERTAIN with the reason.

        `ignore_checkpoints` uses all the audio instead of stopping as soon as the result is clear.
        """
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
            response = self.operations.verify(request)
        result = _present(response.result)
        return Answer(**_answer(response, result, result.authentication_score, result.risk_engine_result))

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
        """Finds out which of these persons is speaking, if any. Without `persons`, compares everybody who is enrolled."""
        recording = recording_of(audio, rate, encoding)

        def identified() -> tuple[dict[str, str], c.IdentifyResponse]:
            names = self._profiles("person", persons, tag)
            if persons is None and not names:
                which = f' with the tag "{tag}"' if tag else ""
                raise StatusError(c.StatusCode.NOT_FOUND, f"nobody is enrolled{which}; enroll somebody before identifying")
            with self._session() as context:
                request = c.IdentifyRequest(
                    context=context,
                    gk_media_segment_id=self._upload(context, recording),
                    gk_voiceprint_profile_ids=_ids(names),
                    channel_selector=_channel(channel),
                    ignore_checkpoints=ignore_checkpoints,
                )
                return names, self.operations.identify(request)

        names, response = _unless_erased(persons is None, identified)
        result = _present(response.result)
        candidates = tuple(
            Candidate(**_comparison(one.authentication_score), name=names[_id(one.gk_voiceprint_profile_id)])
            for one in result.voiceprint_results
        )
        found = result.decision == c.Decision.AUTHENTIC and bool(candidates)
        return Identification(
            **_answer(response, result, result.authentication_score, result.risk_engine_result),
            person=candidates[0].name if found else None,
            candidates=candidates,
        )

    def watch(
        self,
        audio: Audio,
        fraudsters: Sequence[str] | None = None,
        *,
        persons: Sequence[str] = (),
        synthetic: bool = False,
        playback: bool = False,
        rate: int | None = None,
        encoding: Encoding | None = None,
        channel: int | None = None,
        tag: str | None = None,
        ignore_checkpoints: bool = False,
    ) -> Analysis:
        """Checks whether the voice is that of a known fraudster: FRAUD, NO_RISK_DETECTED, or UNCERTAIN with the reason.

        Without `fraudsters`, compares all of them. The other arguments are those of `analyze`.
        """
        return self.analyze(
            audio,
            persons=persons,
            fraudsters=True if fraudsters is None else fraudsters,
            synthetic=synthetic,
            playback=playback,
            rate=rate,
            encoding=encoding,
            channel=channel,
            tag=tag,
            ignore_checkpoints=ignore_checkpoints,
        )

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
        """Runs several checks at once. Without any check, only measures the quality of the audio.

        persons: compare with these persons. fraudsters: compare with these fraudsters, or with all (`True`).
        synthetic: does the voice sound synthetic? playback: does it sound played back by a loudspeaker?
        """
        recording = recording_of(audio, rate, encoding)

        def analyzed() -> tuple[dict[str, str], c.AnalyzeAudioResponse]:
            names = self._profiles("person", persons, tag) if persons else {}
            if fraudsters is True or fraudsters:
                watched = self._profiles("fraudster", None if fraudsters is True else fraudsters, tag)
                if not watched:
                    raise StatusError(c.StatusCode.NOT_FOUND, "no fraudster is enrolled; enroll one before watching")
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
                return names, self.operations.analyze_audio(request)

        names, response = _unless_erased(fraudsters is True, analyzed)
        result = _present(response.result)
        person, fraudster = result.authentication_result, result.fraud_detection_result
        is_fraud = fraudster is not None and fraudster.decision == c.Decision.FRAUD
        own = None if is_fraud or person is None else person.authentication_score
        score = own or (fraudster.fraud_detection_score if fraudster else None)
        top_person = person.top_person_voiceprint_details if person else None
        top_fraudster = fraudster.top_fraudster_voiceprint_details if fraudster else None
        return Analysis(
            **_answer(response, result, score, result.risk_engine_global_result),
            validity=result.validity,
            likeliest_person=names.get(_id(top_person.gk_voiceprint_profile_id)) if top_person else None,
            likeliest_fraudster=names.get(_id(top_fraudster.gk_voiceprint_profile_id)) if top_fraudster else None,
        )

    def people(self) -> list[str]:
        """Returns the names of all persons who have a voiceprint profile, in alphabetical order."""
        return sorted({one.owner_id for one in self._listed("person")})

    def fraudsters(self) -> list[str]:
        """Returns the names of all fraudsters who have a voiceprint profile, in alphabetical order."""
        return sorted({one.owner_id for one in self._listed("fraudster")})

    def erase(self, person: str, tag: str | None = None) -> bool:
        """Erases a person's voiceprints, recordings and keys; with `tag`, only that voiceprint. Returns False if there was nothing to erase."""
        return self._erase("person", person, tag)

    def erase_fraudster(self, fraudster: str, tag: str | None = None) -> bool:
        """Like `erase`, for a fraudster."""
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
        # Reads all recordings before it stores any, so that a refused call stores nothing.
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
            # Recordings that were all added before must not make a new print version.
            is_repeated = not any(one.enrolled for one in segments)
            request = c.TrainRequest(context=context, gk_voiceprint_profile_id=profile, only_if_changed=is_repeated)
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
        stop = c.StopEngagementRequest(context=context)
        try:
            yield context
        except BaseException:
            # The error of the call is the one to report, even if the session cannot be stopped either.
            with suppress(Exception):
                self.operations.stop_engagement(stop)
            raise
        self.operations.stop_engagement(stop)

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
        """Returns the names by the ids of their profiles."""
        if names is None:
            listed = self._listed(kind)
            return {_id(one.gk_voiceprint_profile_id): one.owner_id for one in listed if tag in (None, one.profile_tag)}
        if isinstance(names, str):
            raise ValueError(f"names must be a list, got the string {names!r}")
        for name in names:
            _check_name(name)
        listed: dict[str, str] = {}
        # Many names are looked for in the list of all profiles first, but only so far that a much longer list does not take more time than it saves.
        for one in islice(self._listed(kind), len(names) // _NAMES_PER_PAGE * _PAGE):
            if one.profile_tag == (tag or ""):
                listed[one.owner_id] = _id(one.gk_voiceprint_profile_id)
        return {listed.get(name) or self._profile(kind, name, tag or ""): name for name in names}

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
        raise ValueError(f"a name must be a string that is not empty, got {name!r}")


def _unless_erased(everybody: bool, work: Callable[[], T]) -> T:
    """Runs `work` again if it compares everybody and a profile was erased in the meantime. A named person must exist."""
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


def _answer(
    response: c.VerifyResponse | c.IdentifyResponse | c.AnalyzeAudioResponse,
    result: Any,
    score: c.AuthenticationScore | c.FraudDetectionScore | None,
    risk: c.RiskEngineResult | None,
) -> dict[str, Any]:
    return {
        **_comparison(score),
        "decision": result.decision,
        "reason": result.reason,
        "risk": risk.risk if risk else None,
        "reliability": risk.reliability if risk else None,
        "net_speech_seconds": _seconds(result.audio_details.net_audio if result.audio_details else None),
        "not_compared": response.status.message if response.status else "",
        "result": result,
    }
