"""Reads a decision from the response of `GET /debug/decisions/N`, to evaluate it again elsewhere."""

from datetime import datetime
from typing import Final

import msgspec

from app.admin.decisions_routes import DecisionDetail
from app.explain.decisions import RecordedDecision
from app.objects.decode import NULL, DecodeError, decoding
from app.verbs.observation import Asked

_decoder: Final = msgspec.json.Decoder(DecisionDetail)


def decode_decision(told: bytes) -> RecordedDecision:
    """Return the decision; a missing part is empty, as in the service. Raises DecodeError."""
    detail = decoding(_decoder.decode, told)
    summary = detail.decision
    return RecordedDecision(
        number=summary.id,
        at=_seconds(summary.at),
        generation=summary.generation,
        verb=summary.verb,
        outcome=summary.outcome,
        seconds=summary.seconds,
        waited=summary.waited,
        asked=Asked(summary.pod, summary.uid, summary.nodes, summary.passed),
        source=summary.source,
        error=summary.error,
        stale=summary.stale,
        pod=_kept(detail.pod_sent),
        request_bytes=summary.request_bytes,
        request=_kept(detail.request),
        response_bytes=summary.response_bytes,
        response=_kept(detail.answer),
        release=summary.kubernetes,
    )


def _kept(told: msgspec.Raw) -> bytes:
    return b"" if told == NULL else bytes(told)


def _seconds(at: str) -> float:
    try:
        return datetime.fromisoformat(at).timestamp()
    except (ValueError, OverflowError):
        raise DecodeError("decision.at", f"expected a time in the format of RFC 3339, got {at!r}") from None
