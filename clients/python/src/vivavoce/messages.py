"""Converts messages of the contract to and from the JSON of the box (proto3), by the types of their fields."""
from __future__ import annotations

import base64
import functools
import types
import typing
from dataclasses import fields
from datetime import datetime, timedelta, timezone
from enum import Enum
from typing import Any, TypeVar

M = TypeVar("M", bound="Message")


class ContractEnum(str, Enum):
    """`Decision.AUTHENTIC == "AUTHENTIC"`; on the wire it is `DECISION_AUTHENTIC`."""

    wire: str

    def __new__(cls, value: str, wire: str) -> "ContractEnum":
        member = str.__new__(cls, value)
        member._value_ = value
        member.wire = wire
        return member

    def __str__(self) -> str:
        return str(self.value)

    @classmethod
    def of(cls, wire: Any) -> "ContractEnum":
        """Returns the member with this name. A name that only a newer box knows becomes UNSPECIFIED."""
        return next((member for member in cls if member.wire == wire), next(iter(cls)))


class Message:
    """Base class of all messages of the contract."""

    def to_json(self) -> dict[str, Any]:
        """Returns the fields that are set. An empty message is kept, because its presence can have a meaning."""
        given = ((field.name, getattr(self, field.name), field.default) for field in fields(self))  # type: ignore[arg-type]
        return {name: _to_json(value) for name, value, default in given if value != default}

    @classmethod
    def from_json(cls: type[M], json: dict[str, Any]) -> M:
        """Reads JSON of the box. Ignores unknown fields."""
        known = _fields_of(cls)  # type: ignore[arg-type]  # a class is hashable, its type variable is not known to be
        return cls(**{name: _from_json(kind, json[key]) for key, (name, kind) in known.items() if json.get(key) is not None})


def _to_json(value: Any) -> Any:
    if isinstance(value, Message):
        return value.to_json()
    if isinstance(value, ContractEnum):
        return value.wire
    if isinstance(value, tuple):
        return [_to_json(one) for one in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, timedelta):
        return f"{value / timedelta(seconds=1):.6f}s"
    if isinstance(value, datetime):
        return value.astimezone(timezone.utc).isoformat().replace("+00:00", "Z")
    return value


@functools.cache
def _fields_of(cls: type[Message]) -> dict[str, tuple[str, Any]]:
    """Returns name and type of each field, by its name in JSON."""
    hints = typing.get_type_hints(cls)
    return {_camel(name): (name, _plain(kind)) for name, kind in hints.items()}


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in others)


def _plain(kind: Any) -> Any:
    """Returns X for `X | None`, because absent fields are never read."""
    if typing.get_origin(kind) in (types.UnionType, typing.Union):
        return next(one for one in typing.get_args(kind) if one is not type(None))
    return kind


def _from_json(kind: Any, json: Any) -> Any:
    if typing.get_origin(kind) is tuple:
        return tuple(_from_json(typing.get_args(kind)[0], one) for one in json)
    if issubclass(kind, Message):
        return kind.from_json(json)
    if issubclass(kind, ContractEnum):
        return kind.of(json)
    if kind is bytes:
        return base64.b64decode(json)
    if kind is timedelta:
        return timedelta(seconds=float(json.removesuffix("s")))
    if kind is datetime:
        return _time(json)
    return kind(json)


def _time(text: str) -> datetime:
    """Reads a time. Python before 3.11 reads neither `Z` nor fractions of other than three or six digits."""
    seconds, _, fraction = text.removesuffix("Z").partition(".")
    return datetime.fromisoformat(f"{seconds}.{fraction[:6]:0<6}+00:00")
