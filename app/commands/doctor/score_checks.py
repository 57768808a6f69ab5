"""Whether each score of Kindred counts once, and as much as the in-tree scores that it stands for."""

from collections.abc import Mapping
from typing import Final

from app.commands.doctor.findings import HANDBOOK, setting, warning
from app.commands.doctor.registration import Check, Found, Registration
from app.scheduler_configuration.plugin_sets import Profile

_SCALE: Final = 10  # MaxNodeScore / MaxExtenderPriority, kube-scheduler's factor
_MAX_NODE_SCORE: Final = 100
_NEAR: Final = 0.25  # relative error of the weight that changes little


def _balance(registration: Registration) -> Found:
    extender = registration.extender
    if not extender.prioritize_verb or extender.weight <= 0 or not registration.scores:
        return
    wanted, given = _wanted(registration), _given(registration)
    for profile in registration.config.profiles:
        off = _switched_off(registration, profile)
        if not off and given <= wanted:
            continue  # besides; that it counts twice is said elsewhere
        if abs(given - wanted) <= _NEAR * wanted or not _has_rivals(registration, profile):
            continue
        strong = "strong" if given > wanted else "weak"
        stands_for = f"the in-tree scores that it stands for add up to {wanted}" if off else f"as in-tree: {wanted}"
        max_score, weight = finest_pair(wanted // _MAX_NODE_SCORE)
        yield warning(
            extender.at("weight"),
            f"too {strong}: weight {extender.weight} * maxScore {registration.settings.max_score}"
            f"{registration.known.remark} * 10 = up to {given} for a node, while {stands_for} "
            f"({_by_plugin(registration)}), in the profile {profile.name}",
            f"weight: {weight} and {setting('max_score', max_score)}, which is up to {weight * max_score * _SCALE}",
        )


def finest_pair(weight: int) -> tuple[int, int]:
    """Return max_score and weight of an extender that weighs as an in-tree weight, with the most steps."""
    product = weight * _SCALE
    return next((steps, product // steps) for steps in range(_MAX_NODE_SCORE, 0, -1) if product % steps == 0)


def _given(registration: Registration) -> int:
    return registration.extender.weight * registration.settings.max_score * _SCALE


def _wanted(registration: Registration) -> int:
    return _MAX_NODE_SCORE * sum(_weights(registration).values())


def _weights(registration: Registration) -> Mapping[str, int]:
    """Return plugin -> weight for the scores of Kindred. A weight of 1 alone says nothing: `affinity` has that."""
    scores = registration.scores
    if len(scores) == 1 and set(scores.values()) == {1}:
        (plugin,) = scores
        return {plugin: registration.config.profiles[0].weight(plugin)}
    return scores


def _by_plugin(registration: Registration) -> str:
    return ", ".join(f"{plugin} {weight}" for plugin, weight in sorted(_weights(registration).items()))


def _switched_off(registration: Registration, profile: Profile) -> list[str]:
    return sorted(plugin for plugin in registration.scores if profile.switched_off(plugin, "score"))


def _has_rivals(registration: Registration, profile: Profile) -> bool:
    """Return whether anything else scores. Otherwise the weight has no effect."""
    others = [each for each in registration.config.extenders if each.prioritize_verb]
    return len(others) > 1 or bool(profile.scoring() - {"DynamicResources"})


def _twice(registration: Registration) -> Found:
    if not registration.extender.prioritize_verb:
        return
    for profile in registration.config.profiles:
        twice = sorted(plugin for plugin in registration.scores if profile.runs(plugin, "score"))
        if not twice:
            continue
        names = ", ".join(twice)
        yield warning(
            profile.at("plugins.score"),
            f"counted twice, by kube-scheduler and by Kindred, in the profile {profile.name}: {names}",
            f"add to plugins.score.disabled (and preScore.disabled): {names}; or take them out of {setting('profile')}",
        )


def _by_nobody(registration: Registration) -> Found:
    if registration.extender.prioritize_verb:
        return
    for profile in registration.undecided:
        if off := _switched_off(registration, profile):
            yield warning(
                registration.extender.at("prioritizeVerb"),
                f"not set, and kube-scheduler does not score by {', '.join(off)} in the profile {profile.name}: the "
                "score is missing",
                "prioritizeVerb: prioritize and weight: 1",
            )


CHECKS: Final = (
    Check("weight-balance", f"{HANDBOOK}, All scores from Kindred", _balance, of_settings=True),
    Check("score-counted-twice", HANDBOOK, _twice),
    Check("score-by-nobody", HANDBOOK, _by_nobody),
)
